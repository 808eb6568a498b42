"""Settings that determine a trained embedding, in addition to the pairs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any

BURN_IN_SHARE = 0.1
"""Learning rate of burn-in as a share of that after it; Nickel and Kiela 2017 have only "a reduced learning rate"
(section 3.1).
"""

_VERSION = 1


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of filtering pairs and training points. The configuration checks the ranges.

    Attributes
    ----------
    trainer
        ``gensim`` trains with gensim's PoincareModel, ``compiled`` with wordveil's own compiled loop.
    dimension
        the dimension of the ball.
    epochs
        passes over all pairs after burn-in.
    negative
        words that a pair is contrasted with (Nickel and Kiela 2017, equation 6).
    burn_in
        passes over all pairs before that, at a tenth of the learning rate.
    learning_rate
        the step of Riemannian stochastic gradient descent (equation 5).
    seed
        the seed of everything random in training.
    min_count
        pairs with smaller counts are left out.
    min_links
        words with fewer links are left out, once: those that have fewer only because others were left out stay.
        Feyisetan, Diethe and Drake 2019 take 3 (they remove words with two links or fewer).
    stop_words
        ``drop`` leaves out pairs with a word of the package's list of English stop-words, ``keep`` keeps them.
    """

    trainer: str = "gensim"
    dimension: int = 10
    epochs: int = 50
    negative: int = 10
    burn_in: int = 10
    learning_rate: float = 0.1
    seed: int = 1
    min_count: int = 1
    min_links: int = 3
    stop_words: str = "drop"

    @property
    def recipe(self) -> dict[str, Any]:
        """Settings as they are in a bundle's recipe: ``training.dimension`` and so on."""
        return {f"training.{name}": value for name, value in asdict(self).items()}

    @property
    def rates(self) -> list[float]:
        """Learning rate of each pass: first those of burn-in, then those of the epochs."""
        burning = [self.learning_rate * BURN_IN_SHARE] * self.burn_in
        return burning + [self.learning_rate] * self.epochs

    @property
    def left_out(self) -> frozenset[str]:
        """Words whose pairs are left out."""
        return _stop_words() if self.stop_words == "drop" else frozenset()

    def digest(self, source: str) -> str:
        """Identify the embedding trained from a file with SHA-256 ``source``."""
        content = json.dumps([_VERSION, source, asdict(self)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]


@cache
def _stop_words() -> frozenset[str]:
    text = (resources.files("wordveil") / "data" / "stop_words" / "english.txt").read_text("utf-8")
    return frozenset(text.split())
