"""Table 1 of Fernandes, Dras, McIver (POST 2019): who wrote a bag of words, and what is it about, after noise?

Each word of a text moves by n-dimensional Laplace noise and becomes the word nearest to where it lands. The paper's
claim is that authors are no longer found while topics still are. Authors are sought by the nearest author in the
mechanism's representation and by the method of Koppel, Schler, Argamon (2011) among 20 and 50 candidates; topics by
fastText's classifier, also with vectors to begin with as in the paper, and by the five nearest neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

from wordveil.embeddings.embedding import DEMO, Embedding, load
from wordveil.evaluation.classifiers import TextClassifier
from wordveil.scores.evaluation import Evaluation
from wordveil.scores.score import Score
from wordveil.text.choices import Output
from wordveil.text.policy import TextPolicy
from wordveil_research.papers.policies import DROPPED, HIDDEN
from wordveil_research.papers.rows import NO_NOISE, ORIGINAL, Row, open_row, score_losses
from wordveil_research.papers.samples import Split, read_authors, read_labels
from wordveil_research.papers.tables import (
    Written,
    attack_written,
    best_utility,
    merge_cells,
    plan_rows,
    relative_gain,
    row_of,
    share,
    strongest_attack,
    write_row,
)
from wordveil_research.runner.base import Cell, Experiment, Surroundings

EPSILONS = (10.0, 15.0, 20.0, 25.0, 30.0)
_AUTHORS, _TOPICS = "authors", "topics"
_TASKS = _TOPIC_TASK, _CLEAN_TASK = "20 topics", "20 topics, learned from clean texts"
_BAG = TextPolicy(output=Output.BAG)
CHOICES = (HIDDEN, DROPPED)
"""Which words are hidden."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of the samples, in texts of each label and in words of each text."""

    candidates: tuple[int, ...] = (20, 50)
    known: int = 5
    known_words: int = 400
    snippets: int = 5
    snippet_words: int = 200
    topic_train: int = 60
    topic_test: int = 25
    topic_words: int = 80


_QUICK = Sizes((5, 10), 2, 100, 2, 60, 4, 2, 40)


class F19Table1(Experiment):
    """See the module. Texts are the authors of C50 and the topics of 20 newsgroups, each cut to a public number of
    words, and released as bags, so that the bound of the paper's Theorem 1 holds for them. The paper removes stop-words
    first; so do the rows of that name, whose bags show how many words are left.
    """

    name: ClassVar[str] = "f19-table1"
    title: ClassVar[str] = "Authors and topics after Laplace noise (Fernandes, Dras, McIver 2019, Table 1)"
    version: ClassVar[int] = 2
    embedding: ClassVar[str] = DEMO
    files: ClassVar[tuple[str, ...]] = ("c50_reuters.jsonl.xz", "news20_bydate.jsonl.xz")

    def plan(self, around: Surroundings) -> Sequence[Cell]:
        """Plan authors and topics of each row and draw."""
        settings = asdict(_sizes(around))
        settings["candidates"] = list(settings["candidates"])
        rows = _rows(around)
        return [cell for part in (_AUTHORS, _TOPICS) for cell in plan_rows(part, rows, around, settings)]

    def measure(self, cell: Cell, around: Surroundings) -> Sequence[Score]:
        """Write the texts of both parts first: the attackers and the classifiers see the same draws."""
        row, draw = row_of(cell), cell.settings["draw"]
        embedding = load(row.embedding)
        system = open_row(row, embedding, around.work, _BAG)
        split = _read(cell.settings["part"], _sizes(around), around)
        written = write_row(row, system, split, embedding, draw)
        if cell.settings["part"] == _TOPICS:
            return list(_classify_topics(written, embedding, row, draw))
        scores = [] if draw else score_losses(row, system, embedding)
        return [*scores, *_attack_sizes(written, embedding, row, draw, _sizes(around))]

    def report(self, around: Surroundings, results: Mapping[str, Sequence[Score]]) -> Evaluation:
        """Report the table, and sentences on what it shows."""
        scores, sizes = merge_cells(results), _sizes(around)
        facts = {
            "mechanism": f"laplace on the embedding {around.embedding}, nearest word, output as a bag",
            "authors": f"C50: {sizes.known} known texts of {sizes.known_words} words and {sizes.snippets} snippets of "
            f"{sizes.snippet_words} words each",
            "topics": f"20 newsgroups: {sizes.topic_train} texts to learn from and {sizes.topic_test} to judge of "
            f"{sizes.topic_words} words each topic",
            "draws": f"{around.seeds}",
        }
        notes = (*_note_findings(scores, sizes), *_DIFFERENCES)
        return Evaluation(self.title, facts, scores, notes=notes, is_private=False)


def _sizes(around: Surroundings) -> Sizes:
    return _QUICK if around.is_quick else Sizes()


def _rows(around: Surroundings) -> list[Row]:
    epsilons = EPSILONS[::4] if around.is_quick else EPSILONS
    rows = [NO_NOISE, *(_noisy(epsilon) for epsilon in reversed(epsilons))]
    every = [ORIGINAL, *(row.hiding(words) for words in CHOICES for row in rows)]
    return [replace(row, embedding=around.embedding) for row in every]


def _noisy(epsilon: float) -> Row:
    return Row(f"epsilon {epsilon:g}", "laplace", {"epsilon": epsilon})


def _read(part: str, sizes: Sizes, around: Surroundings) -> Split:
    if part == _TOPICS:
        topics = read_labels(around.data, "news20_bydate").cut(sizes.topic_words, sizes.topic_words)
        return topics.take_each(sizes.topic_train, sizes.topic_test)
    authors = read_authors(around.data, "c50_reuters").cut(sizes.known_words, sizes.snippet_words)
    return authors.take_each(sizes.known, sizes.snippets)


def _attack_sizes(written: Written, embedding: Embedding, row: Row, draw: int, sizes: Sizes) -> Iterator[Score]:
    for count in sizes.candidates:
        yield from attack_written(_attacks(embedding), written.first_labels(count), row, draw, f"{count} authors")


def _attacks(embedding: Embedding) -> list[TextClassifier]:
    from wordveil_research.methods.koppel import Koppel
    from wordveil_research.methods.nearest_author import NearestAuthor

    return [NearestAuthor(embedding), Koppel()]


def _classify_topics(written: Written, embedding: Embedding, row: Row, draw: int) -> Iterator[Score]:
    from wordveil.evaluation.accuracy import measure_task
    from wordveil_research.methods.fasttext import FastText, FloretClassifier, PretrainedFastText
    from wordveil_research.methods.neighbours import NearestTexts

    # A bag has no runs of words to learn from, and so few texts need many passes.
    floret = FloretClassifier(epochs=100, word_ngrams=1)
    for classifier in (FastText(floret), PretrainedFastText(floret, embedding), NearestTexts(embedding)):
        yield from measure_task(classifier, written.redrawn, written.released, row.name, _TOPIC_TASK, draw)
        if row.mechanism:
            yield from measure_task(classifier, written.clean, written.released, row.name, _CLEAN_TASK, draw)


_DIFFERENCES = (
    (
        "The paper's texts are fan fiction and its vectors Google News's; here they are newswire, newsgroup posts and "
        "other vectors, so that figures compare by their order and not by their size. An epsilon is per unit of "
        "distance between vectors: the same number means something else for other vectors."
    ),
    (
        "The paper's attackers learn from clean texts (static). One who knows the mechanism can also learn from texts "
        "that went through it (adaptive), and takes what works better: with little known text that may be clean text."
    ),
    (
        "A bag of N words costs epsilon * N times the Earth Mover's distance of two bags of the same N (Theorem 1). "
        "Theorem 3, on utility, is false for N of 2 and more as printed, so that nothing here is taken from it."
    ),
)


def _note_findings(scores: Sequence[Score], sizes: Sizes) -> Iterator[str]:
    """Write sentences that are made from the figures."""
    candidates = sizes.candidates[-1]
    task = f"{candidates} authors"
    for words in CHOICES:
        base, gains = NO_NOISE.hiding(words), []
        for row in (base, *(_noisy(epsilon).hiding(words) for epsilon in EPSILONS)):
            attack, utility = strongest_attack(scores, row.name, task), best_utility(scores, row.name, *_TASKS)
            if attack is None or utility is None:
                continue
            said = ""
            if row != base and (gain := relative_gain(scores, row.name, task, _TASKS, base.name)) is not None:
                gains.append(gain)
                said = f"; relative gain {gain:+.2f}"
            yield (
                f"{row.name}: of {candidates} authors {share(attack)} are named ({attack.method}, "
                f"{attack.variant}), of topics {share(utility)} ({utility.method}){said}."
            )
        if gains:
            yield (
                f"The paper's claim is that noise costs authors more than topics. With {words or 'every word hidden'} "
                f"it does so against the strongest attack at {sum(gain > 0 for gain in gains)} of {len(gains)} "
                "epsilons. The relative gain is what is left of topics less what is left of authors, each above chance "
                "and as a share of the same without noise."
            )
