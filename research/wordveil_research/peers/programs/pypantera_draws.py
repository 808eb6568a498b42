"""pyPANTERA's mechanisms as they come, for an audit: CMP, Mahalanobis, VickreyCMP, VickreyMhl, SanText, TEM, CusText.
See serve.py.

``mechanism`` names the class, ``options`` are its parameters.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Any

from pypantera_words import write_table
from serve import Sanitise, serve, tell_errors

# The wheel installs its package under the name `src`. These add noise to vectors, and the others sample words.
ADDITIVE = {"CMP": "cmp", "Mahalanobis": "mahalanobis", "VickreyCMP": "vickrey", "VickreyMhl": "vickrey"}
SAMPLING = {"CusText": "custext", "SanText": "santext", "TEM": "tem"}


def load(task: dict[str, Any]) -> tuple[Sanitise, dict[str, Any]]:
    """Load the mechanism over the given words and vectors."""
    import numpy as np

    name = task["mechanism"]
    place = f"EmbeddingPerturbationMechanism.{ADDITIVE[name]}" if name in ADDITIVE else ""
    module = import_module(f"src.{place or f'SamplingPerturbationMechanism.{SAMPLING[name]}'}")
    mechanism = getattr(module, name)(
        {"embPath": str(write_table(task)), "epsilon": task["epsilon"], **task.get("options", {})}
    )

    def perturb(word: str) -> str:
        return mechanism.processText(mechanism.noisyEmb([word]) if name in ADDITIVE else [word])

    draw = tell_errors(perturb, task)

    def sanitise(texts: list[list[str]], seed: int | None) -> list[list[str]]:
        np.random.seed(seed)  # noqa: NPY002 - what the package draws from
        return [[draw(word) for word in text] for text in texts]

    return sanitise, {"version": version("pypantera"), "mechanism": name, "words": len(mechanism.vocab.embeddings)}


if __name__ == "__main__":
    serve(load)
