"""Figures and foreign values as texts for people: names of authors, records, columns and paths may contain anything."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wordveil.privacy.recovery import Recovered
    from wordveil.scores.score import Score

ShowNumber = Callable[[float | None], str]
INFINITE, NOT_MEASURED = "infinite", "not measured"
# Controls, invisible formatting such as directions of text, surrogates, separators of lines and paragraphs.
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
# They join and separate letters. Persian and emoji need them.
_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"
# Smaller shares would be written with an exponent.
_LEAST_SHARE = 1e-6
# What a spreadsheet takes for the start of a formula, also in full width, and the mark of a cell that is a text.
_FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_GUARD = "'"


def show_value(value: object, keep: str = "") -> str:
    r"""Show a value on one line without effects on a terminal or a page: an escape character becomes ``\x1b``.

    ``keep``: characters that stay, such as line breaks.
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        ascii(character)[1:-1] if _is_hidden(character) and character not in keep else character for character in text
    )


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN and character not in _JOINERS


def show_cell(value: Any) -> Any:
    """Make a value for a cell of CSV.

    A text that a spreadsheet would execute, or that begins with an apostrophe, gets an apostrophe before it, so that
    removing it restores the text. Numbers stay numbers.
    """
    if not isinstance(value, str):
        return value
    shown = show_value(value)
    return _GUARD + shown if shown.lstrip().startswith((*_FORMULAS, _GUARD)) else shown


def show_number(value: float | None) -> str:
    """Show a figure with three decimals if it is small, and without any if it is large."""
    if value is None:
        return NOT_MEASURED
    if math.isinf(value):
        return INFINITE if value > 0 else f"minus {INFINITE}"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if 0 < size < 0.001:
        rounded = f"{value:.2g}"
        return f"{Decimal(rounded):f}" if size >= _LEAST_SHARE else rounded
    return f"{value:.3f}"


def show_recovered(recovered: Recovered) -> str:
    """Show the share of words that an attacker guesses right, as a range if it is not known exactly."""
    low = show_share(recovered.at_least)
    if recovered.at_most is None:
        return f"at least {low}"
    high = show_share(recovered.at_most)
    return low if low == high else f"{low} to {high}"


def show_share(share: float, digits: int = 3) -> str:
    """Show a share in some digits, as a percentage of a few decimals."""
    return f"{100 * share:.{digits}g}%" if not 0 < share < _LEAST_SHARE else f"under {100 * _LEAST_SHARE:g}%"


def show_difference(value: float | None) -> str:
    """Show a difference with its sign; empty if there is none."""
    if value is None:
        return ""
    if value == 0:
        return show_number(0.0)
    return ("+" if value > 0 else "\N{MINUS SIGN}") + show_number(abs(value))


def show_interval(low: float | None, high: float | None, show: ShowNumber = show_number) -> str:
    """Show an interval; empty if there is none, or if it has no width."""
    if low is None or high is None or low == high:
        return ""
    return f"{show(low)} to {show(high)}"


def show_span(values: Iterable[float | None]) -> str:
    """Show the figure of several subjects if all agree, otherwise the smallest and the largest."""
    shown = sorted({value for value in values if value is not None})
    if not shown:
        return ""
    first, last = _show_whole(shown[0]), _show_whole(shown[-1])
    return first if first == last else f"{first} to {last}"


def _show_whole(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else show_number(value)


def name_method(score: Score) -> str:
    """Name the method of a figure: the method, the variant of an attacker, and the figure."""
    return ", ".join(filter(None, (score.method, score.variant, score.figure)))


def show_figure(score: Score, show: ShowNumber = show_number) -> str:
    """Show a figure with its interval."""
    interval = show_interval(score.low, score.high, show)
    return f"{show(score.value)} ({interval})" if interval else show(score.value)


def choose_digits(score: Score) -> ShowNumber:
    """Choose how to write the figures of a share: with more digits if rounding would contradict its verdict."""
    low = score.value if score.low is None else score.low
    pairs = (score.chance, low), (score.value, score.detectable)
    apart = [(one, other) for one, other in pairs if one is not None and other is not None and one < other]
    shown: tuple[ShowNumber, ...] = (show_number, *(partial(_show_digits, digits) for digits in (4, 6, 9)))
    return next((show for show in shown if all(show(one) != show(other) for one, other in apart)), shown[-1])


def _show_digits(digits: int, value: float | None) -> str:
    return show_number(value) if value is None or math.isinf(value) else f"{value:.{digits}g}"
