"""Whole numbers of nested clusters: the probability of each level, and its cost.

A word lies in nested clusters of ``n_1 < ... < n_L = N`` words, with losses ``0 = E_1 < ... < E_L``. An output whose
lowest common cluster with the word is of level ``l`` has probability ``p_l = A exp(-E_l)``: a mixture of uniform laws
over the word's clusters, whose shares ``q_l = n_l A (exp(-E_l) - exp(-E_(l+1)))`` are rounded to whole numbers over
``2^64``.

Losses are computed from these with 50 digits and rounded up, for levels ``l`` from ``j``, on which two words meet:

    ln p_1(w) - ln p_j(v),   ln p_1(v) - ln p_j(w),   |ln p_l(w) - ln p_l(v)|

The rank in a cluster, ``floor(B n / 2^64)``, has a probability within ``2^-64`` of ``1 / n``, so twice ``N 2^-64`` is
added to every loss except 0. :mod:`decimal` rounds exponentials and logarithms correctly, so results are equal on every
machine. docs/proofs/tree.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_DOWN, Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

WHOLE = 2**64
_DIGITS = 50
_STEPS = 60
_ZERO, _ONE = Decimal(0), Decimal(1)
# Reduced losses are reduced by this part more, to leave slack for rounding to whole numbers.
_ROOM = Decimal("1e-12")
# Intended losses that would grow by less than this are large enough.
_NEAR = 1 + Decimal("1e-9")


@dataclass(frozen=True)
class Mixture:
    """Law of a symbol: uniform laws over nested sets of words, and padding.

    ``sizes``: words of each set, rising. ``numbers``, ``pad``: the share of each set and of padding; together 2^64.
    """

    sizes: tuple[int, ...]
    numbers: tuple[int, ...]
    pad: int = 0

    @property
    def probabilities(self) -> list[Fraction]:
        """Probability of a word of each set that is in no smaller one, exact except for ranks."""
        probabilities, total = [], Fraction(0)
        for size, number in zip(reversed(self.sizes), reversed(self.numbers), strict=True):
            total += Fraction(number, size * WHOLE)
            probabilities.append(total)
        return probabilities[::-1]

    @property
    def logs(self) -> list[Decimal]:
        """Logarithms of :attr:`probabilities`; minus infinity for 0."""
        return [_log(probability) for probability in self.probabilities]


@dataclass(frozen=True)
class Losses:
    """Upper bounds of the losses of mixtures, in nats.

    ``levels``: between two words whose lowest common cluster is of each level; 0 for the lowest. ``others``: between
    unknown word, padding and any symbol.
    """

    levels: tuple[Decimal, ...]
    others: Decimal

    @property
    def largest(self) -> Decimal:
        """Bound on the loss between any two symbols."""
        return max(*self.levels, self.others)


@dataclass(frozen=True)
class Levels:
    """Mixtures of all symbols, and their losses.

    ``words``: for each shape of nested clusters, as given. ``unknown``, ``padding``: equal if padding is no symbol.
    ``pad_share``: the probability that padding stays padding, or 0.
    """

    words: tuple[Mixture, ...]
    unknown: Mixture
    padding: Mixture
    losses: Losses
    pad_share: float


class PadShareError(ValueError):
    """Error for a too large share of paddings to keep. ``largest``: the largest allowed, rounded down."""

    def __init__(self, largest: float) -> None:
        super().__init__(f"at most {largest:g}")
        self.largest = largest


def solve_levels(
    shapes: Sequence[tuple[int, ...]], losses: Sequence[float], *, padding: bool, pad_share: float | None = None
) -> Levels:
    """Find whole numbers whose certified losses keep to ``losses``.

    If sizes of clusters differ by one, the intended losses are reduced until those of the numbers are not above
    ``losses``.

    ``shapes``: the sizes of words' nested clusters, each rising to the number of all words. ``losses``: one a level,
    rising from 0; the last also bounds the losses of unknown word and padding. ``pad_share``: the probability that
    padding stays padding; None: the largest possible. Raises :class:`PadShareError` if ``pad_share`` is too large, and
    :class:`ValueError` if no numbers of 64 bits keep to ``losses``, as when these fall.
    """
    limits = [Decimal(loss) for loss in losses]
    with localcontext(prec=_DIGITS):
        levels = _keep_to(shapes, limits, padding=padding, pad_share=None)
        if not padding or pad_share is None:
            return levels
        if pad_share > levels.pad_share:
            raise PadShareError(float(Context(prec=6, rounding=ROUND_DOWN).create_decimal_from_float(levels.pad_share)))
        return _keep_to(shapes, limits, padding=padding, pad_share=Decimal(pad_share))


def _keep_to(
    shapes: Sequence[tuple[int, ...]], limits: Sequence[Decimal], *, padding: bool, pad_share: Decimal | None
) -> Levels:
    """Find the largest intended losses whose certified losses keep to ``limits``, by fixed-point iteration."""
    chosen, best = list(limits), None
    for _ in range(_STEPS):
        levels = _with_padding(shapes, chosen, limits[-1], padding=padding, pad_share=pad_share)
        ratios = [
            _change(loss, limit, intended)
            for loss, limit, intended in zip(levels.losses.levels, limits, chosen, strict=True)
        ]
        if levels.losses.others > limits[-1]:
            ratios[-1] = min(ratios[-1], _change(levels.losses.others, limits[-1], chosen[-1]))
        loss_limits = zip((*levels.losses.levels, levels.losses.others), (*limits, limits[-1]), strict=True)
        if all(loss <= limit for loss, limit in loss_limits):
            best = levels
            if max(ratios) <= _NEAR:
                break
        chosen = [loss * ratio for loss, ratio in zip(chosen, ratios, strict=True)]
        for level in range(len(chosen) - 2, -1, -1):
            chosen[level] = min(chosen[level], chosen[level + 1])
    if best is None:
        raise ValueError("no whole numbers of 64 bits keep to these losses")
    return best


def _change(loss: Decimal, limit: Decimal, intended: Decimal) -> Decimal:
    """Compute the factor for an intended loss, never above ``limit``, that brings the certified one just under it."""
    return min(limit / loss * (1 - _ROOM), limit / intended) if loss and intended else _ONE


def _with_padding(
    shapes: Sequence[tuple[int, ...]],
    losses: Sequence[Decimal],
    epsilon: Decimal,
    *,
    padding: bool,
    pad_share: Decimal | None,
) -> Levels:
    """Compute the numbers for these losses. ``pad_share``: at most the largest possible one.

    Padding is an output of probability ``m = r exp(-epsilon)`` for every other symbol, where ``r`` is the share of
    paddings that come back; the others become all words alike. The largest ``r`` is ``(1 - x) / (1 - x exp(-epsilon))``
    with ``x = N p_1 exp(-epsilon)`` (docs/proofs/tree.md). Use slightly less than ``epsilon`` to leave slack for
    rounding of ranks.
    """
    size = shapes[0][-1]
    whole = Mixture((size,), (WHOLE,))
    if not padding:
        words = tuple(Mixture(shape, weigh_levels(shape, losses, WHOLE)) for shape in shapes)
        return Levels(words, whole, whole, certify_levels(words, [whole]), 0.0)
    least = (_slack(size) * 2 - epsilon * (1 - _ROOM)).exp()
    likeliest = max(1 / sum(_weights(shape, losses), _ZERO) for shape in shapes)
    ratio = size * likeliest * least
    largest = (1 - ratio) / (1 - ratio * least) * (1 - _ROOM)
    share = largest if pad_share is None else min(pad_share, largest)
    pad = int((WHOLE * share * least).to_integral_value(ROUND_CEILING))
    stays = int(WHOLE * share)
    if not 0 < pad <= stays < WHOLE:
        raise ValueError("no whole numbers of 64 bits keep to these losses and bring padding back")
    words = tuple(Mixture(shape, weigh_levels(shape, losses, WHOLE - pad), pad) for shape in shapes)
    unknown, itself = Mixture((size,), (WHOLE - pad,), pad), Mixture((size,), (WHOLE - stays,), stays)
    return Levels(words, unknown, itself, certify_levels(words, [unknown, itself]), stays / WHOLE)


def weigh_levels(sizes: Sequence[int], losses: Sequence[Decimal], room: int) -> tuple[int, ...]:
    """Round the shares of levels up to whole numbers of at least 1 with sum ``room``. The lowest level gets the rest.

    ``sizes``: of the nested clusters, rising. ``losses``: rising from 0. Raises :class:`ValueError` if losses fall, or
    the numbers do not fit.
    """
    with localcontext(prec=_DIGITS):
        weights = _weights(sizes, losses)
        total = sum(weights, _ZERO)
        above = [max(int((room * weight / total).to_integral_value(ROUND_CEILING)), 1) for weight in weights[1:]]
    if min(weights) < 0 or (rest := room - sum(above)) < 1:
        raise ValueError("losses must rise with the level, in steps that whole numbers of 64 bits can tell apart")
    return (rest, *above)


def _weights(sizes: Sequence[int], losses: Sequence[Decimal]) -> list[Decimal]:
    """Compute ``n_l (exp(-E_l) - exp(-E_(l+1)))``, which add up to ``1 / A``."""
    falls = [(-loss).exp() for loss in losses] + [_ZERO]
    return [size * (here - above) for size, (here, above) in zip(sizes, pairwise(falls), strict=True)]


def certify_levels(words: Sequence[Mixture], others: Sequence[Mixture]) -> Losses:
    """Compute the losses of mixtures from their whole numbers.

    ``words``: with equally many nested clusters; two are taken to meet at level ``j`` if all their sizes from there on
    are equal. ``others``: of the unknown word and padding, whose one set is all words. A loss is infinite if one symbol
    has an output that another lacks.
    """
    # For two words that meet at level j the module lists the ratios that occur. The largest over all pairs that share
    # their sizes from j on is the largest minus the least logarithm in each group, so that no pair is enumerated. Other
    # symbols have one probability for every word, which is compared with the greatest and the least that words give.
    with localcontext(prec=_DIGITS):
        logs = [mixture.logs for mixture in words]
        slack = _slack(others[0].sizes[0])
        depth = len(logs[0])
        if any(len(log) != depth for log in logs):
            raise ValueError("words have different numbers of nested clusters")
        levels = [_ZERO]
        for level in range(1, depth):
            groups: dict[tuple[int, ...], list[list[Decimal]]] = {}
            for mixture, log in zip(words, logs, strict=True):
                groups.setdefault(mixture.sizes[level:], []).append(log)
            levels.append(max(_meeting_loss(group, level) for group in groups.values()))
        flat = [mixture.logs[0] for mixture in others]
        greatest, least = max(log[0] for log in logs), min(log[-1] for log in logs)
        spans = [_span([greatest, *flat]), _span([least, *flat])]
        pads = {mixture.pad for mixture in [*words, *others]}
        spans.append(_span([_log(Fraction(pad, WHOLE)) for pad in pads]) if pads != {0} else _ZERO)
        if len({mixture.pad for mixture in words}) > 1:  # no longer a loss of words' clusters alone
            levels = [max(loss, spans[-1]) for loss in levels]
        return Losses(tuple(loss + slack if loss else loss for loss in levels), max(spans) + slack)


def _slack(size: int) -> Decimal:
    """Bound what ranks in clusters may add to a loss."""
    return 2 * Decimal(size) / WHOLE


def _meeting_loss(group: list[list[Decimal]], level: int) -> Decimal:
    """Compute the largest loss between words with these logarithms that meet at ``level``."""
    inside = max(log[0] for log in group) - min(log[level] for log in group)
    return max(inside, *(_span([log[above] for log in group]) for above in range(level, len(group[0]))))


def _span(values: Sequence[Decimal]) -> Decimal:
    """Compute the greatest value minus the smallest; infinite if one is minus infinity."""
    low, high = min(values), max(values)
    return Decimal("Infinity") if low.is_infinite() else high - low


def _log(value: Fraction) -> Decimal:
    return (Decimal(value.numerator) / Decimal(value.denominator)).ln() if value else Decimal("-Infinity")


def round_loss(loss: Decimal) -> float:
    """Round to the smallest float64 that is not below ``loss``."""
    near = float(loss)
    return near if Decimal(near) >= loss else math.nextafter(near, math.inf)
