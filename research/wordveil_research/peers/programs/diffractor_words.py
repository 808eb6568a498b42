"""dp-diffractor's geometric mechanism: words in one line by a greedy walk through the embedding, and noise on the place
in it. Words that it does not know stay as they are. See serve.py.

Its ``rewrite`` sends each word to a process for each embedding and keeps stop-words. Here one embedding is used, the
package's own function draws in this process, and every word is replaced.

``mechanism`` is ``geometric`` or ``TEM``. ``options`` are settings of ``DiffractorConfig``. With ``restarted`` among
them, every word is drawn as the first of a newly started Diffractor, from the seed in its settings. With
``kept_words``, these words stand in the place of NLTK's list of stop-words, which pip does not install.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from serve import Sanitise, serve, tell_errors


def load(task: dict[str, Any]) -> tuple[Sanitise, dict[str, Any]]:
    """Load the mechanism over the given words and vectors. The line is made once and kept as ``line.json``."""
    import faiss
    import numpy as np
    from diffractor import core
    from diffractor.utils import EmbeddingManager

    faiss.omp_set_num_threads(1)
    place = Path(task["kept"]) / "line.json"
    if place.exists():
        line = json.loads(place.read_text("utf-8"))
    else:
        words = Path(task["words"]).read_text("utf-8").split("\n")
        line = EmbeddingManager.create_sorted_list(np.load(task["vectors"]), words)
        draft = place.with_name(f"line-{task['epsilon']!r}.draft")
        draft.write_text(json.dumps(line), "utf-8")
        draft.replace(place)
    options = {"replace_stopwords": True, "method": task.get("mechanism", "geometric"), **task.get("options", {})}
    restarted, kept_words = options.pop("restarted", False), options.pop("kept_words", None)
    config = core.DiffractorConfig(epsilon=task["epsilon"], **options)
    resources = {"list": line, "mapping": {word: number for number, word in enumerate(line)}, "config": config}
    if kept_words is not None:
        core.nltk.corpus.stopwords = SimpleNamespace(words=lambda _: kept_words)

    def perturb(word: str) -> str:
        if restarted:  # the seed of a worker, as Diffractor.start derives it
            (child,) = np.random.SeedSequence(config.seed).spawn(1)
            core._RESOURCES["rng"] = np.random.default_rng(child)  # noqa: SLF001 - what its processes set
        drawn = core.apply_privacy_mechanism(word, task["epsilon"])
        return word if drawn is None else drawn

    draw = tell_errors(perturb, task)

    def sanitise(texts: list[list[str]], seed: int | None) -> list[list[str]]:
        core._RESOURCES = {**resources, "rng": np.random.default_rng(seed)}  # noqa: SLF001 - what its processes set
        return [[draw(word) for word in text] for text in texts]

    return sanitise, {"version": version("dp-diffractor"), "mechanism": config.method, "words": len(line)}


if __name__ == "__main__":
    serve(load)
