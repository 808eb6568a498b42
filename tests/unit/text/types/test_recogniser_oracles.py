"""The recogniser against packages that know one class well: emoji, phonenumbers and dateutil."""

from __future__ import annotations

import datetime as dt
import importlib
import itertools

import numpy as np
import pyarrow as pa
import pytest

from wordveil.text.scanner import cut_strings
from wordveil.text.types.classes import CHARACTER_TYPES, TYPES
from wordveil.text.types.typed import Recogniser

EVERY = Recogniser(CHARACTER_TYPES)


def package(name: str):
    return pytest.importorskip(name, reason=f"{name} is not there: pip install 'wordveil[dev]'")


def tokens_of(texts: list[str]) -> list[list[tuple[str, str]]]:
    array = pa.array(texts)
    spans = EVERY.find(array)
    cut = cut_strings(array, spans.starts, spans.ends).to_pylist()
    found = [(TYPES[kind], token) for kind, token in zip(spans.kinds, cut, strict=True)]
    return [found[start:end] for start, end in itertools.pairwise(spans.offsets)]


def emoji_of(emoji) -> list[str]:
    """All emoji but the signs of text below U+2600, which are none alone."""
    text_signs = {sequence for sequence in emoji.EMOJI_DATA if len(sequence) == 1 and ord(sequence) < 0x2600
                  and emoji.EMOJI_DATA[sequence]["status"] == emoji.STATUS["unqualified"]}  # fmt: skip
    assert 20 < len(text_signs) < 40
    return sorted(set(emoji.EMOJI_DATA) - text_signs)


def test_every_emoji_is_one_token():
    every = emoji_of(package("emoji"))
    assert len(every) > 5000
    for form in ("{}", "a {} b", "a{}.", "5 {}\u20ac", "{}z"):
        # A keycap after a letter is a digit in a word: the forms with a letter before them leave these out.
        some = [emoji for emoji in every if "a{" not in form or emoji[0] not in "0123456789"]
        tokens = tokens_of([form.format(emoji) for emoji in some])
        kept = [[token for kind, token in had if kind == "emoji"] for had in tokens]
        assert [emoji for emoji, had in zip(some, kept, strict=True) if had != [emoji]] == []


def test_emoji_in_a_row_are_cut_as_the_package_cuts_them():
    emoji = package("emoji")
    rng = np.random.default_rng(5)
    skin = {chr(point) for point in range(0x1F3FB, 0x1F400)}  # tones join what stands before them
    plain = [token for token in emoji_of(emoji) if token not in skin and not token.startswith(tuple("#*0123456789"))]
    texts = ["".join(row) for row in rng.choice(np.array(plain, object), (3000, 4))]
    for text, found in zip(texts, tokens_of(texts), strict=True):
        assert [token for _, token in found] == [match["emoji"] for match in emoji.emoji_list(text)], ascii(text)


def test_the_table_of_emoji_is_that_of_the_package():
    """A new version of the package asks for scripts/emoji_table.py."""
    emoji = package("emoji")
    table = importlib.import_module("wordveil.text.types.finders.emoji_table")
    bases = {point for first, last in table.BASES for point in range(first, last + 1)}
    joining = {0x200D, 0xFE0F, 0x20E3, *range(0x80), *range(0xE0000, 0xE0080)}
    assert {ord(character) for sequence in emoji.EMOJI_DATA for character in sequence} - joining == bases


def test_international_numbers_of_all_countries_are_found():
    phonenumbers = package("phonenumbers")
    numbers = [phonenumbers.example_number(region) for region in sorted(phonenumbers.SUPPORTED_REGIONS)]
    texts = []
    for style in (phonenumbers.PhoneNumberFormat.INTERNATIONAL, phonenumbers.PhoneNumberFormat.E164):
        texts += [phonenumbers.format_number(number, style) for number in numbers if number is not None]
    assert len(texts) > 400
    tokens = tokens_of([f"call {text}, please" for text in texts])
    missed = [text for text, had in zip(texts, tokens, strict=True) if had != [("phone", text)]]
    # The shortest are of islands with four to seven digits behind the country's code.
    assert len(missed) <= 0.03 * len(texts), missed


def test_national_numbers_are_found():
    phonenumbers = package("phonenumbers")
    kinds = (phonenumbers.PhoneNumberType.FIXED_LINE, phonenumbers.PhoneNumberType.MOBILE)
    texts = [
        phonenumbers.format_number(
            phonenumbers.example_number_for_type(region, kind), phonenumbers.PhoneNumberFormat.NATIONAL
        )
        for region in ("US", "CA", "GB", "DE", "FR")
        for kind in kinds
    ]
    assert tokens_of([f"call {text}, please" for text in texts]) == [[("phone", text)] for text in texts]


FORMS = (
    "%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%m/%d/%y", "%B %d, %Y", "%b %d, %Y", "%b. %d, %Y",
    "%d %B %Y", "%d %b %Y", "%d-%b-%Y", "%B %d %Y", "%B %Y", "%b %Y",
)  # fmt: skip


def test_dates_are_found_whole_and_are_dates_to_dateutil():
    parser = package("dateutil.parser")
    days = [dt.date(1900, 1, 1) + dt.timedelta(days=int(x)) for x in np.random.default_rng(11).integers(0, 60000, 100)]
    for form in FORMS:
        texts = [day.strftime(form) for day in days]
        assert tokens_of([f"on {text}, or" for text in texts]) == [[("date", text)] for text in texts]
        if "%d" in form and "%y" not in form:
            first = "." in form and form[1] == "d"
            assert [parser.parse(text, dayfirst=first).date() for text in texts] == days


def test_what_dateutil_refuses_is_no_date():
    """Figures with separators, of which few are days."""
    parser = package("dateutil.parser")
    rng = np.random.default_rng(12)
    texts = [f"{a}/{b}/{year}" for a, b, year in rng.integers([0, 0, 1900], [40, 40, 2100], (2000, 3)).tolist()]

    def reads(text: str) -> bool:
        try:
            parser.parse(text)
        except ValueError:
            return False
        return True

    are_dates = [found[:1] == [("date", text)] for text, found in zip(texts, tokens_of(texts), strict=True)]
    assert 0.2 < np.mean(are_dates) < 0.8
    for text, is_date in zip(texts, are_dates, strict=True):
        # dateutil also refuses the 31st of February; the pass takes any day up to 31.
        late = bool({"29", "30", "31"} & {*text.split("/")[:2]})
        assert is_date == reads(text) or (is_date and late), text
