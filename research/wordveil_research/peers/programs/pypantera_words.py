"""pyPANTERA's CusText: a word becomes one of its ten nearest, by the exponential mechanism. A word that it does not
know gets the neighbours of a random point. See serve.py.

The package finds the neighbours of a word when it first meets it. What it found for known words is kept, since it
follows from public vectors alone.
"""

from __future__ import annotations

import os
import pickle
from importlib.metadata import version
from pathlib import Path
from typing import Any

from serve import Sanitise, serve

NEAREST = 10


def write_table(task: dict[str, Any]) -> Path:
    """Write words and vectors as the package reads them, once."""
    import numpy as np

    kept = Path(task["kept"])
    table = kept / "vectors.txt"
    if not table.exists():
        words = Path(task["words"]).read_text("utf-8").split("\n")
        rows = (" ".join([word, *map(str, row)]) for word, row in zip(words, np.load(task["vectors"]), strict=True))
        draft = kept / f"vectors-{os.getpid()}.draft"
        draft.write_text("".join(f"{row}\n" for row in rows), "utf-8")
        draft.replace(table)
    return table


def load(task: dict[str, Any]) -> tuple[Sanitise, dict[str, Any]]:
    """Load the mechanism over the given words and vectors."""
    import numpy as np

    # The wheel installs its package under this name.
    from src.SamplingPerturbationMechanism.custext import CusText

    kept = Path(task["kept"])
    settings = {"embPath": str(write_table(task)), "epsilon": task["epsilon"], "k": NEAREST, "distance": "euclidean"}
    mechanism = CusText(settings)
    # In the package's float32 the probabilities of some words miss 1 by more than NumPy's `choice` bears.
    embeddings = {word: row.astype(np.float64) for word, row in mechanism.vocab.embeddings.items()}
    mechanism.vocab.embeddings, mechanism.embMatrix = embeddings, mechanism.embMatrix.astype(np.float64)
    known = frozenset(embeddings)
    place = kept / f"neighbours-{task['epsilon']!r}.pickle"
    if place.exists():
        # Written below by this script, into a directory of its own.
        mechanism._simWordDict, mechanism._pDict = pickle.loads(place.read_bytes())  # noqa: S301, SLF001

    def keep() -> None:
        # An unknown word gets other neighbours in another text: an attacker's own run would not know them.
        for lists in (mechanism._simWordDict, mechanism._pDict):  # noqa: SLF001
            for word in set(lists) - known:
                del lists[word]
        draft = kept / f"neighbours-{os.getpid()}.draft"
        draft.write_bytes(pickle.dumps((mechanism._simWordDict, mechanism._pDict)))  # noqa: SLF001
        draft.replace(place)

    def sanitise(texts: list[list[str]], seed: int | None) -> list[list[str]]:
        np.random.seed(seed)  # noqa: NPY002 - what the package draws from
        drawn = [mechanism.processText(text).split(" ") if text else [] for text in texts]
        keep()
        return drawn

    return sanitise, {"version": version("pypantera"), "mechanism": "CusText", "words": len(known)}


if __name__ == "__main__":
    serve(load)
