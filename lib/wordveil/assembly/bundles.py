"""Assembly of what a configuration names: its embedding and other public files, its bundle and its n-gram model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordveil.artifacts import bundle as bundles
from wordveil.artifacts.bundle import Bundle, Recipe, name_setting
from wordveil.artifacts.ngram_model import find_model, open_model
from wordveil.assembly.inputs import confine_embedding, digest_files, digest_table, read_files
from wordveil.assembly.remote import fetch, open_store
from wordveil.config.load import Config
from wordveil.config.mechanisms import HYPERNYMS, MechanismSection
from wordveil.config.schema import TextSection
from wordveil.embeddings import embedding as embeddings
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.training.hypernyms import read_pairs
from wordveil.embeddings.training.poincare import ReadPairs, train_or_load
from wordveil.errors import BundleError, WordveilError
from wordveil.measures.comparison import SentenceComparison, compare
from wordveil.measures.losses import stores_points
from wordveil.measures.recovery import load_built, measure_recovery
from wordveil.measures.suitability import measure_suitability
from wordveil.measures.text_distance import TextDistance, measure_distance
from wordveil.mechanisms.inputs import PublicInputs
from wordveil.neighbours.blocks import BuildContext
from wordveil.privacy.recovery import SUBJECT, Recovery
from wordveil.text.slots import NgramModel
from wordveil.text.types.typed import compile_finder
from wordveil.version import __version__

_PARTS = ".parts"
_TRAINED = ".trained"
_COMPARED = ".compared"
# The cache of comparisons takes 160 MB for 20,000 words of 100 dimensions. Entries unused for a day are deleted.
_COMPARED_SECONDS = 24 * 60 * 60
FindBundle = Callable[[], Bundle | None]
"""Function that finds the configuration's bundle, as :func:`find_bundle` does."""


def build_bundle(config: Config, work: BuildContext | None = None, read: ReadPairs = read_pairs) -> Bundle:
    """Build the configuration's bundle, or return the one that exists.

    Expensive parts are kept in the store until the bundle is written, so that an interrupted build continues where it
    was. A trained embedding stays there, for bundles with other settings of the mechanism. ``work`` reports progress
    and finds neighbours, by default silently in this process. ``read`` reads the pairs from which an embedding is
    trained.

    Raises :class:`BundleError` if the mechanism cannot be built, :class:`wordveil.errors.EmbeddingError` if the
    embedding cannot be read or trained, and :class:`wordveil.errors.PublicFileError` or
    :class:`wordveil.errors.NgramError` if another public file is missing, unreadable or does not fit the embedding.
    """
    work = work or BuildContext()
    section, store = fetch_files(config.mechanism), open_store(config.bundle_store)
    recipe = _make_recipe(config, section)
    try:
        path = store.find(recipe)
    except BundleError:
        if store.path != store.root:
            raise  # One bundle is named, and it is another one.
        path = None  # The store has other bundles; this one is added.
    if path is None:
        # Files first: their faults are reported before training an embedding, which may start Spark.
        files = read_files(section.public_files, work.progress)
        embedding = _load_embedding(section, config.text.keep_only, store.root, work, read)
        fitted = files.fit(embedding.words, config.policy.language)
        work = replace(work, kept=work.kept or store.root / _PARTS)
        built = section.mechanism.build(
            embedding, section.settings, padding=recipe.padding, work=work, inputs=fitted.inputs
        )
        built = replace(built, notes=(*fitted.notes, *built.notes))
        provenance = {
            "wordveil": __version__,
            "built": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "source": embedding.source,
        }
        frequencies = fitted.inputs.frequencies_of(embedding.size) if built.topics is None else built.topics.shares
        suits: dict[str, Any] | None = None
        with load_built(section.mechanism, built, len(frequencies)) as mechanism:
            work.progress("measuring what an attacker recovers")
            recovery = measure_recovery(mechanism, frequencies)
            if built.topics is not None and recovery is not None:
                recovery = replace(recovery, of=SUBJECT)
            if built.topics is None:
                work.progress("measuring how the embedding suits the mechanism")
                suits = asdict(
                    measure_suitability(mechanism, embedding, section.settings, built.guarantee, frequencies)
                )
        path = bundles.write(store.root, embedding, built, recipe, provenance, recovery, suits)
        work.forget()
        store.save(path)
        work.progress("compiling what texts are read with, which takes half a minute once on a machine")
        compile_finder(config.policy)
    return bundles.open_bundle(path)


def fetch_files(section: MechanismSection) -> MechanismSection:
    """Replace remote public files of a mechanism by local copies."""
    places = {"embedding": section.embedding, **section.public_files}
    copies = {name: fetch(f"mechanism.{name}", place) for name, place in places.items()}
    return section.model_copy(update=copies)


def _make_recipe(config: Config, section: MechanismSection, *, missing_allowed: bool = False) -> Recipe:
    digests = digest_files(section.public_files, missing_allowed=missing_allowed)
    listed = config.text.keep_only
    if listed and (not missing_allowed or Path(listed).exists()):
        digests[bundles.KEEP_ONLY] = digest_table(listed, name_setting(bundles.KEEP_ONLY))
    is_read = not missing_allowed or embeddings.embedding_exists(section.embedding)
    return config.recipe(embeddings.digest_source(section.embedding) if is_read else "", digests)


def _load_embedding(
    section: MechanismSection, keep_only: str | None, store: Path, work: BuildContext, read: ReadPairs
) -> Embedding:
    """Read the embedding, or train it, and confine it to the words of the list ``keep_only``, if any."""
    if section.embedding_format == HYPERNYMS:
        loaded = train_or_load(Path(section.embedding), section.training_settings, store / _TRAINED, work, read)
    else:
        loaded = embeddings.load(section.embedding, section.embedding_format, work.progress)
    return confine_embedding(loaded, keep_only) if keep_only else loaded


def find_embedding(config: Config, progress: Callable[[str], None] = lambda _: None) -> Embedding | None:
    """Read the mechanism's public embedding, or return None if it is missing or hyperbolic: its means describe no text.

    Raises :class:`wordveil.errors.EmbeddingError` if it cannot be read.
    """
    section = fetch_files(config.mechanism)
    if section.embedding_format == HYPERNYMS or not embeddings.embedding_exists(section.embedding):
        return None
    store = Path(config.bundle_store)
    return _load_embedding(section, config.text.keep_only, store, BuildContext(progress), read_pairs)


@dataclass(frozen=True)
class PublicParts:
    """Public parts from which mechanisms are built at many epsilons."""

    embedding: Embedding
    inputs: PublicInputs
    """Other public data, in the order of the embedding's words."""
    work: BuildContext
    """Cache of neighbours and clusters."""
    notes: tuple[str, ...]
    """Remarks on how public files fit the embedding, as sentences."""


@contextmanager
def open_parts(config: Config, work: BuildContext | None = None) -> Iterator[PublicParts]:
    """Read the public files of a configuration, to build mechanisms without a bundle.

    Neighbours and clusters are kept in the bundle store, by the embedding's content, if it is writable: the next
    epsilon, and the next command, finds them there. They are public, as the embedding is. Those unused for a day are
    deleted. Raises as :func:`build_bundle`.
    """
    section, store = fetch_files(config.mechanism), open_store(config.bundle_store).root
    work = work or BuildContext()
    files = read_files(section.public_files, work.progress)
    embedding = _load_embedding(section, config.text.keep_only, store, work, read_pairs)
    fitted = files.fit(embedding.words, config.policy.language)
    with suppress(OSError):
        (store / _COMPARED).mkdir(parents=True, exist_ok=True)
    if os.access(store / _COMPARED, os.W_OK):
        work = replace(work, kept=store / _COMPARED)
    yield PublicParts(embedding, fitted.inputs, work, fitted.notes)
    if work.kept == store / _COMPARED:
        work.forget_unused(_COMPARED_SECONDS)


def compare_mechanisms(config: Config, text: str, work: BuildContext | None = None) -> SentenceComparison:
    """Show ``text`` under the configured mechanism and under the others. Raises as :func:`build_bundle`."""
    section = config.mechanism
    with open_parts(config, work) as parts:
        ngrams = find_ngrams(config.text)
        return compare(
            parts.embedding, config.policy, section.name, section.settings, text, parts.work, ngrams, parts.inputs
        )


def measure_texts(config: Config, find: FindBundle, texts: tuple[str, str]) -> TextDistance:
    """Measure the distance of two public texts under the configuration.

    Raises :class:`BundleError` without a bundle, otherwise as :func:`wordveil.measures.text_distance.measure_distance`.
    """
    bundle = find()
    if bundle is None:
        raise BundleError(
            f"bundle_store = {config.bundle_store}: holds no bundle, and it says how far apart words are. Run "
            "`wordveil build` with this configuration."
        )
    embedding = None
    if not stores_points(bundle):
        section = fetch_files(config.mechanism)
        if embeddings.embedding_exists(section.embedding):
            keep_only, store = config.text.keep_only, bundle.path.parent
            embedding = _load_embedding(section, keep_only, store, BuildContext(), read_pairs)
    return measure_distance(bundle, config.sentence_policy, texts, embedding, find_ngrams(config.text))


def find_bundle(config: Config) -> Bundle | None:
    """Open the configuration's bundle. Return None if its store is empty.

    The contents of public files are compared if they are on this machine, otherwise their names. Raises
    :class:`BundleError` if there are bundles and none matches.
    """
    recipe = _make_recipe(config, config.mechanism, missing_allowed=True)
    path = open_store(config.bundle_store).find(recipe)
    return bundles.open_bundle(path) if path else None


def open_bundle(location: str | Path) -> Bundle:
    """Open and verify the bundle at ``location``, or the only one of the store there.

    Raises :class:`BundleError`, and :class:`wordveil.errors.PublicFileError` if another file system cannot be read.
    """
    return bundles.open_bundle(open_store(str(location), "bundle").find_one())


def find_once(config: Config) -> FindBundle:
    """Return a function that opens the configuration's bundle once: verifying it takes as long as reading it."""
    return cache(partial(find_bundle, config))


@dataclass(frozen=True)
class PublishedFacts:
    """Facts of a bundle that a manifest repeats.

    ``recovery``: what an attacker recovers, or None. ``symbols``: as :func:`describe_symbols`. ``responses``: as
    :attr:`wordveil.mechanisms.base.Mechanism.responses`.
    """

    recovery: Recovery | None = None
    symbols: dict[str, Any] | None = None
    responses: int | None = None


_TELLING = 8
"""Number of a cluster's words that are named."""


def describe_symbols(bundle: Bundle) -> dict[str, Any] | None:
    """Describe the symbols that are drawn, for readers of an output, as plain values; None without any.

    ``law``: that of a draw (:class:`wordveil.mechanisms.laws.SymbolLaw`). ``meanings``: of each symbol, by number, what
    is ``written`` for it, its ``keywords``, and of words the ``size``: the number of words that it stands for. The last
    is a text without a known word, or padding.
    """
    if (symbols := bundle.mechanism.symbols) is None:
        return None
    count = len(symbols.law.sizes)
    if bundle.topics is not None:
        rows = zip(bundle.topics.passages.to_pylist(), bundle.topics.keywords.to_pylist(), strict=True)
        meanings: list[dict[str, Any]] = [{"written": passage, "keywords": words} for passage, words in rows]
    else:
        words, sizes = bundle.vocabulary.array, np.bincount(symbols.read, minlength=count)
        ends = np.cumsum(sizes)
        # Embeddings have frequent words first.
        members = np.split(np.argsort(symbols.read, kind="stable"), ends[:-1])
        written, first = np.unique(symbols.written, return_index=True)
        heads = dict(zip(written.tolist(), first.tolist(), strict=True))
        meanings = [
            {
                "written": words[heads[symbol]].as_py(),
                "keywords": " ".join(words.take(pa.array(chosen[:_TELLING])).to_pylist()),
                "size": len(chosen),
            }
            for symbol, chosen in enumerate(members)
        ]
    last = {"written": "", "keywords": ""} if bundle.topics else {"written": "", "keywords": "padding", "size": 0}
    return {"law": symbols.law.to_dict(), "meanings": [*meanings, *[last] * (symbols.law.size - count)]}


def find_facts(config: Config, fingerprint: str) -> PublishedFacts:
    """Find the public facts of the configuration's bundle, if it has that fingerprint."""
    with suppress(WordveilError):
        bundle = find_bundle(config)
        # Weights that the private corpus trained recover words of it: that is not published.
        if bundle is not None and bundle.fingerprint == fingerprint and not bundle.mechanism.private_weights:
            return PublishedFacts(bundle.recovery, describe_symbols(bundle), bundle.mechanism.responses)
    return PublishedFacts()


def find_ngrams(section: TextSection) -> NgramModel | None:
    """Open and verify the text policy's n-gram model, if any. Raises :class:`wordveil.errors.NgramError`."""
    return open_model(find_model(Path(section.ngrams))) if section.ngrams else None


def ready_bundle(config: Config, work: BuildContext | None = None) -> Bundle:
    """Find the bundle of a run, or build it if configured. Raises :class:`BundleError`."""
    bundle = build_bundle(config, work) if config.build_missing else find_bundle(config)
    if bundle is None:
        raise BundleError(
            f"bundle_store = {config.bundle_store}: holds no bundle. Run `wordveil build` with this configuration, or "
            "set build_missing: true."
        )
    bundle.check_policy(config.policy, config.text_columns.widths)
    return bundle
