"""Bundle: a built mechanism as a content-addressed directory that workers map into memory.

A *store* is a directory of bundles, each named by its mechanism fingerprint:

    <store>/<fingerprint>/manifest.json   what it is, with a checksum of every file and of itself
    <store>/<fingerprint>/words.txt       the words that texts are read with, UTF-8, one a line
    <store>/<fingerprint>/topics.json     of symbols that stand for texts: what is written for each, and its keywords
    <store>/<fingerprint>/<array>.bin     arrays, little-endian, C order; the manifest has dtype and shape
    <store>/<fingerprint>/<file>          files in a library's own format (Annoy's trees), mapped by that library
    <store>/<fingerprint>-<digits>/...    the same, built by another recipe

The fingerprint covers all that decides draws and the price stated in a row: vocabulary, arrays, files, parameters,
padding, the certified guarantee, and the versions of sampler and certificate. It covers no software versions, no time,
and nothing that only describes the build. :mod:`wordveil.artifacts.content_store` writes, verifies and maps such
directories.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordveil.artifacts import content_store
from wordveil.crypto.keys import MasterKey
from wordveil.crypto.private_files import find_exposure
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.errors import BundleError
from wordveil.mechanisms.base import PRIVATE_WEIGHTS, Mechanism, MechanismArtifact, TokenBatch, Topics
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.privacy.guarantees import WordGuarantee
from wordveil.privacy.recovery import Recovery
from wordveil.text.policy import TextPolicy, find_context_faults
from wordveil.text.types.classes import CLASSES, LATER_NAME_TYPES, TypeAction
from wordveil.text.types.lists import PublicLists

_LOGGER = logging.getLogger(__name__)
_RECORDS, _TOKENS = 64, 4
_KEYS = MasterKey(bytes(range(32))).for_release("draws")  # no secret: nothing private is drawn


def check_draws(mechanism: Mechanism[Any], manifest: Mapping[str, Any], path: Path) -> None:
    """Raise :class:`BundleError` if another package's mechanism draws differently than when its bundle was built.

    Golden outputs in tests do so for wordveil's own.
    """
    wanted, content = manifest.get("draws"), manifest["content"]
    if wanted and wanted != _digest_draws(mechanism, content):
        raise BundleError(
            f"{path}: {manifest['package']} no longer draws what it drew when this bundle was built, though "
            f"sampler_version is {content['sampler_version']} as before. Install the version of that time here and on "
            "every executor; or let the package raise sampler_version, and build in another store."
        )


def _digest_draws(mechanism: Mechanism[Any], content: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of what ``mechanism`` draws and writes for 256 symbols.

    It is empty for a mechanism that reads a text as a whole, which may draw texts of some lengths alone.
    """
    if mechanism.reads_context:
        return ""
    size = content["size"]
    width = min(_TOKENS, mechanism.max_tokens)
    symbols = np.linspace(0, size - 1, _RECORDS * width).astype(np.int32)
    symbols[:: 2 * width] = size + 1
    if content["padding"]:
        symbols[width :: 2 * width] = size
    numbers = np.arange(_RECORDS, dtype="<u8")
    contexts = np.zeros((_RECORDS, 12), np.uint8)
    contexts[:, :8] = numbers[:, None].view(np.uint8)
    drawn = mechanism.draw(TokenBatch(symbols, width * np.arange(_RECORDS + 1), contexts), _KEYS)
    digest = sha256()
    for batch in (drawn, mechanism.render(drawn)):
        digest.update(np.ascontiguousarray(batch.ids, "<i4").tobytes())
    return digest.hexdigest()


FORMAT_VERSION = 2


def _describe(manifest: Mapping[str, Any]) -> str:
    epsilon = manifest["recipe"]["settings"].get("epsilon")
    return f"{manifest['content']['mechanism']}{'' if epsilon is None else f', epsilon {epsilon:g}'}"


KIND = content_store.Kind(
    "bundle", BundleError, "fingerprint", FORMAT_VERSION, "Build one with `wordveil build`.", _describe
)
_WORDS, _TOPICS, _LISTS = "words.txt", "topics.json", "lists.bin"
_TOPIC = ("passage", "keywords", "share")
KEEP_ONLY = "keep_only"
"""Public file of a recipe that the section ``text`` names: the list to which the vocabulary is confined."""


@dataclass(frozen=True)
class Recipe:
    """Recipe of a bundle, by which a configuration identifies its bundle.

    ``settings``: the mechanism's own, without those that name files. ``embedding_digest``: the SHA-256 of its files;
    empty if they are missing. ``inputs``: the other public files, by setting, each with ``name``, its source, and
    ``digest``, empty if the file is missing. ``lists``: the language of the public lists from which typed tokens are
    drawn; empty for none. The bundle keeps the lists, so that later versions of the package draw from the same ones.
    """

    mechanism: str
    settings: dict[str, Any]
    padding: bool
    embedding: str
    embedding_digest: str
    inputs: dict[str, dict[str, str]] = field(default_factory=dict)
    lists: str = ""

    def differences(self, manifest: Mapping[str, Any]) -> list[str]:
        """List the differences of a bundle from this recipe, in the configuration's terms; empty if it matches.

        Files whose content is unknown (a digest is empty) are compared by name.
        """
        other = manifest["recipe"]
        pairs = [("mechanism.name", self.mechanism, other["mechanism"]), ("padding", self.padding, other["padding"])]
        settings = sorted({*self.settings, *other["settings"]})
        pairs += [(f"mechanism.{key}", self.settings.get(key), other["settings"].get(key)) for key in settings]
        mine, theirs = _public_files(vars(self)), _public_files(other)
        pairs.append(("text.types, public lists", self.lists or "none", other["lists"] or "none"))
        names = sorted({*mine, *theirs})
        pairs += [_compare_files(name_setting(name), mine.get(name), theirs.get(name)) for name in names]
        return [
            f"{name} is {theirs} in the bundle, {mine} in the configuration"
            for name, mine, theirs in pairs
            if mine != theirs
        ]


def _public_files(recipe: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    embedding = {"name": recipe["embedding"], "digest": recipe["embedding_digest"]}
    return {"embedding": embedding, **recipe["inputs"]}


def _compare_files(
    setting: str, mine: Mapping[str, str] | None, theirs: Mapping[str, str] | None
) -> tuple[str, str | None, str | None]:
    """Make a row of :meth:`Recipe.differences`: contents of two files if both are known, or their sources."""
    if mine and theirs and mine["digest"] and theirs["digest"]:
        return f"content of {setting}", mine["digest"], theirs["digest"]
    return setting, mine["name"] if mine else None, theirs["name"] if theirs else None


def name_setting(file: str) -> str:
    """Return the setting that names a public file of a recipe."""
    return f"text.{file}" if file == KEEP_ONLY else f"mechanism.{file}"


@dataclass(frozen=True)
class Bundle:
    """Verified, memory-mapped bundle.

    ``path``: its directory. ``fingerprint``: the mechanism's, 64 hexadecimal digits. ``manifest``: as written.
    ``vocabulary``: the strings that are written for symbols: words, or passages. ``lexicon``: the words that texts are
    read with: the vocabulary, unless symbols stand for texts. ``guarantee``: the certified constants of one token.
    ``mechanism``: ready to draw. ``lists``: the public lists from which typed tokens are drawn, or None. ``topics``:
    what symbols mean that stand for texts, or None.
    """

    path: Path
    fingerprint: str
    manifest: dict[str, Any]
    vocabulary: Vocabulary
    lexicon: Vocabulary
    guarantee: WordGuarantee
    mechanism: Mechanism[Any]
    lists: PublicLists | None = None
    topics: Topics | None = None

    @property
    def padding(self) -> bool:
        """True if padding is among its symbols."""
        return bool(self.manifest["content"]["padding"])

    @property
    def recovery(self) -> Recovery | None:
        """Share of words that an attacker recovers, or None if the build did not measure it."""
        recovery = self.manifest["recovery"]
        return Recovery.from_dict(recovery) if recovery else None

    @property
    def suitability(self) -> dict[str, Any] | None:
        """Plain values of the embedding's :class:`wordveil.measures.suitability.Suitability`, or None."""
        suitability: dict[str, Any] | None = self.manifest["suitability"]
        return suitability

    def count_preview(self, records: int) -> int | None:
        """Return the ``max_records`` of an internal preview, or None for a mechanism made from public data alone."""
        return max(records, 1) if self.mechanism.private_weights else None

    @property
    def identity(self) -> bytes:
        """Manifest as bytes, against which a worker checks the payload."""
        return content_store.encode_canonical(self.manifest)

    def check_unit(self, policy: TextPolicy) -> None:
        """Raise :class:`BundleError` if the policy draws words by symbols of texts, or texts by symbols of words."""
        if policy.draws_words != self.mechanism.draws_texts:
            return
        drawn = "whole texts" if self.mechanism.draws_texts else "words"
        raise BundleError(
            f"bundle {self.path}: its mechanism {self.mechanism.name} draws {drawn}, and text.unit is {policy.unit}. "
            "Set text: {profile: passages} with the mechanism passages, and another profile with others."
        )

    def check_policy(self, policy: TextPolicy, widths: Sequence[int] = ()) -> None:
        """Raise :class:`BundleError` unless the mechanism can draw the tokens that the policy produces.

        ``widths``: the public number of tokens of each text column, if there are several.
        """
        self.check_unit(policy)
        problem = ""
        if policy.needs_padding != self.padding:
            built = "with" if self.padding else "without"
            problem = f"it was built {built} padding, and text.length is {policy.length}"
        elif policy.draws_types and self.lists is None:
            problem = "it was built without public lists, and text.types or text.names needs them"
        elif policy.draws_types and self.lists is not None and self.lists.language != policy.language:
            problem = f"its public lists are of language {self.lists.language}, and text.language is {policy.language}"
        if problem:
            raise BundleError(f"bundle {self.path}: {problem}. Run `wordveil build` with this policy.")
        self._check_later_lists(policy)
        if (policy.n_max or 0) > self.mechanism.max_tokens:
            raise BundleError(
                f"text.n_max = {policy.n_max}: this mechanism can draw at most {self.mechanism.max_tokens} tokens of a "
                "record. Lower text.n_max."
            )
        if self.mechanism.reads_context:
            for name, problem in find_context_faults(self.mechanism.name, policy):
                raise BundleError(f"bundle {self.path}: text.{name} {problem}")
        if policy.n_max is not None:
            self.mechanism.check_lengths(widths or (policy.n_max,))
        self.mechanism.check_installed()

    def _check_later_lists(self, policy: TextPolicy) -> None:
        """Refuse a policy that names a class whose list the bundle lacks. Other policies are accepted as before."""
        ranked = self.lists.ranked if self.lists else {}
        lacking = [kind for kind in LATER_NAME_TYPES if ranked and not len(ranked[CLASSES[kind].list][0])]
        lacking = [kind for kind in lacking if dict(policy.types).get(kind, TypeAction.WORDS) != TypeAction.WORDS]
        if not lacking:
            return
        fix = "Only English has them: remove the setting."
        if policy.language == "en":
            fix = "An earlier version built it: build it in another store, or remove the setting."
        lacks = f"its public lists ({policy.language}) have none of text.types.{lacking[0]}"
        raise BundleError(f"bundle {self.path}: {lacks}. {fix}")

    @property
    def payload_bytes(self) -> int:
        """Size of all files that the manifest lists."""
        return content_store.payload_bytes(self.manifest)


def write(
    store: Path,
    embedding: Embedding,
    built: MechanismArtifact,
    recipe: Recipe,
    provenance: Mapping[str, Any],
    recovery: Recovery | None = None,
    suitability: Mapping[str, Any] | None = None,
) -> Path:
    """Write a bundle into ``store`` and return its directory.

    ``recovery``, ``suitability``: figures of attackers and embedding, if measured. The directory gets its name only
    once all files are on disk. An existing bundle with the same content stays unchanged. If it was built by another
    recipe, the new one is kept beside it with the same fingerprint: a file may change without changing draws, and each
    configuration must find a bundle of its own recipe.
    """
    measured = {"recovery": recovery.to_dict() if recovery else None, "suitability": suitability}
    variant = hashlib.sha256(content_store.encode_canonical(vars(recipe))).hexdigest()[:16]
    return content_store.write_directory(
        store,
        KIND,
        lambda draft: _fill(draft, embedding, built, recipe, {"provenance": dict(provenance), **measured}),
        open_bundle,
        lambda manifest: variant if recipe.differences(manifest) else "",
        private=bool(built.parameters.get(PRIVATE_WEIGHTS)),
    )


def _fill(
    draft: Path, embedding: Embedding, built: MechanismArtifact, recipe: Recipe, measured: Mapping[str, Any]
) -> dict[str, Any]:
    words = "".join(f"{word}\n" for word in embedding.words.to_pylist()).encode("utf-8")
    files = {_WORDS: content_store.write_file(draft / _WORDS, memoryview(words))}
    for name, array in built.arrays.items():
        files |= content_store.write_array(draft, name, array)
    if recipe.lists:
        files[_LISTS] = content_store.write_file(draft / _LISTS, memoryview(PublicLists.load(recipe.lists).serialise()))
    for name, write_to in built.files.items():
        write_to(draft / name)
        files[name] = {**content_store.sync_file(draft / name), "raw": True}
    if built.topics is not None:
        files[_TOPICS] = content_store.write_file(draft / _TOPICS, memoryview(_encode_topics(built.topics)))
    mechanism = MECHANISMS[recipe.mechanism]
    content: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "mechanism": recipe.mechanism,
        "sampler_version": mechanism.sampler_version,
        "certificate_version": mechanism.certificate_version,
        "guarantee": asdict(built.guarantee),
        "padding": recipe.padding,
        "parameters": built.parameters,
        "size": embedding.size if built.topics is None else len(built.topics.passages),
        "files": files,
    }
    facts = {"recipe": vars(recipe), "notes": [*embedding.warnings, *built.notes], **measured}
    if package := MECHANISMS.package_of(recipe.mechanism):
        paths = {name: draft / name for name in built.files}
        loaded = mechanism.load(content["size"], built.parameters, built.arrays, paths)
        facts |= {"package": package, "draws": _digest_draws(loaded, content)}
    return content_store.write_manifest(draft, KIND, content, facts)


def open_bundle(path: Path, identity: bytes | None = None) -> Bundle:
    """Open and verify a bundle: every file's size and SHA-256, the manifest's own checksum and the fingerprint.

    ``identity``: the required manifest (:attr:`Bundle.identity`), if known. Raises :class:`BundleError`, which names
    the file, also if others can read a bundle of a private corpus.
    """
    manifest = _read_manifest(path)
    if identity is not None and content_store.encode_canonical(manifest) != identity:
        raise BundleError(
            f"{path / content_store.MANIFEST}: this is not the bundle that the run started with. Restore that bundle, "
            "or start the run again."
        )
    content = manifest["content"]
    if content["parameters"].get(PRIVATE_WEIGHTS) and any(map(find_exposure, (path, *path.iterdir()))):
        raise BundleError(
            f"{path}: a private corpus trained this bundle's weights, and it can be read by other users. Fix it with: "
            f"chmod -R go= {path}"
        )
    content_store.verify_files(path, KIND, content["files"])
    words = (path / _WORDS).read_text("utf-8").split("\n")[:-1]
    arrays = content_store.map_arrays(path, content["files"])
    raw = {name: path / name for name, entry in content["files"].items() if entry.get("raw")}
    mechanism = MECHANISMS[content["mechanism"]].load(content["size"], content["parameters"], arrays, raw)
    check_draws(mechanism, manifest, path)
    fingerprint = manifest["fingerprint"]
    lexicon = Vocabulary(pa.array(words, pa.string()))
    topics = _decode_topics((path / _TOPICS).read_bytes()) if _TOPICS in content["files"] else None
    _LOGGER.debug("opened bundle %s at %s: %s over %d words", fingerprint, path, mechanism.name, len(words))
    return Bundle(
        path=path,
        fingerprint=fingerprint,
        manifest=manifest,
        vocabulary=lexicon if topics is None else Vocabulary(topics.passages),
        guarantee=WordGuarantee.from_dict(content["guarantee"]),
        mechanism=mechanism,
        lexicon=lexicon,
        lists=PublicLists.from_bytes((path / _LISTS).read_bytes()) if _LISTS in content["files"] else None,
        topics=topics,
    )


def _encode_topics(topics: Topics) -> bytes:
    shares = map(float.hex, topics.shares.tolist())
    rows = zip(topics.passages.to_pylist(), topics.keywords.to_pylist(), shares, strict=True)
    return content_store.encode_canonical({"topics": [dict(zip(_TOPIC, row, strict=True)) for row in rows]})


def _decode_topics(data: bytes) -> Topics:
    passages, keywords, shares = ([row[name] for row in json.loads(data)["topics"]] for name in _TOPIC)
    return Topics(
        pa.array(passages, pa.string()), pa.array(keywords, pa.string()), np.array([*map(float.fromhex, shares)])
    )


def is_private(path: Path) -> bool:
    """Return whether a private corpus trained the bundle at ``path``, by its manifest. Raises :class:`BundleError`."""
    return bool(_read_manifest(path)["content"]["parameters"].get(PRIVATE_WEIGHTS))


def find_one(path: Path) -> Path:
    """Find the bundle's directory by :func:`wordveil.artifacts.content_store.find_one`. Raises :class:`BundleError`."""
    return content_store.find_one(path, KIND, "bundle")


def find(store: Path, recipe: Recipe, location: str = "") -> Path | None:
    """Find the bundle of ``recipe`` in ``store``, which may be a bundle itself, or return None without bundles.

    ``location``: the store's name in messages; by default its path. Raises :class:`BundleError` if there are bundles
    and none matches, with the differences of the nearest one; or if several match that were built from different files.
    """
    store_setting = f"bundle_store = {location or store}"
    others: list[tuple[list[str], Path]] = []
    matches: dict[str, Path] = {}
    is_bundle = content_store.is_finished(store)
    for path in [store] if is_bundle else content_store.list_directories(store):
        if differences := recipe.differences(manifest := _read_manifest(path, known_only=False)):
            others.append((differences, path))
        else:
            built = manifest["recipe"]
            inputs = sorted((setting, entry["digest"]) for setting, entry in built["inputs"].items())
            matches.setdefault(str((built["embedding_digest"], inputs)), path)
    if len(matches) > 1:
        # Missing files are known only by their names.
        names = ", ".join(path.name for path in matches.values())
        raise BundleError(
            f"{store_setting}: bundles {names} were built from different files of the names in the "
            "configuration, and the files that would decide between them are missing. Set bundle_store to the "
            "directory of the bundle that you mean, or add the files."
        )
    if matches:
        return next(iter(matches.values()))
    if not others:
        return None
    differences, nearest = min(others, key=lambda pair: len(pair[0]))
    if is_bundle:
        raise BundleError(
            f"{store_setting}: this bundle does not match the configuration: {'; '.join(differences)}. Set "
            "bundle_store to the directory that all bundles are in and run `wordveil build`, or change the "
            "configuration to match the bundle."
        )
    raise BundleError(
        f"{store_setting}: none of its {len(others)} bundle(s) matches the configuration. The nearest is "
        f"{nearest.name}: {'; '.join(differences)}. Run `wordveil build` with this configuration, or change the "
        "configuration to match the bundle."
    )


def _read_manifest(path: Path, *, known_only: bool = True) -> dict[str, Any]:
    manifest = content_store.read_manifest(path, KIND)
    content, file = manifest["content"], path / content_store.MANIFEST
    known = MECHANISMS.get(content["mechanism"])
    if known is None:
        if not known_only:
            return manifest  # the configuration's mechanism is another one
        raise BundleError(
            f"{file}: this Python has no mechanism {content['mechanism']}. Install "
            f"{manifest.get('package', 'the package that has it')} here and on every executor. {KIND.renewal}"
        )
    for name in ("sampler_version", "certificate_version"):
        if content[name] != getattr(known, name):
            raise BundleError(f"{file}: {name} {content[name]} is not {getattr(known, name)}. {KIND.renewal}")
    return manifest
