"""Nested clusters: settings, whole numbers of levels, what is written, and what attackers are told."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from support.exact_trees import drawn, shares, written_law
from support.toys import build, build_tree, law_of_word, load_built, random_embedding
from wordveil.config.load import parse_config
from wordveil.config.mechanisms import MECHANISM_SECTIONS
from wordveil.errors import BundleError
from wordveil.measures.estimates import make_matrix
from wordveil.mechanisms.inputs import PublicInputs
from wordveil.mechanisms.tree.levels import Mixture, certify_levels, round_loss, weigh_levels
from wordveil.mechanisms.tree.mechanism import Tree
from wordveil.mechanisms.tree.settings import TreeSettings

WHOLE = 2**64
SIZE = 61
ANY: dict[str, Any] = {"clusters": (14, 4), "least": 2, "losses": (0.0, 1.5)}
NINE: dict[str, Any] = {"clusters": (9,), "least": 3}
DEEP: dict[str, Any] = {"epsilon": 4.0, "sizes": (3, 8, 24), "losses": (0.0, 1.0, 2.5)}


def tree(*, padding: bool = False, inputs: PublicInputs | None = None, size: int = SIZE, **settings: Any) -> Tree:
    chosen = ({} if "clusters" in settings else {"sizes": (4,)}) | settings
    built = build_tree(random_embedding(size, 5), inputs or PublicInputs(), padding=padding, **chosen)
    return load_built(Tree, size, built)


# Settings.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sizes": ()}, "sizes: is empty"),
        ({"sizes": (20, 20), "losses": (0.0, 1.0)}, r"sizes: \[20, 20\] must rise"),
        ({"sizes": (20, 400)}, r"losses: \[\] must have one loss for each of sizes, here 2. Write \[0.0, loss 2\]"),
        ({"losses": (0.0, 1.0)}, "losses: .* here 1"),
        ({"losses": (0.5,)}, r"losses: \[0.5\] must begin with 0"),
        ({"sizes": (2, 8, 30), "losses": (0.0, 3.0, 2.0)}, r"losses: \[0.0, 3.0, 2.0\] must not fall"),
        ({"sizes": (2, 8), "losses": (0.0, 5.0)}, r"losses: \[0.0, 5.0\] must be at most epsilon = 4"),
        ({"sizes": (2, 8), "losses": (0.0, 1e-12)}, "losses: .* at least 1e-09"),
        ({"sizes": (4,), "clusters": (50,)}, r"clusters: \[50\] stand in place of sizes = \[4\]. Remove one"),
        ({"clusters": (1,)}, r"clusters: \[1\]: one cluster holds all words"),
        ({"clusters": (50, 1), "losses": (0.0, 1.0)}, r"clusters: \[50, 1\]: one cluster holds all words"),
        ({"clusters": (50, 50), "losses": (0.0, 1.0)}, r"clusters: \[50, 50\] must fall"),
        ({"clusters": (50, 9, 2), "losses": (0.0, 1.0, 2.0)}, r"clusters: \[50, 9, 2\]: each after the first"),
        ({"clusters": (50, 5)}, r"losses: \[\] must have one loss for each of clusters, here 2. Write \[0.0, loss 2\]"),
        ({"output": "hypernym", "pairs": "demo"}, r"clusters: is required with output: hypernym. Set it to .* \[500\]"),
        ({"output": "hypernym", "clusters": (50,)}, "pairs: is required with output: hypernym. Set it to demo"),
        ({"pairs": "p.tsv", "clusters": (50,)}, "pairs: p.tsv is used with output: hypernym alone. Set that, or"),
        ({"classes": "stop-words:en"}, "classes: stop-words:en is used with clusters alone. Set these, or remove c"),
        ({"merge": "sensitive"}, "merge: sensitive is used with clusters alone. Set these, or remove merge"),
    ],
)
def test_contradictions_name_the_setting_the_value_and_the_fix(settings, message):
    with pytest.raises(ValueError, match=message):
        TreeSettings(**{"epsilon": 4.0, **settings})


def test_a_configuration_has_the_settings():
    section = MECHANISM_SECTIONS["tree"].model_validate(
        {"name": "tree", "embedding": "demo", "public": True, "epsilon": 6.0, "sizes": [20, 400], "losses": [0, 3.5]}
    )
    plain = {"output": "representative", "pad_share": None}
    assert section.settings.recipe() == {"epsilon": 6.0, "sizes": [20, 400], "losses": [0, 3.5], **plain}
    assert section.settings.level_losses == [0, 3.5, 6.0]
    assert section.settings.at_epsilon(12.0).level_losses == [0, 7.0, 12.0]
    found: list[Any] = []
    written = {"name": "tree", "embedding": "demo", "public": True, "epsilon": 6.0, "sizes": [0], "losses": ["a"]}
    with pytest.raises(Exception, match=r"mechanism.losses.0 = a: .*\n.*mechanism.sizes.0 = 0: "):
        parse_config({"format_version": 2, "mechanism": written}, "test", found)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 25, "sizes": (20,)}, "mechanism.sizes = .*, for 25 words: Expected a size of at most"),
        ({"sizes": (5, 6), "losses": (0.0, 0.0)}, "mechanism.sizes = .*, for 61 words: Expected a size of at most"),
        ({"sizes": (10**400,)}, "two thirds of the next one or of all words"),
        ({"clusters": (13,), "least": 5}, r"mechanism.clusters = \[13\], for 61 words: 13 clusters of 5 words or more"),
    ],
)
def test_what_cannot_be_built_is_refused(settings, message):
    with pytest.raises(BundleError, match=message):
        tree(**settings)


def test_a_recipe_has_what_the_build_uses():
    assert {*TreeSettings(epsilon=4.0).recipe()} == {"epsilon", "sizes", "losses", "output", "pad_share"}
    by_number = TreeSettings(epsilon=4.0, clusters=(50,))
    assert {"clusters", "least", "weight", "rarity", "classes"} <= {*by_number.recipe()}
    assert "sizes" not in by_number.recipe()
    assert TreeSettings(**by_number.recipe()).recipe() == by_number.recipe()
    assert "pairs" not in by_number.recipe()
    assert TreeSettings(epsilon=4.0, clusters=(50,), output="hypernym", pairs="demo").recipe()["pairs"] == "demo"


# Whole numbers.


def test_numbers_are_the_shares_and_add_up():
    losses = [Decimal(0), Decimal("1.5"), Decimal(4)]
    sizes = (5, 40, 1000)
    numbers = weigh_levels(sizes, losses, WHOLE - 12345)
    assert sum(numbers) == WHOLE - 12345
    inverse = 5 + 35 * math.exp(-1.5) + 960 * math.exp(-4)
    mixture = Mixture(sizes, numbers, 12345)
    for probability, loss in zip(mixture.probabilities, losses, strict=True):
        assert float(probability) == pytest.approx(math.exp(-float(loss)) / inverse, rel=1e-14)
    told = certify_levels([mixture], [Mixture((1000,), (WHOLE - 12345,), 12345)])
    assert [float(loss) for loss in told.levels] == pytest.approx([0, 1.5, 4.0], rel=1e-14)


def test_losses_too_near_for_whole_numbers_are_refused():
    with pytest.raises(ValueError, match="must rise"):
        weigh_levels((5, 40), [Decimal(0), Decimal("1e-30")], WHOLE)
    with pytest.raises(ValueError, match="must rise"):
        weigh_levels((5, 40, 80), [Decimal(0), Decimal(2), Decimal(1)], WHOLE)


def test_an_output_that_a_word_lacks_costs_everything():
    told = certify_levels([Mixture((5, 40), (WHOLE, 0))], [Mixture((40,), (WHOLE,))])
    assert told.levels[1] == told.others == math.inf


def test_losses_are_rounded_up():
    assert Decimal(round_loss(Decimal("0.1"))) >= Decimal("0.1")
    assert round_loss(Decimal(0)) == 0.0
    third = Decimal(1) / 3
    assert 0 < Decimal(round_loss(third)) - third < Decimal("1e-15")


# What is drawn and written.


def test_draws_change_exactly_at_the_thresholds():
    mechanism = tree(padding=True, **DEEP)
    arrays = mechanism.table.arrays
    for symbol in (0, 30, SIZE, SIZE + 1):
        edge = 0
        for _, size, number in shares(arrays, symbol):
            for rank in (0, size // 2, size - 1):
                low, high = -(-rank * WHOLE // size), -(-(rank + 1) * WHOLE // size) - 1
                pairs = [(c, b) for c in (edge, edge + number - 1) for b in (low, high) if number]
                found = mechanism.table.draw(
                    np.full(len(pairs), symbol, np.int32), np.array(pairs, np.uint64).reshape(-1, 2)
                )
                assert found.tolist() == [drawn(arrays, symbol, *pair) for pair in pairs]
            edge += number
        assert edge == WHOLE


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("settings", [{}, DEEP, {**DEEP, "losses": (0.0, 0.0, 1.0)}, ANY, {"clusters": (2,)}], ids=str)
@pytest.mark.parametrize("output", ["member", "representative"])
def test_laws_are_those_of_the_whole_numbers(output, settings, padding):
    mechanism = tree(padding=padding, output=output, **settings)
    for symbol in (0, 7, SIZE - 1, SIZE + 1, *([SIZE] if padding else [])):
        exact = np.array(written_law(mechanism._arrays, symbol), np.float64) / 2.0**192
        assert mechanism.probabilities(symbol) == pytest.approx(exact, rel=1e-12)
    each = [mechanism.probabilities(word) for word in range(SIZE)]
    stays = np.diag(np.stack(each)[:, :SIZE])
    assert mechanism.stay_probabilities(np.arange(SIZE, dtype=np.int32)) == pytest.approx(stays)
    assert (np.count_nonzero(stays) == SIZE) == (output == "member")
    laws = mechanism.word_laws()
    assert laws is not None
    assert laws.common.sum() == pytest.approx(1)
    assert (laws.extras > 0).all()
    for word, law in enumerate(each):
        assert law_of_word(laws, word) == pytest.approx(law, rel=1e-9)


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("settings", [{}, DEEP, {**DEEP, "losses": (0.0, 0.0, 1.0)}, ANY, NINE], ids=str)
@pytest.mark.parametrize("output", ["member", "representative"])
def test_symbols_have_the_law_of_what_is_written(output, settings, padding):
    mechanism = tree(padding=padding, output=output, **settings)
    symbols = mechanism.symbols
    matrix = make_matrix(symbols.law)
    inputs = [*enumerate(symbols.read.tolist()), *([(SIZE, len(matrix) - 1)] if padding else [])]
    assert {symbol for _, symbol in inputs} == set(range(len(matrix)))
    for word, symbol in inputs:
        law = mechanism.probabilities(word)
        assert (law[symbols.written < 0] == 0).all()
        told = np.bincount(symbols.written[law > 0], law[law > 0], len(matrix))
        assert told == pytest.approx(matrix[symbol])
    assert (np.linalg.matrix_rank(matrix) == len(matrix)).all()


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("settings", [{}, DEEP, {"pad_share": 0.3}, ANY, {**ANY, "output": "member"}], ids=str)
def test_another_epsilon_is_as_if_built_with_it(settings, padding):
    chosen = TreeSettings(**{"epsilon": 4.0, **({} if "clusters" in settings else {"sizes": (4,)}), **settings})
    other = chosen.at_epsilon(2.5)
    built = build(random_embedding(SIZE, 5), vars(other), padding=padding, mechanism="tree")
    changed = tree(padding=padding, **settings).at_epsilon(2.5)
    for name, array in built.arrays.items():
        assert (changed._arrays[name] == array).all(), name
    first = tree(padding=padding, **settings).probabilities(3)
    assert changed.at_epsilon(4.0).probabilities(3).tolist() == first.tolist()


def test_at_epsilon_small_lowers_padding_share_to_the_largest():
    mechanism = tree(padding=True, pad_share=0.5).at_epsilon(0.5)
    largest = tree(padding=True, epsilon=0.5)
    assert mechanism.probabilities(SIZE)[SIZE] == largest.probabilities(SIZE)[SIZE] < 0.5


def test_load_removed_output_is_refused():
    """A draw of such a bundle may be a word that may not be written."""
    built = build_tree(random_embedding(SIZE, 5), PublicInputs(), sizes=(4,))
    parameters = {**built.parameters, "output": "fluent"}
    with pytest.raises(BundleError, match=r"mechanism.output = fluent, which this version does not offer. .*passages"):
        Tree.load(SIZE, parameters, built.arrays)


def test_at_epsilon_keeps_losses_in_proportion_and_within_it():
    settings = TreeSettings(epsilon=6.0, sizes=(4, 16), losses=(0.0, 6.0))
    for epsilon in np.linspace(0.5, 20, 400).tolist():
        assert settings.at_epsilon(epsilon).losses[-1] == pytest.approx(epsilon)
    assert replace(settings, losses=(0.0, 1e-6)).at_epsilon(1e-3).losses == (0.0, 0.0)


def test_a_bundle_that_breaks_its_epsilon_is_not_built(monkeypatch):
    import wordveil.mechanisms.tree.mechanism as module

    def careless(bounds: Any, losses: Any, share: Any, *, padding: bool) -> Any:
        return solve(bounds, [0.0, 5.0], share, padding=padding)

    solve = module.solve_nesting
    monkeypatch.setattr(module, "solve_nesting", careless)
    with pytest.raises(BundleError, match=r"mechanism.epsilon = 4: the finished numbers lose"):
        tree()
