"""Radii have no largest value: deep uniforms lie where their digits say, quantiles hold at every depth, and what is
missed is what is recorded.

A stream can be steered: some of its uniforms begin with given digits, as one in 2^52 and fewer do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from itertools import chain, islice, repeat
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats
from scipy.special import gammainccinv, gammaincinv

from support.toys import (
    KEYS,
    build,
    counted_contexts,
    load_built,
    random_embedding,
    sequences,
    token_batch,
    toy_embedding,
)
from wordveil.crypto.streams import CONTEXT_BYTES, Contexts, KeyedStream
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.geometry.hyperbolic import to_lorentz
from wordveil.mechanisms.additive import hyperbolic, tails
from wordveil.mechanisms.additive.hyperbolic import HyperbolicFDD, HyperbolicLaplace
from wordveil.mechanisms.additive.laplace import Laplace
from wordveil.mechanisms.additive.tails import (
    MAX_DIGITS,
    depth,
    end_of,
    gamma_at,
    gamma_lower,
    gamma_upper,
    missed_probability,
)
from wordveil.mechanisms.registry import MECHANISMS

TOP = 2**52 - 1
LN2 = math.log(2)
SHAPES = [1.0, 1.5, 2.0, 11.0, 101.0, 301.0, 1000.5]
ADDITIVE = pytest.mark.parametrize("name", ["laplace", "hyperbolic-laplace", "hyperbolic-fdd"])
ACCEPT, REJECT = 1e-4, 1e-6


def embedding_for(name: str, size: int = 40, dimension: int = 6) -> Embedding:
    found = random_embedding(size, dimension)
    return replace(found, vectors=found.vectors * np.float32(0.1)) if name.startswith("hyperbolic") else found


class Steered(KeyedStream):
    """A stream whose uniforms of some numbers begin with given digits, at every position; what follows is the stream's
    own.
    """

    def __init__(self, blocks: int, given: Mapping[int, Sequence[int]]) -> None:
        super().__init__(KEYS.noise, blocks)
        self._given = given

    def uniforms(
        self, context: Contexts, position: NDArray[np.int64], part: tuple[int, int] | None = None
    ) -> NDArray[np.float64]:
        found = super().uniforms(context, position, part)
        first = 2 * (part or (0, 0))[0]
        for number, digits in self._given.items():
            if first <= number < first + len(found):
                found[number - first] = (digits[0] + 0.5) / 2**52
        return found

    def digits(self, context: Contexts, position: int, number: int) -> Iterator[int]:
        return chain(self._given.get(number, [0])[1:], super().digits(context, position, number))


def steered(real: Any, given: Mapping[int, Sequence[int]]) -> tuple[Steered, Contexts, NDArray[np.int64]]:
    return Steered(real._blocks, given), counted_contexts(8), np.arange(8)


# Digits.


def whole(number: int, count: int) -> list[int]:
    """The digits of a whole number of ``52 count`` bits."""
    return [number >> 52 * place & TOP for place in reversed(range(count))]


@pytest.mark.parametrize("low", [True, False])
def test_a_uniform_lies_where_its_digits_say(low: bool) -> None:
    rng = np.random.default_rng(1)
    for zeros in range(5):
        for digit in (1, 7, 2**19, 2**20 - 1, 2**20, 2**40, 2**51 - 1):
            digits = [0] * zeros + [digit] + rng.integers(0, 2**52, 12).tolist()
            found = end_of(iter(digits if low else [TOP - d for d in digits]), 10)
            assert found.low == low
            exact = sum(d * 2.0 ** (-52 * (place + 1)) for place, d in enumerate(digits[: zeros + 3]))
            assert math.exp(found.log) == pytest.approx(exact, rel=2.0**-20)


def test_a_uniform_rises_across_digits() -> None:
    """Numbers of five digits on both sides of each place where one digit more or less is taken."""
    edges = [2 ** (20 + 52 * place) + step * 2 ** (52 * place) for place in range(5) for step in (-2, -1, 0, 1, 2)]
    numbers = sorted({0, 1, 2, *edges, *(edge + 1 for edge in edges), *(2**power for power in range(258))})
    logs = [end_of(iter(whole(number, 5)), 4).log for number in numbers]
    assert logs == sorted(logs)
    for number, log in zip(numbers, logs, strict=True):
        assert log == pytest.approx(math.log(number + 0.5) - 260 * LN2, abs=2.0**-20)


@pytest.mark.parametrize("first", [0, 1, TOP])
def test_what_follows_a_first_digit_is_uniform(first: int) -> None:
    """Given the first digit, the rest of the number is uniform between this value and the next."""
    stream = KeyedStream(KEYS.noise, 1)
    contexts = counted_contexts(4000, series=3)
    found = [end_of(chain([first], stream.digits(context, 5, 2)), 6) for context in contexts]
    distance = np.array([math.exp(end.log + 52 * LN2) for end in found]) - min(first, TOP - first)
    assert {end.low for end in found} == {first < TOP}
    assert stats.kstest(distance, "uniform").pvalue > ACCEPT
    assert stats.kstest(distance**1.2, "uniform").pvalue < REJECT


def test_further_digits_belong_to_one_uniform() -> None:
    """Another key, context, position or number has others, and none is a word of the stream itself."""
    rows = counted_contexts(2)
    streams = [KeyedStream(key, 3) for key in (KEYS.noise, KEYS.shuffle)]
    found = [
        tuple(islice(stream.digits(row, position, number), 5))
        for stream in streams
        for row in rows
        for position in (0, 1)
        for number in (0, 1)
    ]
    assert len({digit for digits in found for digit in digits}) == 80
    assert found[0] == tuple(islice(KeyedStream(KEYS.noise, 2).digits(rows[0], 0, 0), 5))
    words = streams[0].words(np.repeat(rows, 50, axis=0), np.tile(np.arange(50), 2)) >> np.uint64(12)
    assert not {digit for digits in found for digit in digits} & set(words.ravel().tolist())


# Quantiles.


@pytest.mark.parametrize("shape", SHAPES)
def test_quantiles_agree_with_those_of_scipy_where_it_has_them(shape: float) -> None:
    for log in (-20.001, -22.2, -36.0, -100.0, -300.0, -600.0):
        assert gamma_upper(shape, log) == pytest.approx(gammainccinv(shape, math.exp(log)), rel=1e-11), log
        assert gamma_lower(shape, log) == pytest.approx(gammaincinv(shape, math.exp(log)), rel=1e-11), log


@pytest.mark.parametrize("log", [-20.5, -100.0, -600.0, -700.0, -2_000.0, -65_000.0])
def test_upper_quantiles_keep_to_closed_forms(log: float) -> None:
    assert gamma_upper(1.0, log) == pytest.approx(-log, rel=1e-14)
    for shape in (2, 3):
        x = gamma_upper(float(shape), log)
        polynomial = sum(x**power / math.factorial(power) for power in range(shape))
        assert -x + math.log(polynomial) == pytest.approx(log, rel=1e-13)


@pytest.mark.parametrize("shape", [3.0, 101.0, 301.0, 1000.5])
@pytest.mark.parametrize("log", [-20.5, -100.0, -600.0, -1_500.0])
def test_lower_quantiles_keep_to_quadrature(shape: float, log: float) -> None:
    assert gamma_lower(1.0, max(log, -690)) == pytest.approx(-math.log1p(-math.exp(max(log, -690))), rel=1e-12)
    x = gamma_lower(shape, log)
    part, _ = integrate.quad(lambda s: math.exp((shape - 1) * math.log(s) + x * (1 - s)), 1e-9, 1, limit=200)
    assert shape * math.log(x) - x - math.lgamma(shape) + math.log(part) == pytest.approx(log, rel=1e-9)


@pytest.mark.parametrize("shape", [1.0, 1.5, 301.0, 1e5])
def test_quantiles_are_finite_and_monotone_at_every_depth(shape: float) -> None:
    logs = -LN2 * np.concatenate([np.linspace(1.0, 60.0, 120), np.linspace(61.0, 52 * (MAX_DIGITS + 1) + 1, 40)])
    upper = [gamma_at(shape, tails.End(log, low=False)) for log in logs]
    lower = [gamma_at(shape, tails.End(log, low=True)) for log in logs]
    assert np.isfinite(upper + lower).all()
    assert (np.diff(upper) > 0).all()
    assert (np.diff(lower) <= 0).all()
    assert min(lower) > 0
    assert upper[-1] > 0.999 * -logs[-1] > 45_000


# What is missed.


def exact_missed(uniforms: int, digits: int, nats: float) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return 2 * uniforms * Decimal(2) ** (-52 * digits) * (1 + Decimal(nats).exp())


@pytest.mark.parametrize("uniforms", [1, 6, 100])
def test_delta_is_rounded_up_and_the_depth_is_the_least(uniforms: int) -> None:
    for nats in (0.0, 0.7, 8.0, 36.7, 43.4, 100.0, 173.6, 520.8, 5_000.0, 45_000.0):
        digits, delta = depth(uniforms, nats, 0.0, 1.0)
        exact = exact_missed(uniforms, digits, nats)
        assert exact <= Decimal(delta) <= exact * Decimal(1 + 1e-8), nats
        assert delta <= 1e-12, nats
        assert digits == 1 or exact_missed(uniforms, digits - 1, nats) > Decimal("0.99e-12"), nats
    assert missed_probability(uniforms, 1, 1e9) >= 1


@ADDITIVE
def test_what_is_built_records_its_depth(name: str) -> None:
    kind = MECHANISMS[name]
    built = build(embedding_for(name), {"epsilon": 40.0}, padding=False, mechanism=name)
    guarantee, uniforms = built.guarantee, {"laplace": 1, "hyperbolic-laplace": 6, "hyperbolic-fdd": 6}[name]
    expected = depth(uniforms, guarantee.epsilon, 0.0, guarantee.diameter)
    assert (built.parameters["digits"], guarantee.delta) == pytest.approx(expected, rel=1e-9)
    assert 0 < guarantee.delta <= 1e-12
    loaded: Any = load_built(kind, 40, built)
    assert loaded._digits == expected.digits
    assert loaded.at_epsilon(20.0)._digits == expected.digits
    assert loaded.at_epsilon(120.0)._digits == 3 * expected.digits
    assert loaded.at_epsilon(1e9)._digits == MAX_DIGITS


@ADDITIVE
def test_build_epsilon_beyond_all_depths_names_the_largest(name: str) -> None:
    embedding = embedding_for(name)
    diameter = build(embedding, {"epsilon": 40.0}, padding=False, mechanism=name).guarantee.diameter
    with pytest.raises(BundleError, match=rf"mechanism\.epsilon = 1e\+08.* diameter .* {diameter:g}") as refused:
        build(embedding, {"epsilon": 1e8}, padding=False, mechanism=name)
    largest = float(re.findall(r"possible here is (\S+)\.$", str(refused.value))[0])
    built = build(embedding, {"epsilon": largest}, padding=False, mechanism=name)
    assert built.parameters["digits"] == MAX_DIGITS
    with pytest.raises(BundleError, match=f"possible here is {largest:g}"):
        build(embedding, {"epsilon": largest * 1.001}, padding=False, mechanism=name)


def test_where_no_epsilon_is_possible_the_refusal_says_so() -> None:
    with pytest.raises(BundleError, match=r"No epsilon is possible here.*exponential"):
        depth(6, 1.0, 2000.0, 40.0)
    with pytest.raises(BundleError, match="No epsilon is possible here"):
        depth(1500, 3000.0, 0.0, 37.0, min_epsilon=1499.0)


# Laplace.


@pytest.mark.parametrize("word", [0, 2**64 - 1])
@pytest.mark.parametrize("further", [0, 2**64 - 1])
def test_a_word_reaches_another_at_a_hundred_nats(monkeypatch: pytest.MonkeyPatch, word: int, further: int) -> None:
    """Two words at distance 1, epsilon 100: no radius of 52 bits goes half the way, so that the output was certain.

    The word of the radius is the least or the greatest, and so are those that continue it; one of the four cases must
    get across.
    """
    real = KeyedStream.words

    def extreme(self: KeyedStream, *where: Any) -> NDArray[np.uint64]:
        words = real(self, *where)
        if self.blocks == 1:
            words = np.full_like(words, further)
        else:
            words[2] = word
        return words

    built = build(toy_embedding(["a", "b"], [[0.0, 1.0], [1.0, 1.0]]), {"epsilon": 100.0}, padding=False)
    mechanism = load_built(Laplace, 2, built)
    monkeypatch.setattr(KeyedStream, "words", extreme)
    crossed = set(mechanism.draw(token_batch([[0] * 100, [1] * 100]), KEYS).ids.reshape(2, 100)[0].tolist()) == {0, 1}
    assert crossed == (word == further == 2**64 - 1)


def laplace(dimension: int, epsilon: float, digits: int) -> Laplace:
    built = build(random_embedding(5, dimension), {"epsilon": 1.0}, padding=False)
    return Laplace(5, epsilon, built.arrays["index"], padding=False, digits=digits)


@pytest.mark.parametrize("dimension", [1, 2, 3, 101])
@pytest.mark.parametrize("low", [True, False])
def test_the_radius_is_the_true_quantile_at_each_depth(dimension: int, low: bool) -> None:
    epsilon = 100.0
    real = laplace(dimension, epsilon, 60)
    for taken in (1, 2, 5, 40):
        extreme = [0 if low else TOP] * taken
        noise = real._noise(*steered(real, {dimension: [*extreme, 2**51, *repeat(0, 3)]}))
        radius = np.sqrt((noise**2).sum(axis=0))
        log = math.log((2**51 + 0.5) / 2**52) - 52 * taken * LN2
        expected = (gamma_lower if low else gamma_upper)(dimension, log) / epsilon
        assert np.allclose(radius, max(expected, 1e-300), rtol=1e-9, atol=1e-150), taken
        if dimension == 1 and not low:
            assert np.allclose(radius, -log / epsilon, rtol=1e-12), taken


# Hyperbolic space.


def law(kind: type[Any], dimension: int, epsilon: float, digits: int) -> Any:
    return kind(1, epsilon, to_lorentz(np.zeros((dimension, 2))).T.copy(), digits=digits)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_hyperbolic_laplace_reaches_far_radii(dimension: int) -> None:
    real = law(HyperbolicLaplace, dimension, dimension + 20.0, 4)
    first = 2 * real._direction_blocks
    given = {first + row: [0, 0, 2**51 - row, 0] for row in range(dimension)}
    t, rest = real.contractions(*steered(real, given))
    double = sum(-(math.log(2**51 - row + 0.5) - 156 * LN2) / (10.5 + row) for row in range(dimension))
    assert np.allclose(-np.log(t), double, rtol=1e-12)
    assert np.allclose(t + rest, 1.0)
    near = {first + row: [TOP] * 6 for row in range(dimension)}
    t, rest = real.contractions(*steered(real, near))
    assert (t == 1.0).all()
    assert ((rest >= 0) & (rest < 1e-60)).all()


@pytest.mark.parametrize("depth_", [1, 20, MAX_DIGITS])
@pytest.mark.parametrize("kind", [HyperbolicLaplace, HyperbolicFDD])
def test_extreme_digits_give_finite_noise(kind: type[Any], depth_: int) -> None:
    real = law(kind, 3, 20.0, depth_)
    first = 2 * real._direction_blocks
    for choice in (0, 2, 5, 7):
        digits = [[0 if choice >> row & 1 else TOP] * (depth_ + 1) for row in range(3)]
        given = {first + number: digits[number % 3] for number in range(2 * real._blocks - first)}
        noise = real.noise(*steered(real, given))
        assert np.isfinite(noise).all()
        assert (noise[0] > 0).all()


def test_fdd_reaches_far_radii_with_a_small_enough_coin() -> None:
    """A proposal that is accepted once in e^150: three digits of the coin are not enough to accept it, five are."""
    real = law(HyperbolicFDD, 2, 300.0, 8)
    first = 2 * real._direction_blocks
    far = [0, 0, 2**50, 0]
    inner, outer = (
        gamma_at(real._inner, tails.End(math.log(0.25), low=False)),
        gamma_lower(real._outer, math.log(0.25) - 104 * LN2),
    )
    log_accepted = -300.0 * (
        math.log1p(inner / (inner + outer)) - real._tilt * math.log(inner / (inner + outer)) - real._log_most
    )
    base = {first: [TOP - 2**50, 0], first + 1: far}
    coins = [math.log(0.5) - 52 * zeros * LN2 for zeros in range(9)]
    zeros = next(count for count, log in enumerate(coins) if log < log_accepted)
    assert zeros >= 1
    taken, _ = real.contractions(*steered(real, {**base, first + 2: [0] * zeros + [2**51]}))
    rho = inner / (inner + outer)
    assert np.allclose(taken, ((1 - rho) / (1 + rho)) ** 2, rtol=1e-6)
    other, _ = real.contractions(*steered(real, {**base, first + 2: [0] * (zeros - 1) + [2**51 - 1]}))
    assert not np.isclose(other, taken).any()


def test_fdd_goes_on_after_its_first_attempts() -> None:
    """Every coin of the first 64 attempts is the largest: the old code took the last of them unasked."""
    real = law(HyperbolicFDD, 2, 30.0, 8)
    first = 2 * real._direction_blocks
    fixed = {first + 3 * attempt + row: [value] * 10 for attempt in range(64) for row, value in enumerate((0, 0, TOP))}
    t, _ = real.contractions(*steered(real, fixed))
    assert len(set(t.tolist())) == 8
    assert ((t > 0) & (t < 1)).all()


def radii(kind: type[Any], count: int, series: int) -> NDArray[np.float64]:
    real = law(kind, 3, 8.0, 3)
    t, _ = real.contractions(
        KeyedStream(KEYS.noise, real._blocks), counted_contexts(count, series=series), np.arange(count) % 5
    )
    return -0.5 * np.log(t)


def test_attempts_of_further_digits_have_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = radii(HyperbolicFDD, 20_000, 1)
    monkeypatch.setattr(hyperbolic, "_ATTEMPTS", 0)
    further = radii(HyperbolicFDD, 3_000, 2)
    assert stats.ks_2samp(ordinary, further).pvalue > ACCEPT
    assert stats.ks_2samp(ordinary * 1.3, further).pvalue < REJECT


# The way of digits and the ordinary one.


def small_mechanism(name: str) -> Any:
    embedding = embedding_for(name)
    epsilon = 3.0 if name == "laplace" else 9.0
    return load_built(MECHANISMS[name], 40, build(embedding, {"epsilon": epsilon}, padding=False, mechanism=name))


@ADDITIVE
def test_digits_and_floats_agree_where_none_is_added(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    real = small_mechanism(name)
    noise = real._noise if name == "laplace" else real.noise
    stream, contexts, positions = KeyedStream(KEYS.noise, real._blocks), counted_contexts(300), np.arange(300)
    ordinary = noise(stream, contexts, positions)
    monkeypatch.setattr(tails, "_NEAR", 0.5)
    assert np.allclose(noise(stream, contexts, positions), ordinary, rtol=1e-11, atol=1e-13)


@ADDITIVE
def test_further_digits_do_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Every uniform takes two digits here, and one more attempt is one token's own."""
    monkeypatch.setattr(tails, "_NEAR", 0.5)
    monkeypatch.setattr(tails, "_KNOWN", 2**60)
    monkeypatch.setattr(hyperbolic, "_ATTEMPTS", 1)
    real = small_mechanism(name)
    ids, contexts = [[1, 2, 3, 41], [5], [7] * 9], counted_contexts(3)
    drawn = sequences(real.draw(token_batch(ids, contexts), KEYS))
    for row in range(3):
        assert sequences(real.draw(token_batch(ids[row : row + 1], contexts[row : row + 1]), KEYS)) == [drawn[row]]
    assert len(set(drawn[2])) > 1


def test_rare_uniforms_alone_take_further_digits() -> None:
    """Those nearer than 2^-32 to an end, and at most two digits for one that lies between."""
    values = np.array([[0.0, 2.0**20 - 1, 2.0**20, 2.0**51, 2.0**52 - 2**20 - 1, 2.0**52 - 2**20, 2.0**52 - 1]])
    uniforms = (values + 0.5) / 2**52
    where = np.zeros((7, CONTEXT_BYTES), np.uint8), np.arange(7)
    found = {token: end for _, token, end in tails.find_ends(KeyedStream(KEYS.noise, 1), uniforms, *where, 0, 3)}
    assert {token: end.low for token, end in found.items()} == {0: True, 1: True, 5: False, 6: False}
    assert found[1].log == pytest.approx(math.log(2.0**-32), abs=1e-6)
