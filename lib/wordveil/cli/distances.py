"""Output of `wordveil plan --against`: the distance of two texts, and the bound that follows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from wordveil.cli.output import Table
from wordveil.cli.tables import number

if TYPE_CHECKING:
    from wordveil.measures.text_distance import TextDistance

DISTANCE_NOTE = (
    "a token weighs 1/N of its text. The bound compares these two texts; the price of a record covers any two that its "
    "relation names."
)
_SHOWN = 30


def distance_facts(apart: TextDistance) -> dict[str, str]:
    """Make the rows of the table of two texts."""
    first, second = apart.tokens
    words = "any two different words are 1 apart" if apart.metric == "discrete" else f"{apart.metric} distance of words"
    facts = {
        "metric": "none: the text is drawn as a whole" if apart.distance is None and not apart.moves else words,
        "tokens, N": f"{first:,}" if first == second else f"{first:,} and {second:,}",
    }
    if apart.distance is not None:
        facts["Earth Mover's distance"] = number(apart.distance)
    if apart.bottleneck is not None:
        facts["bottleneck distance"] = number(apart.bottleneck)
    if apart.bag_bound is not None and apart.distance is not None:
        product = apart.epsilon * first * apart.distance
        shown = f"{number(apart.epsilon)} * {first:,} * {number(apart.distance)} = {number(product)}"
        # Slack adds to it, and a largest loss that the build computed may be smaller.
        exact = "" if math.isclose(product, apart.bag_bound) else f"; the bags lose at most {number(apart.bag_bound)}"
        facts["epsilon * N * distance"] = shown + exact
    if apart.epsilon_bound is None:
        facts["epsilon between them"] = f"none: unbounded, since {apart.unbounded}"
        return facts
    facts["epsilon between them"] = f"{number(apart.epsilon_bound)}, by composition {apart.composition}"
    facts["in words"] = describe_factor(apart)
    if apart.delta:
        facts["delta"] = f"{apart.delta:.3g}: the probability with which an output may exceed this"
    return facts


def describe_factor(apart: TextDistance) -> str:
    """Describe the bound's meaning for any output."""
    bound = apart.epsilon_bound
    assert bound is not None
    if bound == 0:
        return "no output tells which of the two texts it came from"
    times = f"{math.exp(bound):,.4g}" if bound < math.log(1e6) else f"10^{bound / math.log(10):,.1f}"
    return f"any output is at most {times} times as likely for one of the texts as for the other"


def move_table(apart: TextDistance) -> Table:
    """Make a table of the most expensive pairs of a word and the word that it moves to."""
    more = f", the {_SHOWN} that cost most of {len(apart.moves):,}" if len(apart.moves) > _SHOWN else ""
    table = Table(f"Which word goes to which{more}")
    for heading in ("word", "goes to"):
        table.add_column(heading)
    for heading in ("tokens", "distance", "epsilon"):
        table.add_column(heading, justify="right")
    for move in apart.moves[:_SHOWN]:
        figures = (number(move.tokens), number(move.distance), number(move.tokens * move.loss))
        table.add_row(move.source, move.target, *figures)
    return table
