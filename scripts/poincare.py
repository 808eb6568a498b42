"""Trains the Poincare embedding that comes with the package, says how good it is, and draws the disk of two dimensions.

    python scripts/poincare.py

Writes lib/wordveil/data/poincare_embedding and docs/pictures/poincare-disk.png. It uses the laboratory (research/). A
minute or two on one core; the vectors are the same on every machine.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np

from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.training.hypernyms import HypernymGraph, PoincareSettings, build_hierarchy, read_pairs
from wordveil.embeddings.training.poincare import embed
from wordveil.neighbours.blocks import BuildContext
from wordveil_research.tasks.reconstruction import measure_reconstruction

ROOT = Path(__file__).parents[1]
DATA = ROOT / "lib" / "wordveil" / "data"
PAIRS = DATA / "hypernyms" / "pairs.tsv"
TARGET = DATA / "poincare_embedding"
PICTURE = ROOT / "docs" / "pictures" / "poincare-disk.png"

# The compiled trainer: the same bits on every machine, in seconds.
SETTINGS = PoincareSettings(trainer="compiled", dimension=10, epochs=100, burn_in=20)
# Fewer epochs leave the picture room between the words and the rim.
FLAT = PoincareSettings(trainer="compiled", dimension=2, epochs=50, burn_in=20)
SHOWN = """
entity abstraction object event person animal plant food money emotion science music time color disease city country
building vehicle weapon tree dog cat horse bird fish insect king queen doctor teacher soldier war game dance bread
wine fruit hospital church school car ship house river mountain island sea metal gold water law language book idea
fear joy anger number month day year blood heart hand tool machine clothing dress hat furniture chair table rain wind
storm death birth crime murder
"""


def train(graph: HypernymGraph, settings: PoincareSettings) -> Embedding:
    """Print a line about the embedding and train it."""
    start = time.process_time()
    made = embed(graph, settings, "hypernym pairs of WordNet 3.0 (see hypernyms/README.md)", BuildContext())
    taken = time.process_time() - start
    quality = measure_reconstruction(graph, made.vectors)
    norms = {word: length(made, word) for word in ("entity", "animal", "dog")}
    print(
        f"{made.size:,} words x {made.dimension}, {len(graph.edges):,} pairs, {taken:.0f} s: "
        f"mean rank {quality.mean_rank:.1f}, MAP {quality.mean_average_precision:.3f}; norms {norms}"
    )
    return made


def length(embedding: Embedding, word: str) -> float:
    """Return the Euclidean norm of a word's point."""
    row = embedding.words.index(word).as_py()
    return round(float(np.linalg.norm(embedding.vectors[row].astype(np.float64))), 4)


def draw(flat: Embedding, graph: HypernymGraph) -> None:
    """Draw the disk, with the words of :data:`SHOWN` that are there and whose labels find room."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt
    from matplotlib.collections import LineCollection

    points = flat.vectors.astype(np.float64)
    figure, axes = plt.subplots(figsize=(9, 9), layout="constrained")
    axes.add_patch(plt.Circle((0, 0), 1, fill=False, color="0.6", linewidth=0.8))
    shown = [word for word in SHOWN.split() if word in graph.words]
    rows = [graph.words.index(word) for word in shown]
    between = graph.edges[np.isin(graph.edges, rows).all(axis=1)]
    axes.add_collection(LineCollection(points[between], colors="#4c72b0", linewidths=0.6, alpha=0.5))
    axes.scatter(*points.T, s=1.2, color="0.55", linewidths=0)
    axes.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), aspect="equal")
    axes.axis("off")
    axes.set_title("WordNet in two dimensions: general words near the centre, lines from words to their hypernyms")
    figure.canvas.draw()
    taken = []
    for word, (x, y) in zip(shown, points[rows], strict=True):
        for side, level in ((5, 4), (-5, 4), (5, -4), (-5, -4)):
            label = axes.annotate(
                word,
                (x, y),
                (side, level),
                textcoords="offset points",
                fontsize=10,
                ha="left" if side > 0 else "right",
                va="bottom" if level > 0 else "top",
                bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.8},
            )
            box = label.get_window_extent().padded(2)
            if any(box.overlaps(other) for other in taken):
                label.remove()
                continue
            taken.append(box)
            axes.plot(x, y, "o", markersize=4, color="#c44e52", zorder=5)
            break
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=100, metadata={"Software": None})


def main() -> None:
    """Train, write, draw."""
    pairs = read_pairs(PAIRS)
    graph = build_hierarchy(pairs, SETTINGS, str(PAIRS))
    made = train(graph, SETTINGS)
    shutil.rmtree(TARGET, ignore_errors=True)
    made.save(TARGET)
    print(f"written: {TARGET.relative_to(ROOT)}, {sum(file.stat().st_size for file in TARGET.iterdir()):,} bytes")
    flat = train(graph, FLAT)
    draw(flat, graph)
    print(f"drawn: {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
