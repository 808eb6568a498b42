"""Radii without a largest value, from uniforms with as many digits as a guarantee needs.

Noise drawn from a uniform of 52 bits has a largest length. Outputs beyond it have probability 0 from one word and not
from another, so no pure bound holds. Here a uniform near 0 or 1 (one of 2^31) gets further digits of 52 bits from a
separate stream (:meth:`wordveil.crypto.streams.KeyedStream.digits`), until 20 bits of its distance to that end are
known.

Only values within ``2^-b`` of 0 or 1 are replaced, ``b = 52 J``, of ``c`` uniforms a token on average. So the bound may
be exceeded with a probability of at most ``delta = 2 c 2^-b (1 + e^(eps D))``, ``D`` the largest distance
(docs/proofs/finite-precision.md, which also says what is not proved). ``J`` is the least number of digits for which
that is at most 1e-12. One more digit is drawn if the last is not enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
from scipy.special import betaincc, gammainc, gammainccinv, gammaincinv

from wordveil.arrays import Float64, Int64
from wordveil.crypto.streams import DIGIT_BITS, Contexts, KeyedStream
from wordveil.errors import BundleError
from wordveil.geometry.euclidean import round_down

MAX_DIGITS = 2**16 // DIGIT_BITS
MAX_DELTA = 1e-12
_LN2 = math.log(2)
_TOP = 2**DIGIT_BITS - 1
# At least this many bits of the distance to an end are known.
_KNOWN = 2**20
_NEAR = _KNOWN / 2**DIGIT_BITS
# SciPy's quantiles serve down to exp(-20); beyond, quantiles are computed here from logarithms.
_FAR = -20.0
_STEPS = 100
_TINY = 1e-300
_ROUND_UP = 1 + 1e-9


class End(NamedTuple):
    """Number between 0 and 1: whether its nearer end is 0, and the logarithm of the distance to that end."""

    log: float
    low: bool


def end_of(digits: Iterator[int], max_digits: int) -> End:
    """Read the uniform that digits of 52 bits form, from at most ``max_digits + 1`` of them."""
    first = next(digits)
    low = first <= _TOP // 2
    distance, taken = (first if low else _TOP - first), 1
    while distance < _KNOWN and taken <= max_digits:
        digit = next(digits)
        distance = (distance << DIGIT_BITS) | (digit if low else _TOP - digit)
        taken += 1
    return End(math.log(distance + 0.5) - taken * DIGIT_BITS * _LN2, low)


def find_ends(
    stream: KeyedStream, uniforms: Float64, context: Contexts, position: Int64, first: int, max_digits: int
) -> Iterator[tuple[int, int, End]]:
    """Find the ``uniforms``, ``(rows, tokens)``, near 0 or 1. Yield row, token, and the number by further digits.

    Row 0 is uniform number ``first`` of the stream.
    """
    if uniforms.min(initial=0.5) >= _NEAR and uniforms.max(initial=0.5) <= 1 - _NEAR:
        return  # nearly always, and in a few microseconds
    near = (uniforms < _NEAR) | (uniforms > 1 - _NEAR)
    for row, token in np.argwhere(near).tolist():
        digit = int(uniforms[row, token] * 2.0**DIGIT_BITS)
        further = stream.digits(context[token], int(position[token]), first + row)
        yield row, token, end_of(chain([digit], further), max_digits)


def log_at(end: End) -> float:
    """Compute the logarithm of the number."""
    return end.log if end.low else math.log1p(-math.exp(end.log))


def gamma_at(shape: float, end: End) -> float:
    """Compute the quantile of Gamma(``shape`` >= 1, 1) at this number; positive, since callers divide by it."""
    if end.log > _FAR:
        quantile = gammaincinv if end.low else gammainccinv
        return float(quantile(shape, math.exp(end.log)))
    return max(_TINY, gamma_lower(shape, end.log) if end.low else gamma_upper(shape, end.log))


def gamma_upper(shape: float, log: float) -> float:
    """Solve ``ln P(Gamma(shape, 1) > x) = log <= -20`` for ``x``.

    The left side is concave, falls, and starts at most at ``log``, so Newton's steps come down to ``x`` and never cross
    it.
    """
    x = shape + math.sqrt(-2 * shape * log) - log
    constant = math.lgamma(shape)
    for _ in range(_STEPS):
        fraction = _fraction(shape, x)
        step = (shape * math.log(x) - x - constant + math.log(fraction) - log) * x * fraction
        x += step
        if abs(step) <= 1e-15 * x:
            break
    return x


def gamma_lower(shape: float, log: float) -> float:
    """Solve ``ln P(Gamma(shape, 1) <= x) = log <= -20`` for ``x``; 0 if that is below float64's range.

    The left side is concave in ``ln x``, rises, and starts at most at ``log``, so Newton's steps rise to ``ln x``.
    """
    constant = math.lgamma(shape + 1)
    log_x = (log + constant) / shape
    for _ in range(_STEPS):
        series = _series(shape, math.exp(log_x))
        step = (log - (shape * log_x - math.exp(log_x) - constant + math.log(series))) * series / shape
        log_x += step
        if abs(step) <= 1e-15 * max(1.0, abs(log_x)):
            break
    return math.exp(log_x)


def _fraction(shape: float, x: float) -> float:
    """Compute ``e^x x^-shape Gamma(shape, x)``, ``x > shape + 1``: Legendre's continued fraction, Lentz's method."""
    b = x + 1 - shape
    numerator, denominator = math.inf, 1 / b
    value, number, change = denominator, 0, 0.0
    while abs(change - 1) > 1e-15:
        number += 1
        a, b = number * (shape - number), b + 2
        denominator = 1 / (a * denominator + b)
        numerator = b + a / numerator
        change = numerator * denominator
        value *= change
    return value


def _series(shape: float, x: float) -> float:
    """Sum ``1 + x / (shape + 1) + x^2 / ((shape + 1)(shape + 2)) + ...`` for ``x < shape``."""
    total = term = 1.0
    while term > 1e-17 * total:
        shape += 1
        term *= x / shape
        total += term
    return total


class Depth(NamedTuple):
    """Number of digits that uniforms may have, and the probability ``delta`` missed beyond them, rounded up."""

    digits: int
    delta: float


def missed_probability(uniforms: int, digits: int, nats: float) -> float:
    """Compute ``2 c 2^-b (1 + e^nats)`` of the module, rounded up, for ``c`` uniforms of ``b = 52 digits`` bits."""
    log = math.log(2 * uniforms) - digits * DIGIT_BITS * _LN2 + float(np.logaddexp(0.0, nats))
    return math.exp(min(log, 0.0)) * _ROUND_UP


def depth(uniforms: int, epsilon: float, added: float, diameter: float, min_epsilon: float = 0.0) -> Depth:
    """Find the least depth that misses at most 1e-12, for the loss ``epsilon + added`` per unit of distance.

    ``uniforms``: mean number for a token's radius. ``min_epsilon``: excluded lower bound of ``epsilon``. Raises
    :class:`BundleError` if no depth is enough.
    """
    nats = (epsilon + added) * diameter
    for digits in range(1, MAX_DIGITS + 1):
        if (delta := missed_probability(uniforms, digits, nats)) <= MAX_DELTA:
            return Depth(digits, delta)
    max_nats = math.log(MAX_DELTA / _ROUND_UP) - math.log(2 * uniforms) + MAX_DIGITS * DIGIT_BITS * _LN2
    largest = round_down((max_nats / diameter - added) * (1 - 1e-9), 5)
    advice = f"The largest epsilon that is possible here is {largest:.5g}."
    if largest <= min_epsilon:
        advice = "No epsilon is possible here. Take mechanism.name: exponential."
    raise BundleError(
        f"mechanism.epsilon = {epsilon:g}: the diameter of this embedding is {diameter:g}, so one token may cost "
        f"{nats:g}. Noise that keeps such a bound needs more than the {MAX_DIGITS * DIGIT_BITS} random bits that a "
        f"number may have. {advice}"
    )


def digits_at(digits: int, ratio: float) -> int:
    """Scale ``digits``, enough for one epsilon, to ``ratio`` times that epsilon, up to the most there are."""
    return math.ceil(min(float(MAX_DIGITS), digits * max(1.0, ratio)))


# The density is computed at this many points of the radius's logarithm, from where the density is e^-70 of its height.
_POINTS, _DEPTH = 20_001, 70.0
_LOGARITHMS = np.linspace(-60.0, 60.0, 12_001)


def euclidean_laplace(radii: Float64, n: int, epsilon: float) -> Float64:
    """Compute the law for ``exp(-epsilon |z|)``: Gamma(n, 1/epsilon) (Fernandes, Dras, McIver 2019, algorithm 2)."""
    return np.asarray(gammainc(n, epsilon * radii))


def hyperbolic_laplace(radii: Float64, n: int, epsilon: float) -> Float64:
    """Compute the law for ``exp(-epsilon r)`` by hyperbolic volume: ``exp(-2r)`` is Beta((epsilon - n + 1)/2, n)."""
    return np.asarray(betaincc((epsilon - n + 1) / 2, n, np.exp(-2 * radii)))


def hyperbolic_fdd(radii: Float64, n: int, epsilon: float) -> Float64:
    """Compute the law for ``exp(-epsilon r)`` by Lebesgue measure in the ball (Feyisetan, Diethe, Drake 2019, Eq. 7).

    Simpson's rule integrates the radius's density, proportional to ``exp(-epsilon r) sech^{2n}(r/2) sinh^{n-1} r``.
    """
    from scipy.integrate import cumulative_simpson  # takes longer to load than the rest of this package

    rough = _log_fdd(_LOGARITHMS, n, epsilon)
    inside = _LOGARITHMS[rough > rough.max() - _DEPTH]
    logarithms = np.linspace(inside[0], inside[-1], _POINTS)
    density = np.exp(_log_fdd(logarithms, n, epsilon) - rough.max())
    below = cumulative_simpson(density, x=logarithms, initial=0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.interp(np.log(radii), logarithms, below / below[-1]))


def _log_fdd(logarithms: Float64, n: int, epsilon: float) -> Float64:
    """Compute the logarithm of the density of the radius's logarithm, up to a constant."""
    r = np.exp(np.minimum(logarithms, 600.0))
    area = r + np.log(-np.expm1(-2 * r))
    return np.asarray(logarithms - epsilon * r - n * (r + 2 * np.log1p(np.exp(-r))) + (n - 1) * area)
