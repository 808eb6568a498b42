"""Dates drawn uniformly from a public range of days, written in the form of a shape."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.crypto.streams import scale_words
from wordveil.text.types.shapes import MONTHS

FIRST_DAY, LAST_DAY = "1970-01-01", "2037-12-31"
"""Range of days. No two of its years have the same last two digits."""

_PIECE = re.compile("0000|00|0(?:th)?|Month|Mon|th")
_LEAP_YEAR = 2000


class _Form(NamedTuple):
    """Form of a date: its parts with the text between them (``parts``), and the days that fit (``days``)."""

    parts: tuple[str, ...]
    days: NDArray[np.int64]


class _Days(NamedTuple):
    """Years, months and days of the range: int64 ``(days,)`` each."""

    years: NDArray[np.int64]
    months: NDArray[np.int64]
    days: NDArray[np.int64]


@cache
def _range() -> _Days:
    dates = np.arange(FIRST_DAY, np.datetime64(LAST_DAY) + 1, dtype="datetime64[D]")
    months = dates.astype("datetime64[M]")
    return _Days(
        dates.astype("datetime64[Y]").astype(np.int64) + 1970,
        months.astype(np.int64) % 12 + 1,
        (dates - months).astype(np.int64) + 1,
    )


@cache
def _strings() -> dict[str, pa.StringArray]:
    """Write each part by its value: years from 1970, months and days from 1."""
    endings = ["st", "nd", "rd", *["th"] * 17, "st", "nd", "rd", *["th"] * 7, "st"]
    years = [str(year) for year in range(int(FIRST_DAY[:4]), int(LAST_DAY[:4]) + 1)]
    return {
        "y4": pa.array(years),
        "y2": pa.array([year[2:] for year in years]),
        "m2": pa.array([f"{month:02}" for month in range(1, 13)]),
        "m1": pa.array([str(month) for month in range(1, 13)]),
        "Month": pa.array(MONTHS),
        "Mon": pa.array([month[:3] for month in MONTHS]),
        "d2": pa.array([f"{day:02}" for day in range(1, 32)]),
        "d1": pa.array([str(day) for day in range(1, 32)]),
        "th": pa.array(endings),
    }


@lru_cache(maxsize=512)
def _form_of(shape: str, *, month_first: bool) -> _Form:
    pieces = _PIECE.findall(shape)
    between = _PIECE.split(shape)
    named = any(piece.startswith("Mon") for piece in pieces)
    numbers = [index for index, piece in enumerate(pieces) if piece[0] == "0"]
    if named:
        roles = dict.fromkeys(numbers, "d")
        if len(numbers) == 2 and "0000" not in pieces:  # 00-Mon-00
            roles[numbers[1]] = "y"
    elif len(numbers) == 2:
        roles = dict(zip(numbers, "my", strict=True))
    elif pieces[numbers[0]] == "0000":
        roles = dict(zip(numbers, "ymd", strict=True))
    else:
        roles = dict(zip(numbers, "mdy" if month_first and "." not in shape else "dmy", strict=True))
    roles |= {index: "y" for index in numbers if pieces[index] == "0000"}
    parts = [between[0]]
    calendar = _range()
    fits = np.ones(len(calendar.years), np.bool_)
    for index, piece in enumerate(pieces):
        role = roles.get(index, "")
        width = len(piece.removesuffix("th"))
        if role in ("m", "d") and width == 1:
            fits &= (calendar.months if role == "m" else calendar.days) < 10
        ending = ["th"] if role and piece.endswith("th") else []
        parts += [f"{role}{width}" if role else piece, *ending, between[index + 1]]
    written = set(roles.values())
    if "y" not in written:
        fits &= calendar.years == _LEAP_YEAR
    if "d" not in written:
        fits &= calendar.days == 1
    return _Form(tuple(parts), np.flatnonzero(fits))


def list_years() -> pa.StringArray:
    """List the years of the range, as four digits."""
    return _strings()["y4"]


def count_days(shape: str, language: str) -> int:
    """Count the dates of the range that a shape can have."""
    return len(_form_of(shape, month_first=language == "en").days)


def draw_dates(shape: str, words: NDArray[np.uint64], language: str) -> pa.StringArray:
    """Draw real dates in the form of ``shape``, uniformly among those of the range that have it.

    ``words``: uint64 ``(tokens,)``. If figures are ambiguous, the month is first in English; the day is in other
    languages and before a point. Returns a string array ``(tokens,)``.
    """
    form = _form_of(shape, month_first=language == "en")
    drawn = form.days[scale_words(words, np.array(len(form.days), np.uint64))]
    calendar, strings = _range(), _strings()
    values = {
        "y": calendar.years[drawn] - int(FIRST_DAY[:4]),
        "m": calendar.months[drawn] - 1,
        "d": calendar.days[drawn] - 1,
    }
    roles = {"Month": "m", "Mon": "m", "th": "d"}
    columns = [
        strings[part].take(pa.array(values[roles.get(part, part[0])])) if part in strings else pa.scalar(part)
        for part in form.parts
        if part
    ]
    return pc.binary_join_element_wise(*columns, "")
