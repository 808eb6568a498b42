"""A made corpus of authors with clear habits, on topics with words of their own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from support.workspaces import WORDS

CANARY = "zqxcanaryzqx"
AUTHORS, TEXTS = 5, 16
WEAK = {"name": "exponential", "epsilon": 60.0, "gamma": 4.0}
"""A mechanism that keeps nearly every word."""
TINY = {"name": "exponential", "epsilon": 0.01, "gamma": 4.0}
"""One that hardly looks at a word."""


def write_habits(seed: int = 0) -> pa.Table:
    """Texts of authors who like words of their own. Each text has a word that no vocabulary has."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(AUTHORS * TEXTS):
        author, topic = number % AUTHORS, number // AUTHORS % 2
        liked = [WORDS[20 * author + place] for place in rng.integers(0, 20, 10)]
        about = [WORDS[120 + 20 * topic + place] for place in rng.integers(0, 20, 8)]
        rows.append(" ".join([*liked, CANARY, *about]))
    return pa.table(
        {
            "id": [f"r{number:03d}" for number in range(len(rows))],
            "body": rows,
            "day": ["d"] * len(rows),
            "author": [f"a{number % AUTHORS}" for number in range(len(rows))],
            "topic": [f"t{number // AUTHORS % 2}" for number in range(len(rows))],
        }
    )
