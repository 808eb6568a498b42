"""The rows of the comparison and its blocks: what is compared, and in what respect all rows of a block are equal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from wordveil.mechanisms.settings import MechanismSettings
from wordveil_research.field.matching import Candidate, make_settings
from wordveil_research.mechanisms.random import RandomSettings
from wordveil_research.peers.processes import DIFFRACTOR, MLDP_TEXT, PRESIDIO, PYPANTERA, Peer

DEMO, POINCARE = "demo", "demo-poincare"
DEMO_WORDS = 20_000
LOSSES = (6.0, 8.0, 10.0, 12.0)
# Under the public prior an attacker who never looks is right more often than in 5% of the cases: 5% is of the uniform.
RECOVERIES = (("uniform", 0.05), ("public", 0.10), ("public", 0.25))
ORIGINAL, RANDOM = "original", "random"
SMALL_PARTS = ", small parts"
"""What ends the name of a subject that is measured on small parts of the corpora."""


def make_randomised_response(words: int) -> Callable[[float], MechanismSettings]:
    """Make a function that makes the settings of plain randomised response over ``words`` words from a loss.

    It is the staircase whose lists hold the word alone: uniform floors of a mass that leaves just the word.
    """

    def make(loss: float) -> MechanismSettings:
        floors = words / (math.exp(loss) + words - 1)
        return make_settings("staircase", alpha=0.0, floor_mass=floors)(loss)

    return make


@dataclass(frozen=True)
class Block:
    """What the rows of one block have in common.

    Attributes
    ----------
    kind
        ``loss``: the largest loss of a token; ``recovery``: what the best attacker gets right; ``as it is``: nothing.
    value
        nats, or a share.
    prior
        of a recovery: ``uniform`` or ``public``.
    """

    kind: Literal["loss", "recovery", "as it is"]
    value: float = 0.0
    prior: str = ""

    @property
    def name(self) -> str:
        """For a reader; empty for what stands in no block."""
        if self.kind == "loss":
            return f"loss {self.value:g}"
        return f"recovery {self.value:.0%} {self.prior}" if self.kind == "recovery" else ""


@dataclass(frozen=True)
class Row:
    """A way to sanitise text.

    Attributes
    ----------
    label
        what the table calls it.
    candidate
        of this package's mechanisms; None of others.
    peer
        another package; None of this one's.
    embedding
        the public embedding.
    is_matched
        whether it has an epsilon, so that it stands in the blocks.
    is_slow
        whether it is measured on small parts of the corpora.
    """

    label: str
    candidate: Candidate | None = None
    peer: Peer | None = None
    embedding: str = DEMO
    is_matched: bool = True
    is_slow: bool = False

    def subject(self, block: Block) -> str:
        """Return the subject of its scores."""
        return f"{block.name}: {self.label}" if block.name else self.label


AS_IT_IS = Block("as it is")


def list_rows() -> tuple[Row, ...]:
    """List all rows, in the order of the table."""
    return _make_rows()


@cache
def _make_rows() -> tuple[Row, ...]:
    tem = {"gamma": 3.0, "neighbours": 256, "tight": True}
    hyperbolic = {"metric": "hyperbolic", "neighbours": 256}
    ours = [
        Candidate("laplace", "laplace", make_settings("laplace"), by_loss=False),
        Candidate("TEM, tight", "exponential", make_settings("exponential", **tem), by_loss=False),
        Candidate("randomised response", "staircase", make_randomised_response(DEMO_WORDS), by_loss=True, rebuilt=True),
        Candidate("staircase, floors", "staircase", make_settings("staircase"), by_loss=True),
        *(
            Candidate(f"tree {size}, representative", "tree", make_settings("tree", sizes=(size,)), by_loss=True)
            for size in (80, 20)
        ),
        Candidate("SynTF", "syntf", make_settings("syntf", neighbours=256), by_loss=False),
    ]
    in_ball = [
        Candidate("hyperbolic noise", "hyperbolic-fdd", make_settings("hyperbolic-fdd"), by_loss=False),
        Candidate("hyperbolic exponential", "exponential", make_settings("exponential", **hyperbolic), by_loss=False),
    ]
    none = Candidate(RANDOM, "random", make_random, by_loss=True)
    return (
        Row(ORIGINAL, is_matched=False),
        Row(ORIGINAL + SMALL_PARTS, is_matched=False, is_slow=True),
        Row(RANDOM, none, is_matched=False),
        Row("presidio, patterns", peer=PRESIDIO, is_matched=False),
        *(Row(one.label, one, is_slow=one.mechanism == "laplace") for one in ours),
        *(Row(one.label, one, embedding=POINCARE) for one in in_ball),
        Row("mldp-text, laplace", peer=MLDP_TEXT, is_slow=True),
        Row("dp-diffractor, geometric", peer=DIFFRACTOR),
        Row("pypantera, CusText", peer=PYPANTERA, is_slow=True),
    )


def make_random(_: float) -> RandomSettings:
    """Make the settings of words that are drawn uniformly, whatever the loss."""
    return RandomSettings()


def list_blocks(*, is_quick: bool) -> list[Block]:
    """List the blocks of equal loss and of equal recovery; one of each where it is to be quick."""
    losses = [Block("loss", loss) for loss in LOSSES]
    recoveries = [Block("recovery", share, prior) for prior, share in RECOVERIES]
    return [losses[1], recoveries[1]] if is_quick else [*losses, *recoveries]


def find_row(label: str) -> Row:
    """Find a row by its label. Raises :class:`KeyError`."""
    return {row.label: row for row in list_rows()}[label]
