"""Values: uniform over their sets, a function of class, shape and words alone, and of their class again."""

from __future__ import annotations

import calendar
import inspect
import ipaddress
import re
import time
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from wordveil.text.types import shapes
from wordveil.text.types.classes import CHARACTER_TYPES, CLASSES, TYPES, YEARS, TypeAction
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.shapes import LONGEST, find_shapes
from wordveil.text.types.surrogates import BASES, WORDS, compile_shape, draw_values
from wordveil.text.types.typed import Recogniser

DEFAULTS = {kind: entry.shape.default for kind, entry in CLASSES.items() if entry.shape}
LISTS = {language: PublicLists.load(language) for language in ("en", "de")}
CANARY = "xqzzkanary"
RESAMPLE, SURROGATE, TAG = TypeAction.RESAMPLE, TypeAction.SURROGATE, TypeAction.TAG


def words(count, seed=1):
    return np.random.default_rng(seed).integers(0, 2**64, (count, WORDS), dtype=np.uint64)


def numbers(kind, count):
    return np.full(count, TYPES.index(kind), np.int8)


def shapes_of(kind, *originals):
    return find_shapes(numbers(kind, len(originals)), {kind: RESAMPLE}, pa.array(originals, pa.string())).to_pylist()


def draw(kind, action, shape="", count=2000, seed=1, language="en"):
    shapes = pa.array([shape] * count, pa.string())
    return draw_values(numbers(kind, count), {kind: action}, shapes, words(count, seed), LISTS[language]).to_pylist()


SHAPES = {
    "number": [
        ("3,500", "0,000"), ("3.500,25", "0.000,00"), ("-4", "-0"), ("1e-5", "0e-0"), ("1st", "0th"),
        ("112TH", "000th"), ("1/2", "0/0"), (".5", ".0"), ("12abc", "000"), ("7" * 41, "000"), ("\u0663", "000"),
        ("", "000"),
    ],
    "amount": [
        ("$3,500.00", "$0,000.00"), ("20 EUR", "00 EUR"), ("€5", "€0"), ("12%", "00%"), ("US$ 20", "US$ 00"),
        ("5 XQZ", "$000"), ("-$5", "-$0"),
    ],
    "phone": [
        ("+49 170 1234567", "+00 000 0000000"), ("0170/12345", "0000/00000"),
        ("555-1234 ext. 12", "000-0000 ext. 00"), ("call 5", "(000) 000-0000"),
    ],
    "account": [
        ("DE89 3704 0044", "AA00 0000 0000"), ("ab12345678", "AA00000000"), ("123-45-6789", "000-00-0000"),
        ("12_34", "00000000"),
    ],
    "card": [("4111-1111-1111-1111", "0000-0000-0000-0000"), ("12", "0000 0000 0000 0000")],
    "date": [
        ("2026-11-23", "0000-00-00"), ("3.1.26", "0.0.00"), ("11/2004", "00/0000"),
        ("Aug. 23, 2004", "Mon. 00, 0000"), ("23 AUGUST 2004", "00 Month 0000"), ("Sept 3rd", "Mon 0th"),
        ("May  5,\n1999", "Month 0, 0000"), ("1 Xqzuary 2004", "0000-00-00"), ("2026-11/23", "0000-00-00"),
    ],
    "time": [
        ("2:30 pm", "0:00 xm"), ("3AM", "0XM"), ("9:05 a.m.", "0:00 x.m."), ("14:30:05.123Z", "00:00:00.000Z"),
        ("noon", "00:00"),
    ],
    "ip": [("8.8.8.8", "v4"), ("fe80::1", "v6"), ("::ffff:1.2.3.4", "v6")],
    "markup": [
        ("<b>", "<b>"), ('<A href="xqz">', "<a>"), ("</P >", "</p>"), ("<br />", "<br/>"), ("<xqz>", "<span>"),
        ("<!-- xqz -->", "<!-- -->"), ("&#9999;", "&nbsp;"),
    ],
    "first_name": [("Alice", "Aa"), ("ALICE’S", "AA’S"), ("alice's", "a's"), ("É", "Aa")],
}  # fmt: skip


def test_plurals_of_nationalities_are_found_and_not_written():
    drawn = {*draw("nationality", RESAMPLE, "Aa", count=20_000)}
    listed = {*LISTS["en"].nationalities.to_pylist()}
    assert drawn == listed - {f"{name}s" for name in listed}
    assert len(drawn) == 230


def test_shapes():
    for kind, cases in SHAPES.items():
        assert dict(zip(dict(cases), shapes_of(kind, *dict(cases)), strict=True)) == dict(cases)
    kinds = np.array([TYPES.index("number"), TYPES.index("time"), TYPES.index("email")], np.int8)
    actions = {"number": SURROGATE, "time": RESAMPLE, "email": TAG}
    assert find_shapes(kinds, actions, pa.array(["12", "1:30", "a@b.c"])).to_pylist() == ["", "0:00", ""]
    nothing = find_shapes(numbers("number", 0), {}, pa.array([], pa.string()))
    assert draw_values(numbers("number", 0), {}, nothing, words(0), LISTS["en"]).to_pylist() == []


@given(st.lists(st.text(st.sampled_from("ASTastÉéß漢'’-."), min_size=1, max_size=6), min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
def test_the_case_of_a_name_does_not_follow_which_letters_it_has(names):
    expected = []
    for name in names:
        stem, end = re.fullmatch(r"(.*?)(['’][sS])?", name).groups()
        case = "AA" if re.fullmatch("[ASTÉ][ASTÉ'’-]+", stem) else "Aa" if stem[:1] in [*"ASTÉ"] else "a"
        expected.append(case + (end or ""))
    assert shapes_of("surname", *names) == expected


def test_cache_of_shapes_changes_none_and_stays_small(monkeypatch):
    known = inspect.getclosurevars(shapes._of_struck).nonlocals["known"]
    monkeypatch.setattr(shapes, "_REMEMBERED", 20)
    known.clear()  # else the result depends on earlier tests
    for left in range(18):
        tokens = [*(f"{'1' * left},{'3' * right}" for right in range(18)), "1" * 100, "12"]
        struck = [re.sub("[0-9]", "0", token) for token in tokens]
        fits = [bool(re.fullmatch(r",?0+(,0+)?", shape)) and len(shape) <= LONGEST for shape in struck]
        for _ in range(2):
            found = shapes_of("number", *tokens)
            assert found == [shape if fit else "000" for shape, fit in zip(struck, fits, strict=True)]
        assert 0 < len(known["number"]) <= 20
        assert max(map(len, known["number"])) <= 2 * LONGEST


TOKENS = st.text(st.sampled_from("0159.,:/-+() $€%eEaApPmM<>&;'’Zstndrh\u00a0é漢" + CANARY), max_size=50)


@given(st.sampled_from(list(DEFAULTS)), st.lists(TOKENS, min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_a_shape_is_short_has_one_digit_and_can_be_drawn(kind, originals):
    shapes = shapes_of(kind, *originals)
    for original, shape in zip(originals, shapes, strict=True):
        assert len(shape) <= LONGEST
        if kind not in ("ip", "markup"):
            assert not set(shape) & set("123456789")
            assert set(shape) <= set(original) | set(DEFAULTS[kind]) | set("0AaMonth.xmXM")
    for shape in set(shapes):
        assert len(draw(kind, RESAMPLE, shape, count=2)) == 2


def test_nothing_of_the_original_comes_through():
    originals = [CANARY, f"{CANARY}@example.com", f"<{CANARY} 1>", f"{CANARY}'s", f"1 {CANARY}", f"12:30 {CANARY}"]
    for kind in TYPES:
        kinds = numbers(kind, len(originals))
        for action in CLASSES[kind].allowed[2:]:
            shapes = find_shapes(kinds, {kind: action}, pa.array(originals))
            drawn = draw_values(kinds, {kind: action}, shapes, words(len(originals)), LISTS["en"])
            assert not any(CANARY in text.lower() for text in (*shapes.to_pylist(), *drawn.to_pylist()))


def test_values_are_a_function_of_class_shape_and_words():
    """Every original of one shape gets the same value from the same words, wherever it stands."""
    kinds = np.array([TYPES.index(kind) for kind in ("number", "date", "number", "email", "date", "email")], np.int8)
    actions = {"number": RESAMPLE, "date": RESAMPLE, "email": SURROGATE}
    originals = pa.array(["3,500", "Aug. 23, 2004", "9,999", "a@b.org", "May. 01, 1999", "long.name@host.example"])
    shapes, noise = find_shapes(kinds, actions, originals), words(6)
    noise[[2, 4, 5]] = noise[[0, 1, 3]]
    drawn = draw_values(kinds, actions, shapes, noise, LISTS["en"]).to_pylist()
    assert (drawn[0], drawn[3]) == (drawn[2], drawn[5])
    order = np.array([4, 0, 5, 2, 1, 3])
    again = draw_values(kinds[order], actions, shapes.take(pa.array(order)), noise[order], LISTS["en"]).to_pylist()
    assert again == [drawn[index] for index in order]


CLASS = {
    "email": r"[a-z]+\.[a-z]+@example\.(com|net|org)", "url": r"https://www\.example\.(com|net|org)/[a-z]+/[a-z]+",
    "phone": r"\([2-9]\d\d\) 555-01\d\d", "ip": r"(192\.0\.2|198\.51\.100|203\.0\.113)\.\d{1,3}",
    "time": r"([01]\d|2[0-3]):[0-5]\d", "number": r"[1-9]\d\d",
    "year": r"19[7-9]\d|20[0-2]\d|203[0-7]", "amount": r"\$[1-9]\d\d",
    "mention": r"@example_[a-z]+", "hashtag": r"#[a-z]+", "emoji": r"[^\w\s]",
    "markup": r"<[a-z]+>", **dict.fromkeys(("first_name", "surname", "place", "nationality"), r"[^\W\d_]{2,}"),
}  # fmt: skip


def test_surrogate_is_of_its_form_and_found_as_its_class():
    find = Recogniser(CHARACTER_TYPES).find
    for kind in TYPES:
        pattern = CLASS.get(kind) or DEFAULTS[kind].replace("0", r"\d")
        values = draw(kind, SURROGATE)
        assert all(re.fullmatch(pattern, value) for value in values), kind
        if kind in CHARACTER_TYPES and kind != "card":  # none of these is sound
            found = find(pa.array([f"x {value} x" for value in values])).kinds
            assert (found == TYPES.index(kind)).mean() > 0.99
    assert all(re.fullmatch(r"[1-9]\d\d €", value) for value in draw("amount", SURROGATE, language="de"))


def luhn(text):
    digits = [int(digit) for digit in text if digit.isdigit()][::-1]
    return sum(digits[::2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])


def test_no_card_is_valid_and_all_wrong_digits_occur():
    assert [luhn(f"4111 1111 1111 111{digit}") % 10 for digit in (1, 2)] == [0, 1]
    for shape in ("0000 0000 0000 0000", "0000000000000", "0000-0000-0000-0000-000"):
        sums = Counter(luhn(value) % 10 for value in draw("card", RESAMPLE, shape, 5000))
        assert set(sums) == set(range(1, 10))
        assert stats.chisquare([sums[rest] for rest in range(1, 10)]).pvalue > 1e-4


def test_no_iban_and_no_social_security_number_is_valid():
    for value in draw("account", RESAMPLE, "AA00 0000 0000 0000 0000 00"):
        assert re.fullmatch(r"[A-Z]{2}00\d{18}", value.replace(" ", ""))
    for value in draw("account", RESAMPLE, "000-00-0000"):
        area, group, _ = value.split("-")
        assert int(area) >= 900
        assert int(group) < 50


def test_addresses_are_of_ranges_for_documentation():
    nets = [ipaddress.ip_network(net) for net in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")]
    assert all(any(ipaddress.ip_address(value) in net for net in nets) for value in draw("ip", RESAMPLE, "v4"))
    documentation = ipaddress.ip_network("2001:db8::/32")
    assert all(ipaddress.ip_address(value) in documentation for value in draw("ip", RESAMPLE, "v6"))


NAMES = {name: number for number, name in enumerate(calendar.month_name)} | {
    name: number for number, name in enumerate(calendar.month_abbr)
}


@pytest.mark.parametrize(
    ("shape", "language", "pattern"),
    [
        ("0000-00-00", "en", r"(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)"),
        ("00/00/0000", "en", r"(?P<m>\d\d)/(?P<d>\d\d)/(?P<y>\d{4})"),
        ("00/00/0000", "de", r"(?P<d>\d\d)/(?P<m>\d\d)/(?P<y>\d{4})"),
        ("0.0.0000", "en", r"(?P<d>[1-9])\.(?P<m>[1-9])\.(?P<y>\d{4})"),
        ("00.00.00", "de", r"(?P<d>\d\d)\.(?P<m>\d\d)\.(?P<y>\d\d)"),
        ("Mon. 00, 0000", "en", r"(?P<m>[A-Z][a-z]{2})\. (?P<d>\d\d), (?P<y>\d{4})"),
        ("0th of Month 0000", "en", r"(?P<d>\d)(st|nd|rd|th) of (?P<m>[A-Z][a-z]+) (?P<y>\d{4})"),
        ("0-Mon-00", "en", r"(?P<d>[1-9])-(?P<m>[A-Z][a-z]{2})-(?P<y>\d\d)"),
        ("0000-Mon-00", "en", r"(?P<y>\d{4})-(?P<m>[A-Z][a-z]{2})-(?P<d>\d\d)"),
        ("00-Mon-0000", "en", r"(?P<d>\d\d)-(?P<m>[A-Z][a-z]{2})-(?P<y>\d{4})"),
    ],
)
def test_dates_are_real_and_in_their_form(shape, language, pattern):
    for value in draw("date", RESAMPLE, shape, language=language):
        match = re.fullmatch(pattern, value)
        year, month = match["y"], NAMES.get(match["m"], 0) or int(match["m"])
        year = int(year) if len(year) == 4 else 1900 + int(year) + 100 * (int(year) < 70)
        np.datetime64(f"{year}-{month:02}-{int(match['d']):02}")
        assert year in YEARS


def chi_squared(values, size):
    """The p-value of values uniform over a set of this size."""
    counts = list(Counter(values).values())
    assert len(counts) <= size
    return stats.chisquare(counts + [0] * (size - len(counts))).pvalue


@pytest.mark.parametrize(
    ("kind", "action", "shape", "size", "count"),
    [
        ("number", RESAMPLE, "00", 9 * 10, 20_000), ("number", RESAMPLE, "0/0", 10 * 9, 20_000),
        ("amount", RESAMPLE, "$0.0", 10 * 10, 20_000), ("time", RESAMPLE, "0:00 xm", 9 * 60 * 2, 40_000),
        ("time", SURROGATE, "", 24 * 60, 40_000), ("account", RESAMPLE, "AA", 26**2, 40_000),
        ("phone", RESAMPLE, "00 00 00 00 00", 10**4, 200_000), ("ip", SURROGATE, "", 3 * 256, 20_000),
        ("emoji", SURROGATE, "", len(LISTS["en"].emoji), 40_000),
        ("hashtag", SURROGATE, "", len(LISTS["en"].words), 40_000), ("markup", SURROGATE, "", 14, 5_000),
        ("first_name", SURROGATE, "", len(LISTS["en"].first_names), 100_000),
        ("place", RESAMPLE, "AA's", len(LISTS["en"].places), 60_000),
        ("date", RESAMPLE, "Month 0000", len(YEARS) * 12, 40_000),
        ("date", RESAMPLE, "0/0/00", len(YEARS) * 9 * 9, 100_000), ("date", RESAMPLE, "Mon 00", 366, 20_000),
    ],
)  # fmt: skip
def test_values_are_uniform_over_a_set_of_known_size(kind, action, shape, size, count):
    values = draw(kind, action, shape, count, seed=7)
    assert len(set(values)) == size
    assert chi_squared(values, size) > 1e-4
    # A set one larger in twenty, or a value drawn half as often, is seen.
    assert chi_squared(values, size + max(1, size // 20)) < 1e-4
    rare = set(sorted(set(values))[: max(1, size // 10)])
    thinned = [value for index, value in enumerate(values) if value not in rare or index % 2]
    assert chi_squared(thinned, size) < 1e-4


def test_the_digits_of_long_numbers_are_uniform_and_independent():
    values = np.array([[int(sign) for sign in value] for value in draw("account", RESAMPLE, "0" * 40, 20_000, seed=3)])
    for index in range(1, 40):
        assert stats.chisquare(np.bincount(values[:, index], minlength=10)).pvalue > 1e-5
    for first, second in ((9, 10), (1, 11), (19, 20), (29, 30), (5, 6)):
        pairs = np.bincount(values[:, first] * 10 + values[:, second], minlength=100)
        assert stats.chisquare(pairs).pvalue > 1e-5


def test_what_cannot_be_drawn_is_refused():
    for action in (TypeAction.WORDS, TypeAction.MASK, None):
        with pytest.raises(ValueError, match="email: no value is drawn under the action"):
            draw("email", action)
    with pytest.raises(ValueError, match="tag, surrogate"):
        draw("email", RESAMPLE)
    for kind, shape in DEFAULTS.items():
        for text in (CANARY, "12 " + CANARY, "", f"<{CANARY}>", shape + "\x05", "0" * 41):
            with pytest.raises(ValueError, match="no shape of this class") as caught:
                draw(kind, RESAMPLE, text, count=2)
            assert CANARY not in str(caught.value)


def test_a_template_never_asks_for_more_than_its_words_serve():
    for kind in ("number", "amount", "phone", "account", "card", "time"):
        for shape in ("0" * LONGEST, "0 " * (LONGEST // 2), DEFAULTS[kind]):
            template = compile_shape(kind, shape)
            assert sum(code < len(BASES) for code in template) <= 10 * WORDS
            assert len(template) == len(shape)
            assert any(BASES[code] > 1 for code in template if code < len(BASES))


def test_adversarial_tokens_take_linear_time():
    originals = pa.array(["1" * 100_000, "<" * 100_000, "1/" * 50_000, "Aug " * 25_000, "Aug. 23, " * 10_000] * 4)
    for kind in DEFAULTS:
        start = time.process_time()
        find_shapes(numbers(kind, len(originals)), {kind: RESAMPLE}, originals)
        assert time.process_time() - start < 5
