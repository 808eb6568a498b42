"""Public passages in place of whole texts: topics, authors and linkage, by loss, number of subjects and passages.

Half of a corpus's training part serves as passages of the field and for nothing else. The other half and the judged
part are drawn, and a classifier that gives each drawn symbol its most frequent label learns on the one and is judged on
the other. Beside it: sampled words of a text under `tree`, at an equal loss of the text, and texts whose words are all
drawn by `tree` at 8 each, as `research/benchmarks/meaning.py` measured them. On three corpora also nested subjects,
lists of near subjects, and other starts of k-means; on Snips, texts that ER-AE rewrites.

    python -m wordveil_research passages --data ../shared/data --out DIR
    python -m wordveil_research.papers.passages DIR

The second command prints the tables of research/docs/passages.md and writes research/results/passages.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from wordveil.arrays import Float32, Float64, Int32, Int64
from wordveil.assembly.inputs import read_files
from wordveil.assembly.passages import fit_passages, read_passages
from wordveil.assembly.word_tables import FittedWords
from wordveil.crypto.keys import MasterKey
from wordveil.embeddings.embedding import Embedding, load
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.generators.training.settings import find_missing
from wordveil.measures.token_draws import draw_tokens
from wordveil.mechanisms.inputs import WORDNET, PublicInputs, PublicPassages
from wordveil.mechanisms.passages.mechanism import Passages, PassagesSettings
from wordveil.mechanisms.tree.mechanism import Tree
from wordveil.mechanisms.tree.settings import TreeSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil.report.files import read_evaluation
from wordveil.scores.documents import Documents
from wordveil.scores.evaluation import Evaluation
from wordveil.scores.score import Group, Measurement, Score, measure_accuracy
from wordveil.text.codec import Codec
from wordveil.text.policy import with_profile
from wordveil_research.field.table import print_rows, shorten, show_interval
from wordveil_research.papers.passages_er_ae import (
    QUICK_SIZES,
    SIZES,
    build_at,
    encode_fixed,
    rewrite,
    train_or_load,
)
from wordveil_research.papers.passages_laws import (
    draw_symbols,
    group_centres,
    list_law,
    list_nearest,
    nest_law,
    start_again,
)
from wordveil_research.papers.repeats import find_score, merge_repeats
from wordveil_research.papers.rows import load_embedding
from wordveil_research.papers.samples import Split, read_authors
from wordveil_research.runner.base import Cell, Experiment, Surroundings
from wordveil_research.tasks.datasets import load_documents

LOSSES = (8.0, 6.0, 5.0, 4.0)
SUBJECTS = (16, 37, 64, 100, 200)
CANDIDATES = 10_000
SAMPLED = (1, 2, 4)
"""Numbers of words that stand for a text."""
FIELD, BOTH = "field", "wordnet, both parts"
ENCODERS: Mapping[str, Literal["both", "vectors"]] = {FIELD: "both", WORDNET: "vectors", BOTH: "both"}
"""Parts of the encoder, by passages."""
# A subject needs two passages; a half more, since some have no known word that counts.
_PER_SUBJECT = 2.5
_CLUSTERS = 500
_TREE = f"{_CLUSTERS} clusters, representative"
_RESULTS = Path(__file__).parents[2] / "results"
_MEANING = _RESULTS / "meaning_glove.json"
NESTS = ((100, 37), (200, 16))
"""Numbers of subjects, and of groups of them."""
INNER = (0.25, 0.5, 0.75)
"""Parts of the loss between any subjects that subjects of one group have."""
LISTS = ((100, 2), (100, 4), (100, 8), (200, 2), (200, 4), (200, 8))
"""Numbers of subjects, and of a subject's list of near ones."""
ER_AE_LOSSES = (11.4, 20.0)
"""True losses of a word."""
_ER_AE = "snips, er-ae"
STARTED, STARTS = 64, 8
"""Number of subjects that are clustered from other starts, and of these."""
SHOWN = {None: 64, 8.0: 64, 6.0: 64, 5.0: 37, 4.0: 16}
"""Number of subjects that the first table shows for each loss, about ``e^loss / 4`` and at most 64; None: no noise."""


@dataclass(frozen=True)
class Corpus:
    """A corpus.

    ``measured``: what the benchmark of meaning calls it, if it measured it. ``other_laws``: whether these are measured.
    """

    name: str
    file: str
    label: str = "label"
    judged: str = "test"
    measured: str = ""
    other_laws: bool = False

    def read(self, data: Path) -> Split:
        """Read the texts to learn from and those to judge."""
        if self.label == "author":
            return read_authors(data, self.file)
        path = data / f"{self.file}.jsonl.xz"
        train = load_documents(path, self.label, where={"split": "train"})
        return Split(train, load_documents(path, self.label, where={"split": self.judged}, names=train.names))


CORPORA = (
    Corpus("snips", "snips7", judged="valid", measured="intent", other_laws=True),
    Corpus("20 newsgroups", "news20_bydate", measured="topic", other_laws=True),
    Corpus("TREC-6", "trec6", measured="trec6"),
    Corpus("SST-2", "sst2", measured="sst2"),
    Corpus("C50 authors", "c50_reuters", "author", measured="author", other_laws=True),
    Corpus("Enron authors", "enron_jstylo50", "author"),
    Corpus("PAN authors", "pan11_small", "author"),
    Corpus("IMDb", "aclImdb"),
)


class PassagesTable(Experiment):
    """See the module."""

    name: ClassVar[str] = "passages"
    title: ClassVar[str] = "Public passages in place of whole texts"
    files: ClassVar[tuple[str, ...]] = tuple(f"{corpus.file}.jsonl.xz" for corpus in CORPORA)

    def plan(self, around: Surroundings) -> Sequence[Cell]:
        """Plan a cell for each corpus, and one for other laws and starts."""
        settings = {"seeds": around.seeds, "subjects": list(_subjects(around))}
        cells = [Cell(corpus.name, settings) for corpus in CORPORA]
        shapes = {"seeds": around.seeds, "nests": _nests(around), "lists": _lists(around), "inner": INNER}
        others = [Cell(f"{corpus.name}, other laws", shapes) for corpus in CORPORA if corpus.other_laws]
        er_ae = [] if find_missing() else [Cell(_ER_AE, {"seeds": around.seeds, "losses": ER_AE_LOSSES})]
        return [*cells, *others, *er_ae]

    def measure(self, cell: Cell, around: Surroundings) -> Sequence[Score]:
        if cell.name == _ER_AE:
            return list(_measure_er_ae(CORPORA[0], around))
        corpus = next(one for one in CORPORA if one.name == cell.name.removesuffix(", other laws"))
        texts = Texts.read(corpus, around.data, load("glove"))
        work = BuildContext(kept=around.work / "kept")
        if cell.name != corpus.name:
            return [*_measure_laws(texts, around, work), *_measure_starts(texts, around, work)]
        scores = [score for source in ENCODERS for score in _measure_passages(texts, source, around, work)]
        return [*scores, *_measure_words(texts, around, work)]

    def report(self, around: Surroundings, results: Mapping[str, Sequence[Score]]) -> Evaluation:
        facts = {
            "embedding": "glove, 100,000 x 100",
            "passages": "field: half of the training part, which serves for nothing else; wordnet: the package's",
            "encoder": "both parts for passages of the field; for wordnet the vectors alone, or both parts",
            "subjects": f"no more than one for {_PER_SUBJECT} passages of the field",
            "draws": f"{around.seeds} keys; the other half of the training part and the judged part are drawn",
            "classifier": "the most frequent label of a drawn symbol; naive Bayes over sampled words",
            "tree, 8 a word": f"{_TREE}, of {_MEANING.name}: a linear SVM that learned on the whole training part",
        }
        bounds = [_bound_linkage(loss) for loss in _losses(around)]
        scores = [score for found in results.values() for score in found]
        return Evaluation(self.title, facts, (*bounds, *scores, *_read_measured(results)), is_private=False)


def _subjects(around: Surroundings) -> tuple[int, ...]:
    return (3,) if around.is_quick else SUBJECTS


def _nests(around: Surroundings) -> tuple[tuple[int, int], ...]:
    return ((4, 2),) if around.is_quick else NESTS


def _lists(around: Surroundings) -> tuple[tuple[int, int], ...]:
    return ((4, 2),) if around.is_quick else LISTS


def _losses(around: Surroundings) -> tuple[float, ...]:
    return LOSSES[:1] if around.is_quick else LOSSES


@dataclass(frozen=True)
class Texts:
    """A corpus as words of an embedding.

    ``ids``, ``offsets``: the texts to learn from, and then those to judge. ``labels``: int64 ``(texts,)``. ``learned``:
    number of texts to learn from. ``whole``: string array ``(texts,)``, the texts as they stand.
    """

    corpus: Corpus
    embedding: Embedding
    passages: PublicPassages
    ids: Int32
    offsets: Int64
    labels: Int64
    learned: int
    whole: pa.StringArray

    @classmethod
    def read(cls, corpus: Corpus, data: Path, embedding: Embedding, most: int | None = None) -> Texts:
        """Read a corpus and set half of its training part aside. ``most``: the most texts of a part; None: all."""
        field, train, judged = _read_parts(corpus, data, most)
        whole = pa.array([*train.texts, *judged.texts], pa.string())
        encoded = Codec(with_profile("passages"), Vocabulary(embedding.words)).encode(whole)
        labels = np.concatenate([train.labels, judged.labels])
        passages = _fit(field, embedding)
        return cls(corpus, embedding, passages, encoded.ids, encoded.offsets, labels, len(train), whole)

    def judge(self, subject: str, method: str, guessed: Int64, note: str = "") -> Score:
        """Score guessed labels of the texts to judge."""
        is_attack = self.corpus.label == "author"
        group = Group.ATTACK if is_attack else Group.UTILITY
        accuracy = measure_accuracy(guessed, self.labels[self.learned :])
        score = Measurement(subject, self.corpus.name, method, group).make_accuracy(
            accuracy, "The share of judged texts that get their true label.", note
        )
        return replace(score, higher_is_better=not is_attack)


def _read_parts(corpus: Corpus, data: Path, most: int | None = None) -> tuple[Documents, Documents, Documents]:
    """Read the half of the training part that serves as passages, the other half, and the texts to judge."""
    split, rng = corpus.read(data), np.random.default_rng(0)
    order = rng.permutation(len(split.train))
    judged = split.test if most is None else split.test.take(rng.permutation(len(split.test))[:most])
    return split.train.take(order[::2][:most]), split.train.take(order[1::2][:most]), judged


def _fit(documents: Documents, embedding: Embedding) -> PublicPassages:
    return fit_passages(pa.array(documents.texts, pa.string()), FittedWords(embedding.words, "passages", FIELD, []))


def make_key(seed: int) -> Any:
    return MasterKey(sha256(b"experiment %d" % seed).digest()).for_release("passages")


def _measure_passages(texts: Texts, source: str, around: Surroundings, work: BuildContext) -> Iterator[Score]:
    """Measure passages of one source, for each number of subjects and loss."""
    for subjects in _subjects(around) if source != BOTH else _subjects(around)[-1:]:
        if source == FIELD and len(texts.passages) < _PER_SUBJECT * subjects:
            continue
        mechanism = _open(texts, source, subjects, around, work)
        symbols = mechanism.encoder.encode(texts.ids, texts.offsets, texts.whole)
        row = f"{source}, {subjects} subjects"
        yield from _describe_spread(row, texts, symbols)
        yield texts.judge(f"{row}, no noise", "most-frequent", learn_labels(texts, symbols, subjects + 1))
        for loss in _losses(around):
            moved = mechanism.at_epsilon(loss)
            subject = f"{row}, loss {loss:g}"
            drawn = (draw_tokens(moved, symbols, b"texts", make_key(seed)) for seed in range(around.seeds))
            yield from _judge_drawn(texts, subject, [*drawn], subjects + 1)
            laws = np.array([moved.table.law(symbol) for symbol in range(subjects + 1)])
            yield _score_linkage(texts, subject, symbols, laws)


def _score_linkage(texts: Texts, subject: str, symbols: Int32, laws: Float64) -> Score:
    return Measurement(subject, texts.corpus.name, "best-attacker", Group.PRIVACY).make_score(
        "linked",
        _link(symbols, laws),
        None,
        CANDIDATES,
        f"The probability that an attacker who knows the law names a text's original among {CANDIDATES:,} "
        "candidates of the corpus, whose symbols it knows.",
        chance=1 / CANDIDATES,
        higher_is_better=False,
    )


def _measure_laws(texts: Texts, around: Surroundings, work: BuildContext) -> Iterator[Score]:
    """Measure nested subjects and lists of near ones, each read as drawn, and nested ones also by their group."""
    fine = sorted({subjects for subjects, _ in (*_nests(around), *_lists(around))})
    for source, subjects in product((FIELD, WORDNET), fine):
        encoder = _open(texts, source, subjects, around, work).encoder
        symbols = encoder.encode(texts.ids, texts.offsets, texts.whole)
        for name, laws, groups in _list_laws(source, encoder.centres, around):
            drawn = [draw_symbols(laws, symbols, seed) for seed in range(around.seeds)]
            yield from _judge_drawn(texts, name, drawn, subjects + 1)
            if groups is not None:
                yield from _judge_drawn(texts, _by_group(name), [groups[one] for one in drawn], subjects + 1)
            yield _score_linkage(texts, name, symbols, laws)


def _list_laws(source: str, centres: Float32, around: Surroundings) -> Iterator[tuple[str, Float64, Int32 | None]]:
    """List the laws over these centres: name, law, and for nested ones the group of each symbol."""
    for (subjects, groups), loss, part in product(_nests(around), _losses(around), INNER):
        if subjects == len(centres):
            order, bounds = group_centres(centres, groups)
            name = _name_nest(source, subjects, groups, part * loss, loss)
            sizes = np.append(np.diff(bounds), 1)
            group_of = np.repeat(np.arange(groups + 1, dtype=np.int32), sizes)[np.append(np.argsort(order), subjects)]
            yield name, nest_law(order, bounds, part * loss, loss), group_of
    for (subjects, listed), loss in product(_lists(around), _losses(around)):
        if subjects == len(centres):
            yield _name_list(source, subjects, listed, loss), list_law(list_nearest(centres, listed), loss), None


def _measure_starts(texts: Texts, around: Surroundings, work: BuildContext) -> Iterator[Score]:
    """Measure centres from other starts of k-means, beside how near they are to their passages."""
    subjects = _subjects(around)[0] if around.is_quick else STARTED
    mechanism = _open(texts, FIELD, subjects, around, work)
    for start in range(STARTS + 1):
        encoder, nearness = start_again(mechanism.encoder, texts.passages, start)
        name = f"{FIELD}, {subjects} subjects, start {start}, loss {LOSSES[0]:g}"
        yield Measurement(name, texts.corpus.name, "k-means", Group.TEXT).make_score(
            "nearness",
            nearness,
            None,
            len(texts.passages),
            "The mean cosine of a passage and its centre.",
            higher_is_better=None,
        )
        symbols = encoder.encode(texts.ids, texts.offsets, texts.whole)
        drawn = [draw_tokens(mechanism, symbols, b"texts", make_key(seed)) for seed in range(around.seeds)]
        yield from _judge_drawn(texts, name, drawn, subjects + 1)


def _judge_drawn(texts: Texts, subject: str, drawn: Sequence[Int32], symbols: int) -> list[Score]:
    return merge_repeats([texts.judge(subject, "most-frequent", learn_labels(texts, one, symbols))] for one in drawn)


def _open(texts: Texts, source: str, subjects: int, around: Surroundings, work: BuildContext) -> Passages:
    """Build the mechanism; with WordNet's passages it is the same for every corpus, and kept."""
    if source == FIELD:
        return build_passages(texts.embedding, texts.passages, source, subjects, work)
    kept = around.work / f"{source}-{subjects}.npz"
    if kept.exists():
        return load_passages(kept)
    words = FittedWords(texts.embedding.words, "passages", WORDNET, [])
    passages = fit_passages(read_passages(WORDNET, "passages"), words)
    return build_passages(texts.embedding, passages, source, subjects, work, kept)


def build_passages(
    embedding: Embedding,
    passages: PublicPassages,
    source: str,
    subjects: int,
    work: BuildContext,
    kept: Path | None = None,
    encoder: str = "",
) -> Passages:
    """Build the mechanism, and keep it in a file if one is named. ``encoder``: by default that of the passages."""
    # Keywords need no writable passage for each subject; the draws are those of passages.
    settings = PassagesSettings(
        epsilon=LOSSES[0], passages=source, clusters=subjects, encoder=encoder or ENCODERS[source], output="keywords"
    )
    built = Passages.build(embedding, settings, padding=True, work=work, inputs=PublicInputs(passages=passages))
    if kept is not None:
        draft = kept.with_suffix(f".{os.getpid()}.npz")
        arrays: dict[str, Any] = {**built.arrays, "parameters": json.dumps(dict(built.parameters))}
        np.savez(draft, **arrays)
        draft.replace(kept)
    return Passages(built.parameters, built.arrays)


def load_passages(kept: Path) -> Passages:
    with np.load(kept) as found:
        arrays = {name: found[name] for name in found.files if name != "parameters"}
        return Passages(json.loads(str(found["parameters"])), arrays)


def _describe_spread(row: str, texts: Texts, symbols: Int32) -> Iterator[Score]:
    """Describe how evenly the texts are spread over subjects."""
    shares = np.bincount(symbols) / len(symbols)
    shares = shares[shares > 0]
    effective = float(np.exp(-(shares * np.log(shares)).sum()))
    measurement = Measurement(f"{row}, no noise", texts.corpus.name, "subjects", Group.TEXT)
    for figure, value, definition in (
        ("largest-share", float(shares.max()), "The share of texts in the largest subject."),
        ("effective", effective, "The number of equally large subjects that are as even (exponential of the entropy)."),
    ):
        yield measurement.make_score(figure, value, None, len(symbols), definition, higher_is_better=None)


def learn_labels(texts: Texts, drawn: Int32, symbols: int) -> Int64:
    """Guess the label of each judged text: the most frequent of its symbol among the texts to learn from."""
    labels = texts.labels[: texts.learned]
    counts = np.zeros((symbols, int(texts.labels.max()) + 1))
    np.add.at(counts, (drawn[: texts.learned], labels), 1.0)
    counts += counts.sum(axis=0) * 1e-6  # the most frequent of all, where a symbol was not drawn
    return np.asarray(counts.argmax(axis=1)[drawn[texts.learned :]])


def _link(symbols: Int32, laws: Float64) -> float:
    """Compute the best attacker's success among candidates with known symbols, exactly.

    ``laws``: float64 ``(symbols, symbols)``. The attacker names one of the candidates for whom what it sees is
    likeliest.
    """
    candidates = np.random.default_rng(0).choice(symbols, CANDIDATES)
    return float(laws[np.unique(candidates)].max(axis=0).sum() / CANDIDATES)


def _bound_linkage(loss: float) -> Score:
    """Bound the probability that anybody links a text to one of the candidates."""
    bound = math.exp(loss) / (math.exp(loss) + CANDIDATES - 1)
    definition = f"What a loss allows at most, among {CANDIDATES:,} candidates: e^E / (e^E + N - 1)."
    return Measurement(f"loss {loss:g}", "any texts", "bound", Group.PRIVACY).make_score(
        "linked", bound, None, CANDIDATES, definition, chance=1 / CANDIDATES, higher_is_better=False
    )


def _measure_words(texts: Texts, around: Surroundings, work: BuildContext) -> Iterator[Score]:
    """Measure sampled words that are no stop-words, drawn by `tree` at an equal loss of the text."""
    embedding = texts.embedding
    classes = read_files({"classes": "stop-words:en"}).fit(embedding.words).inputs.classes
    settings = TreeSettings(epsilon=LOSSES[0], clusters=(_CLUSTERS,))
    built = Tree.build(embedding, settings, padding=True, work=work, inputs=PublicInputs(classes=classes))
    mechanism = Tree(built.parameters, built.arrays)
    assert classes is not None
    # The first word is a stop-word, and what is no word is not one to sample.
    is_content = np.append(classes != classes[0], np.zeros(1, np.bool_))
    for words in SAMPLED:
        for loss in _losses(around):
            moved, repeats = mechanism.at_epsilon(loss / words), []
            for seed in range(around.seeds):
                sampled = _sample(texts, is_content, words, np.random.default_rng(seed))
                drawn = draw_tokens(moved, sampled.ravel(), b"texts", make_key(seed)).reshape(sampled.shape)
                guessed = _guess_naively(texts, drawn, embedding.size + 2)
                repeats.append([texts.judge(f"tree, {words} sampled words, loss {loss:g}", "naive-bayes", guessed)])
            yield from merge_repeats(repeats)


def _sample(texts: Texts, is_content: Any, words: int, rng: np.random.Generator) -> Int32:
    """Sample words of each text, int32 ``(texts, words)``; unknown words and padding share one symbol."""
    count, size = len(texts.offsets) - 1, texts.embedding.size
    owner = np.repeat(np.arange(count), np.diff(texts.offsets))
    kept = np.flatnonzero(is_content[np.minimum(texts.ids, size)])
    kept = kept[np.lexsort((rng.random(len(kept)), owner[kept]))]
    place = np.arange(len(kept)) - np.searchsorted(owner[kept], owner[kept])
    chosen = kept[place < words]
    sampled = np.full((count, words), size, np.int32)
    sampled[owner[chosen], place[place < words]] = texts.ids[chosen]
    return sampled


def _guess_naively(texts: Texts, drawn: Int32, symbols: int) -> Int64:
    """Guess labels by naive Bayes over drawn words, with a hundredth of a word added to each count."""
    labels, count = texts.labels[: texts.learned], int(texts.labels.max()) + 1
    present, index = np.unique(np.minimum(drawn, symbols - 1), return_inverse=True)
    index = index.reshape(drawn.shape)
    counts = np.full((len(present), count), 0.01)
    np.add.at(counts, (index[: texts.learned], labels[:, None]), 1.0)
    prior = np.log(np.bincount(labels, minlength=count) + 0.01)
    likelihood = np.log(counts / counts.sum(axis=0))
    return np.asarray((likelihood[index[texts.learned :]].sum(axis=1) + prior).argmax(axis=1))


def _measure_er_ae(corpus: Corpus, around: Surroundings) -> Iterator[Score]:
    """Measure texts that ER-AE rewrites, with a generator that the passages of the field trained."""
    sizes = QUICK_SIZES if around.is_quick else SIZES
    field, train, judged = _read_parts(corpus, around.data)
    embedding = load_embedding(sizes.embedding, around.work)
    weights = train_or_load(field.texts, embedding, sizes, around.work / "er-ae")
    ids = encode_fixed([*train.texts, *judged.texts], embedding, sizes.length)
    labels = np.concatenate([train.labels, judged.labels])
    texts = Texts(
        corpus,
        embedding,
        _fit(field, embedding),
        ids.ravel(),
        np.arange(len(ids) + 1) * sizes.length,
        labels,
        len(train),
        pa.array([*train.texts, *judged.texts], pa.string()),
    )
    symbols = embedding.size + 2
    yield texts.judge(_name_er_ae(None), "naive-bayes", _guess_naively(texts, ids, symbols))
    for loss in ER_AE_LOSSES:
        mechanism = build_at(loss, embedding, weights)
        drawn = (rewrite(mechanism, ids, make_key(seed)) for seed in range(around.seeds))
        yield from merge_repeats(
            [texts.judge(_name_er_ae(loss), "naive-bayes", _guess_naively(texts, one, symbols))] for one in drawn
        )


def _read_measured(names: Mapping[str, Any]) -> Iterator[Score]:
    """Read what the benchmark of meaning measured of texts whose words are all drawn by `tree` at 8 each."""
    rows = json.loads(_MEANING.read_text("utf-8"))["rows"]
    figures = next(row["figures"] for row in rows if (row["mechanism"], row["at"]) == (_TREE, 8.0))
    for corpus in CORPORA:
        if corpus.measured and corpus.name in names:
            mean, half = (figures[corpus.measured][name] for name in ("mean", "half"))
            group = Group.ATTACK if corpus.label == "author" else Group.UTILITY
            yield Measurement("tree, 8 a word", corpus.name, "linear-words", group).make_score(
                "accuracy", mean, (mean - half, mean + half), 0, "As in the file; the interval is of draws alone."
            )


def main() -> None:
    """Print the tables, and write the results file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="that the experiment wrote")
    evaluation = read_evaluation(parser.parse_args().directory)
    (_RESULTS / "passages.json").write_text(json.dumps(shorten(evaluation), indent=1) + "\n", "utf-8")
    scores = evaluation.scores
    for source in ENCODERS:
        fixed = SHOWN if source != BOTH else dict.fromkeys(SHOWN, SUBJECTS[-1])
        columns = [(_name_row(source, subjects, loss), _name_loss(loss)) for loss, subjects in fixed.items()]
        _print_table(scores, source, columns)
    for source in (FIELD, WORDNET):
        columns = [(_name_row(source, subjects, LOSSES[0]), f"{subjects}") for subjects in SUBJECTS]
        _print_table(scores, f"{source}, loss 8, by subjects", columns)
        columns = [(_name_row(source, subjects, None), f"{subjects}") for subjects in SUBJECTS]
        _print_table(scores, f"{source}, largest share of texts in one subject", columns, "largest-share")
        _print_laws(scores, source)
    others = [("tree, 8 a word", "tree, 8 a word")]
    others += [(f"tree, {words} sampled words, loss 8", f"{words} sampled, loss 8") for words in SAMPLED]
    _print_table(scores, "tree", others)
    linked = [(_name_row(FIELD, subjects, LOSSES[0]), f"{subjects}") for subjects in SUBJECTS]
    _print_table(scores, "linked, field, loss 8", linked, "linked")


def _name_row(source: str, subjects: int, loss: float | None) -> str:
    return f"{source}, {subjects} subjects, {_name_loss(loss)}"


def _name_loss(loss: float | None) -> str:
    return "no noise" if loss is None else f"loss {loss:g}"


def _name_nest(source: str, subjects: int, groups: int, inner: float, loss: float) -> str:
    return f"{source}, {subjects} subjects in {groups} groups, {inner:g} inside, {_name_loss(loss)}"


def _name_er_ae(loss: float | None) -> str:
    law = "no noise" if loss is None else f"er-ae, loss {loss:g} a word"
    return f"the first {SIZES.length} words, {law}"


def _by_group(name: str) -> str:
    return f"{name}, by group"


def _name_list(source: str, subjects: int, listed: int, loss: float) -> str:
    return f"{source}, {subjects} subjects in lists of {listed}, {_name_loss(loss)}"


def _print_laws(scores: Sequence[Score], source: str) -> None:
    """Print for each corpus and loss the most accurate setting of each law, and how many records it links."""
    print(f"\n{source}, other laws\n")
    rows = []
    for corpus, loss in product([corpus for corpus in CORPORA if corpus.other_laws], LOSSES):
        nests = {
            f"{subjects} in {groups}, {part * loss:g} inside": _name_nest(source, subjects, groups, part * loss, loss)
            for (subjects, groups), part in product(NESTS, INNER)
        }
        kinds = [
            {f"{subjects}": _name_row(source, subjects, loss) for subjects in SUBJECTS},
            {f"{subjects}, {listed}": _name_list(source, subjects, listed, loss) for subjects, listed in LISTS},
            nests,
            {setting: _by_group(name) for setting, name in nests.items()},
        ]
        rows.append([corpus.name, f"{loss:g}", *(_show_best(scores, corpus.name, kind) for kind in kinds)])
    print_rows(["corpus", "loss", "randomised response", "lists", "nested", "nested, by group"], rows)


def _show_best(scores: Sequence[Score], corpus: str, names: Mapping[str, str]) -> str:
    """Show the setting with the largest accuracy, and its linkage; ``names``: subjects of scores by setting."""
    found = {setting: find_score(scores, name, task=corpus, figure="accuracy") for setting, name in names.items()}
    setting, best = max(found.items(), key=lambda pair: (pair[1] and pair[1].value) or 0.0)
    linked = find_score(scores, names[setting], task=corpus, figure="linked")
    shown = f", {linked.value:.2%}" if linked and linked.value is not None else ""
    return f"{show_interval(best)} ({setting}{shown})"


def _print_table(
    scores: Sequence[Score], title: str, columns: Sequence[tuple[str, str]], figure: str = "accuracy"
) -> None:
    """Print a figure of each corpus; ``columns``: subjects of scores, and their headings."""
    print(f"\n{title}\n")
    rows = []
    for corpus in CORPORA:
        found = [find_score(scores, subject, task=corpus.name, figure=figure) for subject, _ in columns]
        digits = [show_interval(one) if figure == "accuracy" or one is None else f"{one.value:.4f}" for one in found]
        rows.append([corpus.name, *digits])
    print_rows([figure, *(heading for _, heading in columns)], rows)


if __name__ == "__main__":
    main()
