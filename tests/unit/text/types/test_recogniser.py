"""Typed tokens in texts: what is one, what looks like one and is none, and that any text is taken apart soundly."""

from __future__ import annotations

import ipaddress
import itertools
import time
import unicodedata
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from wordveil.text.scanner import cut_strings
from wordveil.text.types.classes import CHARACTER_TYPES, CLASSES, TYPES, TypeSpans, newest_version
from wordveil.text.types.typed import Recogniser

FOUND = CHARACTER_TYPES
EVERY = Recogniser(FOUND)


def tokens(text: str, recogniser: Recogniser = EVERY) -> list[tuple[str, str]]:
    """The spans of one text: class and string."""
    texts = pa.array([text])
    spans = recogniser.find(texts)
    cut = cut_strings(texts, spans.starts, spans.ends).to_pylist()
    return [(TYPES[kind], token) for kind, token in zip(spans.kinds, cut, strict=True)]


# Each text has just the tokens of its list, all of the class; in the lists of NOT no token of the class.
IS: dict[str, list[tuple[str, list[str]]]] = {
    "email": [
        ("mail john@example.com.", ["john@example.com"]),
        ("<jane.q.doe+tag_1@mail.dept.x.co.uk>, bob@x.org;", ["jane.q.doe+tag_1@mail.dept.x.co.uk", "bob@x.org"]),
        ("mailto:o'brien99@x.com?", ["o'brien99@x.com"]),
        ("'quoted@x.com' 99bottles@x.net 2004-01-01@x.com", ["quoted@x.com", "99bottles@x.net", "2004-01-01@x.com"]),
        ("jörg@müller.de info.com@x.org", ["jörg@müller.de", "info.com@x.org"]),
        ("write john@x.com.Then go", ["john@x.com"]),
        ("me@home, j.doe@mail-host ECT@ECT jö@host.", ["me@home", "j.doe@mail-host", "ECT@ECT", "jö@host"]),
        ("john%40x.org john [at] x dot org", ["john%40x.org", "john [at] x dot org"]),
    ],
    "url": [
        ("see http://example.com/a?b=1#c.", ["http://example.com/a?b=1#c"]),
        ("(https://x.org/y), ftp://h.net! www.foo.com?", ["https://x.org/y", "ftp://h.net", "www.foo.com"]),
        ("https://en.wikipedia.org/wiki/A_(b))", ["https://en.wikipedia.org/wiki/A_(b)"]),
        ("example.com/path, EXAMPLE.ORG and www.x.museum", ["example.com/path", "EXAMPLE.ORG", "www.x.museum"]),
        ("host.example.co.in:8080/x", ["host.example.co.in:8080/x"]),
        ('<http://x.y> "http://10.0.0.1:80/z"', ["http://x.y", "http://10.0.0.1:80/z"]),
    ],
    "phone": [
        ("+44 20 7946 0958, (555) 123-4567; 555-123-4567", ["+44 20 7946 0958", "(555) 123-4567", "555-123-4567"]),
        ("020 7946 0958, 0170/1234567. +1 (555) 123-4567", ["020 7946 0958", "0170/1234567", "+1 (555) 123-4567"]),
        ("+49 (0)30 123456 and +493012345678", ["+49 (0)30 123456", "+493012345678"]),
        ("555.123.4567 1-800-555-1234 x12", ["555.123.4567", "1-800-555-1234 x12"]),
        ("555-1234, 030-12345678, (030) 12345678", ["555-1234", "030-12345678", "(030) 12345678"]),
        ("01 23 45 67 89 07946123456", ["01 23 45 67 89", "07946123456"]),
    ],
    "ip": [
        ("10.0.0.1, 192.168.1.0/24.", ["10.0.0.1", "192.168.1.0/24"]),
        ("::1 fe80::1 2001:db8::8a2e:370:7334", ["::1", "fe80::1", "2001:db8::8a2e:370:7334"]),
        ("1:2:3:4:5:6:7:8 ::ffff:1.2.3.4", ["1:2:3:4:5:6:7:8", "::ffff:1.2.3.4"]),
    ],
    "date": [
        ("2026-11-23, 23/11/2026, 11/23/26 or 23.11.2026.", ["2026-11-23", "23/11/2026", "11/23/26", "23.11.2026"]),
        ("Aug. 23, 2004; 23 August 2004; August 2004", ["Aug. 23, 2004", "23 August 2004", "August 2004"]),
        ("Sept 3rd; 31 Dec", ["Sept 3rd", "31 Dec"]),
        ("the 3rd of May, 23-Aug-2004, May\n5, may 5 2004", ["3rd of May", "23-Aug-2004", "May\n5", "may 5 2004"]),
        ("11/2026 2026-11 DECEMBER 2004", ["11/2026", "2026-11", "DECEMBER 2004"]),
    ],
    "time": [
        ("14:30, 2:30 pm, 14:30:05.123Z, 3pm", ["14:30", "2:30 pm", "14:30:05.123Z", "3pm"]),
        ("7:30-9:00, 5:00-6pm", ["7:30", "9:00", "5:00", "6pm"]),
        ("3 p.m. 9 A.M., 14:30:05+01:00", ["3 p.m.", "9 A.M.", "14:30:05+01:00"]),
    ],
    "number": [
        ("3,500 or 3.500,25; -4 and 1e-5.", ["3,500", "3.500,25", "-4", "1e-5"]),
        ("1st, 2nd 1/2 .5 1.000.000 1,234,567.89", ["1st", "2nd", "1/2", ".5", "1.000.000", "1,234,567.89"]),
        ("10-12 3-2 1,2,3", ["10", "12", "3", "2", "1", "2", "3"]),
        ("1499 2100 -1990 +1990 1,990", ["1499", "2100", "-1990", "+1990", "1,990"]),
        ("1990.5 01990 1990th", ["1990.5", "01990", "1990th"]),
        ("10km #1 5'10\" (7) [8] \u22129", ["10", "1", "5", "10", "7", "8", "\u22129"]),
        ("COVID-19 3.5 million 12345678.90", ["19", "3.5", "12345678.90"]),
    ],
    "year": [("in 1500, 1977-2026 or (2099): 1990s", ["1500", "1977", "2026", "2099", "1990"])],
    "amount": [
        ("$3,500.00, 20 EUR, \u20ac5, 12%", ["$3,500.00", "20 EUR", "\u20ac5", "12%"]),
        ("-$5 US$ 7 5\u20ac EUR20; GBP 20 12 % $20k", ["-$5", "US$ 7", "5\u20ac", "EUR20", "GBP 20", "12 %", "$20"]),
    ],
    "account": [
        ("DE89 3704 0044 0532 0130 00 is", ["DE89 3704 0044 0532 0130 00"]),
        ("GB82WEST12345698765432, 123-45-6789", ["GB82WEST12345698765432", "123-45-6789"]),
        ("12345678 AB12345678 978-0-306-40615-7", ["12345678", "AB12345678", "978-0-306-40615-7"]),
        (f"{'7' * 20} {'7' * 40}.", ["7" * 20, "7" * 40]),
    ],
    "card": [
        ("4111 1111 1111 1111, 4111111111111111.", ["4111 1111 1111 1111", "4111111111111111"]),
        ("3782 822463 10005 5500-0000-0000-0004", ["3782 822463 10005", "5500-0000-0000-0004"]),
    ],
    "mention": [("@user: @_x1, (@User) @a@social.example.org", ["@user", "@_x1", "@User", "@a@social.example.org"])],
    "hashtag": [("#topic, #2day (#\u00fcber) ##x", ["#topic", "#2day", "#\u00fcber", "#x"])],
    "emoji": [
        ("\U0001f600 a\U0001f600b", ["\U0001f600", "\U0001f600"]),
        ("\U0001f44d\U0001f3fd!", ["\U0001f44d\U0001f3fd"]),
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", ["\U0001f468\u200d\U0001f469\u200d\U0001f467"]),
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", ["\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7"]),
        ("1\ufe0f\u20e3 #\u20e3 *\ufe0f\u20e3", ["1\ufe0f\u20e3", "#\u20e3", "*\ufe0f\u20e3"]),
        ("\u2764\ufe0f \u263a \u00a9\ufe0f", ["\u2764\ufe0f", "\u263a", "\u00a9\ufe0f"]),
    ],
    "markup": [
        ("<b>x</b><br/><p class=y>", ["<b>", "</b>", "<br/>", "<p class=y>"]),
        ('<a href="x>y" target=\'_top\'>z<!-- a < b -->', ['<a href="x>y" target=\'_top\'>', "<!-- a < b -->"]),
        ("&amp; &#39; &#x27; caf&eacute;", ["&amp;", "&#39;", "&#x27;", "&eacute;"]),
        ('<?xml version="1.0"?><!DOCTYPE html><o:p>', ['<?xml version="1.0"?>', "<!DOCTYPE html>", "<o:p>"]),
    ],
}  # fmt: skip
IS_NOT: dict[str, list[str]] = {
    "email": ["sh@t", "H@ppy", "a@b", "j.@bar", "5pm@home", "me@h2", "@ 5 o'clock", "meet @ home", "@x.com",
              "a @ b.com", "HOU/ECT", "a@b@c.com@", "x@.com"],
    "url": ["end.In the", "e.g. U.S.A. a.m.", "report.doc", "foo.py", "http://", "xhttp:/y", "done.It was", "John.Net"],
    "phone": ["1990-1995", "3-2", "978-0-306-40615-7", "23/11/2026", "01-02-2004", "123-45-6789", "10.0.0.1",
              "200-1000", "12:30:45", "100 200 3000"],
    "ip": ["256.1.1.1", "1.2.3", "1.2.3.4.5", "a::b", "std::vector", "14:30:05", "::", "1::2::3", "12345::1"],
    "date": ["13/13/2026", "32/1/26", "2026-13-01", "1/2", "24/7", "may 5", "march 3", "Marchers 3", "May 5:30",
             "1990-1995", "1.2.2004.5", "v2026-11-23", "Aug 4.5"],
    "time": ["25:00", "3:5", "12:60", "13pm", "1:2:3:4", "3 amps", "ratio 1:200"],
    "number": ["abc123", "v1.2.3", "3D", "4ever", "x_3", "2026-11-23", "five"],
    "year": ["$1990", "1990%", "1499 2100", "1990-05", "19900", "x1990", "1,990", "May 1990"],
    "amount": ["$", "% 5", "5 USDA", "A$", "TRY 20"],
    "account": ["1234567", "DE89 3704 0044 0532 0130 01x", "abc12345678", "1990-1995", "2026-11-23"],
    "card": ["4111 1111 1111 1112", "411111111111111", "4111-1111 1111-1111", "0000000000000000"],
    "mention": ["foo@user", "@", "@5", "@ user", "a@b.com"],
    "hashtag": ["#1", "C#sharp", "#", "# topic", "&#39;"],
    "emoji": ["\u00a9 \u2122 \u2192 \u2022", "1 # *", "\U0001f1e9", "\u200d\ufe0f"],
    "markup": ["a < b", "1<2>1", "<john@x.com>", "<John Smith>", "<3", "&", "AT&T", "&;", "&#;", "<b", "<!-- x",
               "<a <b"],
}  # fmt: skip


def test_what_is_a_token_of_the_class_and_what_looks_like_one() -> None:
    assert set(IS) == set(IS_NOT) == set(FOUND)
    for kind, cases in IS.items():
        for text, expected in cases:
            assert tokens(text) == [(kind, token) for token in expected], text
    assert [(kind, text) for kind, texts in IS_NOT.items() for text in texts if kind in dict(tokens(text))] == []


FIRST_AND_LONGEST = {
    "2026-11-23T14:30:05Z": [("date", "2026-11-23"), ("time", "T14:30:05Z")],
    "12.http://x.com": [("number", "12"), ("url", "http://x.com")],
    "5+example.com": [("number", "5"), ("url", "example.com")],
    "http://x.com/@user#top": [("url", "http://x.com/@user#top")],
    "Monday, August 23, 2004 14:30": [("date", "August 23, 2004"), ("time", "14:30")],
    "020 7946 0958 2004": [("phone", "020 7946 0958"), ("year", "2004")],
    "5 Aug 23 2004": [("date", "5 Aug"), ("number", "23"), ("year", "2004")],
    "4111-1111-1111-1112": [("account", "4111-1111-1111-1112")],
    "$5-$10, 5-10%": [("amount", "$5"), ("amount", "$10"), ("number", "5"), ("amount", "10%")],
    "01-02-2004": [("date", "01-02-2004")],
}


def test_the_first_and_longest_wins() -> None:
    assert {text: tokens(text) for text in FIRST_AND_LONGEST} == FIRST_AND_LONGEST


def test_classes_of_names_are_refused() -> None:
    with pytest.raises(ValueError, match="types: place, surname are found in lists"):
        Recogniser(["surname", "email", "place"])


# Pieces of which all automata are made.
PIECES = [
    *"@.,:;/#<>&%-+()'\"= \n\tTxzaK09_[]!?*~$\u20ac", "  ", "12", "555", "1234", "2004", "23", "0170", "4111",
    "99999999", "http://", "www.", "com", "example.com", "june", "May", "Aug.", "of", "pm", "EUR", "GB82", "DE89", "st",
    "km", "::", "fe80", "T14:30", "amp", "<b", "href=", "-->", "<!--", "\u037e", "\u212a", "u\u212a", "\u00e9",
    "\u0430", "\u0660", "\u2019", "\u201c", "\u2212", "\u00a0", "\u00b2", "\u2126", "\u2000", "\u2329",
    "\u0387", "\u0374",
]  # fmt: skip
WILD = [
    "\u0301", "\ufe0f", "\u200d", "\u20e3", "\U0001f600", "\U0001f3fd", "\U0001f1e9", "\U000e0067", "\U000e007f",
    "\u6f22", "\u00a9", "\u2764", "\U0001f468", "\x00", "\x02", "\U00010400", "\U0003ffff", "\u0e01", "\ud7ff",
    "\uffff", "\U0010ffff",
]  # fmt: skip


def made(seed: int, count: int, pieces: list[str], longest: int = 24) -> list[str]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest, count)
    drawn = rng.integers(0, len(pieces), int(lengths.sum()))
    bounds = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    chosen = [pieces[i] for i in drawn.tolist()]
    return ["".join(chosen[a:b]) for a, b in itertools.pairwise(bounds)]


def anything(seed: int, count: int) -> list[str]:
    """Random characters of all planes, surrogates left out."""
    rng = np.random.default_rng(seed)
    planes = np.array([0x80, 0x590, 0x3000, 0x10000, 0x20000, 0x110000])
    points = (rng.random((count, 16)) * planes[rng.integers(0, len(planes), (count, 16))]).astype(np.int64)
    points[(points >= 0xD800) & (points < 0xE000)] = 0x40
    return ["".join(map(chr, row)) for row in points.tolist()]


def check_spans(texts: pa.StringArray, spans: TypeSpans) -> None:
    """In order, inside their records, on characters' boundaries, none empty, none overlapping."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    data = np.frombuffer(bytes(texts.buffers()[2] or b"") + b"\0", np.uint8)
    assert (spans.starts < spans.ends).all()
    assert (spans.starts[1:] >= spans.ends[:-1]).all()
    assert spans.offsets[0] == 0
    assert spans.offsets[-1] == len(spans.starts) == len(spans.ends) == len(spans.kinds)
    record = np.repeat(np.arange(len(texts)), np.diff(spans.offsets))
    assert (spans.starts >= offsets[record]).all()
    assert (spans.ends <= offsets[record + 1]).all()
    assert (data[spans.starts] & 0xC0 != 0x80).all()
    assert (data[spans.ends] & 0xC0 != 0x80).all()
    cut = cut_strings(texts, spans.starts, spans.ends)
    cut.validate(full=True)
    whole = data.tobytes()
    assert cut.to_pylist() == [whole[a:b].decode() for a, b in zip(spans.starts, spans.ends, strict=True)]


def mixed(seed: int, count: int) -> pa.StringArray:
    return pa.array(
        [*made(seed, 5 * count, PIECES), *made(seed + 10, 3 * count, PIECES + WILD), *anything(seed, count)]
    )


def test_any_text_is_taken_apart_soundly() -> None:
    array = mixed(0, 1000)
    spans = EVERY.find(array)
    check_spans(array, spans)
    assert len(spans.starts) > 2000
    assert {TYPES[kind] for kind in spans.kinds} >= {"email", "url", "phone", "date", "number", "markup"}


@pytest.mark.long
def test_a_million_texts_are_taken_apart_soundly() -> None:
    for seed in range(100, 150):
        array = mixed(20 * seed, 2200)
        check_spans(array, EVERY.find(array))


def is_low(sign: str) -> bool:
    """Tell what only normalisation knows apart: characters that are not low, combining marks, and the one sign,
    U+2ADC, whose normal form has a mark.
    """
    in_range = ord(sign) < 0x590 or 0x2000 <= ord(sign) < 0x2C00
    return in_range and unicodedata.category(sign)[0] != "M" and sign != "\u2adc"


def normal(texts: Iterable[str]) -> list[str]:
    return [unicodedata.normalize("NFC", text) for text in texts]


def test_the_normal_form_of_a_low_text_has_the_same_tokens() -> None:
    points = [sign for sign in map(chr, [*range(0x590), *range(0x2000, 0x2C00)]) if is_low(sign)]
    changed = [sign for sign in points if unicodedata.normalize("NFC", sign) != sign]
    assert {"\u037e", "\u212a", "\u0387"} <= set(changed)
    kelvin = ["uK", "sK", "DK", "K\u037e", "&\u212acy", "D\u212a50", "1\u212am", "<\u212a>", "\u212aR"]
    pieces = [*PIECES, *changed, *kelvin]
    texts = [*made(0, 10_000, pieces), *made(50, 3000, [*points, *pieces])]
    raw, formed = pa.array(texts), pa.array(normal(texts))
    here, there = EVERY.find(raw), EVERY.find(formed)
    assert here.kinds.tolist() == there.kinds.tolist()
    assert here.offsets.tolist() == there.offsets.tolist()
    found = normal(cut_strings(raw, here.starts, here.ends).to_pylist())
    assert found == cut_strings(formed, there.starts, there.ends).to_pylist()
    for kind, text in (
        ("email", "a@b.u\u212a"), ("url", "x.co.U\u212a"), ("markup", "&\u212acy\u037e"), ("amount", "5 DK\u212a"),
        ("account", "AB12345\u212a"), ("hashtag", "#\u212a"),
    ):  # fmt: skip
        assert tokens(text) == [(kind, text)]


def test_a_class_has_the_same_spans_whichever_others_are_found() -> None:
    array = pa.array([*made(7, 2000, PIECES), *made(8, 500, PIECES + WILD)])
    every = EVERY.find(array)
    for kind in FOUND:
        alone = Recogniser([kind]).find(array)
        keep = every.kinds == TYPES.index(kind)
        assert alone.starts.tolist() == every.starts[keep].tolist()
        assert alone.ends.tolist() == every.ends[keep].tolist()
    assert Recogniser([]).find(array).offsets.tolist() == [0] * (len(array) + 1)


def test_class_of_a_later_version_is_not_found(monkeypatch) -> None:
    monkeypatch.setitem(CLASSES, "mention", replace(CLASSES["mention"], since=newest_version() + 1))
    known = Recogniser(["mention", "hashtag"], newest_version() - 1)
    assert tokens("@user: #topic", known) == [("hashtag", "#topic")]
    assert tokens("@user: #topic", Recogniser(["mention", "hashtag"])) == [("mention", "@user"), ("hashtag", "#topic")]


def test_nothing_reaches_over_the_end_of_a_record_or_a_slice() -> None:
    texts = pa.array(["1 a@b", ".com 5", "% 20", "04 May", " 5 http:", "//x.com <b", "> 1", "2"])
    spans = EVERY.find(texts)
    check_spans(texts, spans)
    found = cut_strings(texts, spans.starts, spans.ends).to_pylist()
    assert found == ["1", "5", "20", "04 May", "5", "x.com", "1", "2"]
    part = EVERY.find(texts.slice(1, 3))
    check_spans(texts.slice(1, 3), part)
    assert part.offsets.tolist() == [0, 1, 2, 3]
    assert part.starts.tolist() == spans.starts[1:4].tolist()


def test_nothing_is_found_among_plain_words() -> None:
    for texts in (pa.array(["plain words", "", "\u201cmore\u201d"]), pa.array([], pa.string())):
        spans = EVERY.find(texts)
        assert len(spans.starts) == 0
        assert len(cut_strings(texts, spans.starts, spans.ends)) == 0


HOSTILE = [
    "@", ".", "1", "<", ":", "#", "&", "-", "(", "/", "a@", "a.", "1.", "1,111", "@a", "<a", "<!--", '<a "', "::", "1:",
    "1-", "a1", "A1", "http://", "www.", "1e1", "+1", "$1", "1%", "&#1", "May 1", "1 ", "a.b-", "\U0001f468\u200d",
    "\u00e9", "\u00e9.", "@.1<", "1+", "a@a.", "12:", "()", "http://a)", "x%1.",
]  # fmt: skip


def seconds(text: str) -> float:
    texts = pa.array([text])
    started = time.process_time()
    EVERY.find(texts)
    return time.process_time() - started


def is_linear(piece: str) -> bool:
    """Sixteen times the text takes sixteen times as long, not 256 times, and no byte more than two microseconds."""
    short, long = (f"{piece * (size // len(piece))}a" for size in (2**13, 2**17))
    return seconds(long) < min(0.25, 64 * seconds(short) + 0.01)


@pytest.mark.sweep
def test_any_text_takes_linear_time() -> None:
    """By one of three attempts: the machine may have other work."""
    seconds("a")
    assert [piece for piece in HOSTILE if not any(is_linear(piece) for _ in range(3))] == []


def test_addresses_are_those_of_the_standard_library() -> None:
    rng = np.random.default_rng(3)
    addresses = [str(ipaddress.IPv4Address(int(number))) for number in rng.integers(0, 2**32, 300)]
    for _ in range(300):
        groups = rng.integers(0, 2**16, 8) * (rng.random(8) < 0.6)
        six = ipaddress.IPv6Address(b"".join(int(group).to_bytes(2, "big") for group in groups))
        addresses += [
            text
            for text in (str(six), six.exploded)
            if (sum(map(bool, text.split(":"))) > 1 or text.startswith("::")) and any(map(str.isdigit, text))
        ]
    for text in addresses:
        assert tokens(f"at {text}, x") == [("ip", text)], text
