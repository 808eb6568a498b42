"""A bundle is addressed by content, never half written or damaged, found by its configuration, and draws as it did."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.toys import (
    KEYS,
    WORDS,
    laplace_bundle,
    ragged,
    random_embedding,
    spiral_embedding,
    toy_recipe,
    write_toy_bundle,
)
from wordveil.artifacts import content_store
from wordveil.artifacts.bundle import KIND, Recipe, find, find_one, open_bundle, write
from wordveil.errors import BundleError
from wordveil.mechanisms.additive.laplace import Laplace, LaplaceSettings
from wordveil.mechanisms.base import TokenBatch
from wordveil.neighbours.blocks import BuildContext
from wordveil.plugins import Registry
from wordveil.privacy.recovery import PriorRecovery, Recovered, Recovery
from wordveil.records.sanitiser import RecordSettings, release_terms
from wordveil.text.policy import TextPolicy

FILES = ("manifest.json", "words.txt", "index.bin")


def entries(store):
    return sorted(path.name for path in store.iterdir())


def refusal(path, identity=None):
    with pytest.raises(BundleError) as caught:
        open_bundle(path, identity)
    assert caught.value.exit_code == 4
    return str(caught.value)


def seal_again(path, change):
    """Change a manifest and seal it again, as everyone can who may write to the store."""
    manifest = json.loads((path / "manifest.json").read_text())
    change(manifest)
    facts = {name: value for name, value in manifest.items() if name not in {"content", "fingerprint", "seal"}}
    content_store.write_manifest(path, KIND, manifest["content"], facts)


@pytest.fixture
def toy(tmp_path):
    return write_toy_bundle(tmp_path / "store")


def test_address_is_the_fingerprint_and_the_same_in_two_stores(tmp_path):
    one, two = write_toy_bundle(tmp_path / "one"), write_toy_bundle(tmp_path / "two")
    assert one.name == two.name == open_bundle(one).fingerprint
    assert [(one / name).read_bytes() for name in FILES] == [(two / name).read_bytes() for name in FILES]
    assert entries(one) == sorted(FILES)


def test_address_covers_these_and_nothing_else(toy):
    content = json.loads((toy / "manifest.json").read_text())["content"]
    versions = {"format_version", "sampler_version", "certificate_version"}
    assert set(content) == {*versions, "mechanism", "guarantee", "padding", "parameters", "size", "files"}


def test_a_record_cannot_cost_less_under_the_same_fingerprint(toy):
    before = open_bundle(toy)

    def lower(manifest):
        held = manifest["content"] if "guarantee" in manifest["content"] else manifest
        held["guarantee"]["epsilon"] = 0.01

    seal_again(toy, lower)
    after = open_bundle(toy)
    assert after.guarantee.epsilon == 0.01
    assert after.fingerprint != before.fingerprint
    with pytest.raises(BundleError, match="not the bundle that the run started with"):
        open_bundle(toy, before.identity)


def test_what_the_fingerprint_omits_changes_no_row(toy):
    before, policy = open_bundle(toy), TextPolicy(length="as_is")

    def change(manifest):
        left_out = set(manifest) - {"content", "fingerprint", "seal"}
        assert left_out == {"recipe", "notes", "provenance", "recovery", "suitability"}
        manifest["recipe"] |= {"padding": True, "mechanism": "tree", "settings": {"epsilon": 0.01}, "lists": "en"}
        manifest |= {"notes": [], "provenance": {}, "recovery": None, "suitability": None}

    seal_again(toy, change)
    after, settings = open_bundle(toy), RecordSettings("release", "run", policy, ())
    assert after.fingerprint == before.fingerprint
    assert release_terms(settings, after) == release_terms(settings, before)
    assert (after.padding, after.lists, after.mechanism.name) == (False, None, "laplace")
    after.check_policy(policy)
    with pytest.raises(BundleError, match="built without padding"):
        after.check_policy(TextPolicy(length="pad", n_max=4))


def test_address_changes_with_all_that_decides_what_is_drawn(tmp_path):
    words = spiral_embedding()
    nudged = spiral_embedding()
    nudged.vectors[3, 1] = np.nextafter(nudged.vectors[3, 1], np.float32(99))
    addresses = [
        write_toy_bundle(tmp_path).name,
        write_toy_bundle(tmp_path, epsilon=2.0).name,
        write_toy_bundle(tmp_path, padding=True).name,
        write_toy_bundle(tmp_path, nudged).name,
        write_toy_bundle(tmp_path, spiral_embedding(["a", *WORDS[1:]])).name,
        write_toy_bundle(tmp_path, spiral_embedding([WORDS[1], WORDS[0], *WORDS[2:]])).name,
        write_toy_bundle(tmp_path, spiral_embedding(WORDS[:-1])).name,
    ]
    assert len(set(addresses)) == len(addresses)
    assert write_toy_bundle(tmp_path, words).name == addresses[0]


def test_address_changes_with_neither_provenance_nor_recovery(tmp_path):
    first = write_toy_bundle(tmp_path, built_at="2026-01-01", host="a")
    before = (first / "manifest.json").read_bytes()
    assert write_toy_bundle(tmp_path, built_at="2027-01-01", host="b") == first
    assert (first / "manifest.json").read_bytes() == before
    assert write_toy_bundle(tmp_path / "other", built_at="2028").name == first.name
    prior = PriorRecovery(1 / 12, (Recovered(1, 0.5, None),))
    path = write_as(tmp_path / "third", toy_recipe(spiral_embedding()), Recovery(prior, prior))
    assert path.name == first.name
    assert open_bundle(path).recovery == Recovery(prior, prior)
    assert open_bundle(first).recovery is None


def test_what_was_written_is_what_is_opened(toy):
    bundle = open_bundle(toy)
    embedding = spiral_embedding()
    assert bundle.vocabulary.array.to_pylist() == WORDS
    rare = ["a\u2028b", "c\x85", "d\x0be", *WORDS[3:]]
    assert open_bundle(write_toy_bundle(toy.parent, spiral_embedding(rare))).vocabulary.array.to_pylist() == rare
    assert bundle.guarantee.epsilon == 1.0
    assert bundle.guarantee.diameter >= np.linalg.norm(embedding.vectors[0] - embedding.vectors[-1])
    assert bundle.payload_bytes == sum((toy / name).stat().st_size for name in FILES[1:])
    ids, offsets = ragged([[0, 1], [2]])
    assert len(bundle.mechanism.draw(TokenBatch(ids, offsets, np.zeros((2, 12), np.uint8)), KEYS).ids) == 3


@pytest.mark.parametrize("failing", ["rename", "fsync"])
def test_a_write_that_dies_leaves_nothing(tmp_path, monkeypatch, failing):
    def dies(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(*((Path, "rename", dies) if failing == "rename" else (os, "fsync", dies)))
        with pytest.raises(OSError, match="No space"):
            write_toy_bundle(tmp_path)
    assert entries(tmp_path) == []
    assert open_bundle(write_toy_bundle(tmp_path)).vocabulary.size == len(WORDS)


def test_the_name_appears_after_all_files_are_complete(tmp_path, monkeypatch):
    seen = []
    rename = Path.rename

    def watched(self, target):
        seen.append((entries(self), entries(tmp_path), json.loads((self / "manifest.json").read_text())["fingerprint"]))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", watched)
    path = write_toy_bundle(tmp_path)
    [(files, store, fingerprint)] = seen
    assert files == sorted(FILES)
    assert path.name == fingerprint
    assert path.name not in store


def flip(place):
    return lambda content: bytes(byte ^ (at == int(place * (len(content) - 1))) for at, byte in enumerate(content))


DAMAGES = {
    "missing": None,
    "emptied": lambda _: b"",
    "all but a byte cut": lambda content: content[:1],
    "a byte cut": lambda content: content[:-1],
    "longer": lambda content: content + b"more\n",
    **{f"a bit flipped at {place}": flip(place) for place in (0.0, 0.3, 0.6, 1.0)},
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_named(toy, name, damage):
    content = (toy / name).read_bytes()
    (toy / name).unlink() if damage is None else (toy / name).write_bytes(damage(content))
    said = refusal(toy)
    assert str(toy / name) in said
    assert "elete" not in said, "nothing advises to delete a bundle"


def test_manifest_with_a_flipped_byte_is_refused(toy):
    content = (toy / "manifest.json").read_bytes()
    meant = json.loads(content)
    for place in range(0, len(content), 5):
        altered = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        try:
            same = json.loads(altered) == meant
        except ValueError:
            same = False
        if not same:
            (toy / "manifest.json").write_bytes(altered)
            assert str(toy / "manifest.json") in refusal(toy), altered[max(0, place - 20) : place + 20]
    meant["recipe"]["padding"] = True
    (toy / "manifest.json").write_text(json.dumps(meant))
    assert "altered since it was written" in refusal(toy)


def test_other_formats_and_no_manifest_are_refused_with_a_fix(toy):
    manifest = json.loads((toy / "manifest.json").read_text())
    for version in (1, 3, "2"):
        manifest["content"]["format_version"] = version
        (toy / "manifest.json").write_text(json.dumps(manifest))
        assert f"format_version {version} is not 2. Build the bundle again in another store, or use" in refusal(toy)
    for content in (b"null", b"[]", b"{}", b'{"content": null}', b"\xff\xfe"):
        (toy / "manifest.json").write_bytes(content)
        assert "manifest.json: is damaged" in refusal(toy)
    with pytest.raises(BundleError, match="is damaged"):
        find(toy.parent, toy_recipe(spiral_embedding()))


@pytest.mark.parametrize("name", ["sampler_version", "certificate_version"])
def test_bundle_of_another_sampler_version_is_refused(toy, monkeypatch, name):
    now = getattr(Laplace, name)
    monkeypatch.setattr(Laplace, name, 99)
    assert f"{name} {now} is not 99. Build the bundle again in another store, or use the wordveil" in refusal(toy)
    assert write_toy_bundle(toy.parent) != toy


def test_bundle_of_a_missing_mechanism_hides_no_other(toy):
    gone = write_toy_bundle(toy.parent, epsilon=2.0)

    def change(manifest):
        manifest["content"]["mechanism"] = manifest["recipe"]["mechanism"] = "gone"

    seal_again(gone, change)
    assert find(toy.parent, toy_recipe(spiral_embedding())) == toy
    with pytest.raises(BundleError, match=r"none of its 2 bundle\(s\) matches"):
        find(toy.parent, toy_recipe(spiral_embedding(), epsilon=3.0))
    assert "no mechanism gone. Install the package that has it here and on every executor. Build" in refusal(gone)


def test_identity_is_checked_where_the_caller_knows_it(tmp_path):
    """It covers provenance too: a worker is given the very manifest that the driver read."""
    one, other = write_toy_bundle(tmp_path / "one", host="a"), write_toy_bundle(tmp_path / "two", host="b")
    assert one.name == other.name
    identity = open_bundle(one).identity
    assert open_bundle(one, identity).fingerprint == one.name
    for changed in (other, write_toy_bundle(tmp_path / "one", epsilon=2.0)):
        said = refusal(changed, identity)
        assert f"{changed / 'manifest.json'}: this is not the bundle that the run started with" in said


def test_arrays_are_read_only_and_memory_mapped(toy):
    index = open_bundle(toy).mechanism._index
    base = index
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert Path(base.filename) == toy / "index.bin"
    assert not index.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        index[0, 0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        index.setflags(write=True)


def test_find_picks_the_one_that_matches(tmp_path):
    embedding, other = spiral_embedding(), spiral_embedding(WORDS[:5])
    wanted = {
        (epsilon, padding, one.digest): write_toy_bundle(tmp_path, one, epsilon=epsilon, padding=padding)
        for epsilon in (1.0, 2.0)
        for padding in (False, True)
        for one in (embedding, other)
    }
    assert len(set(wanted.values())) == 8
    for (epsilon, padding, digest), path in wanted.items():
        one = embedding if digest == embedding.digest else other
        assert find(tmp_path, toy_recipe(one, epsilon=epsilon, padding=padding)) == path


def test_find_tells_all_in_which_the_nearest_differs(tmp_path):
    write_toy_bundle(tmp_path, spiral_embedding(WORDS[:5]), epsilon=9.0, padding=True)
    nearest = write_toy_bundle(tmp_path, epsilon=3.0)
    with pytest.raises(BundleError) as caught:
        find(tmp_path, toy_recipe(spiral_embedding(), epsilon=1.0))
    message = str(caught.value)
    assert f"none of its 2 bundle(s) matches the configuration. The nearest is {nearest.name}:" in message
    epsilon = "mechanism.epsilon is 3.0 in the bundle, 1.0 in the configuration"
    assert epsilon in message
    assert "padding is" not in message
    assert "content of" not in message
    alone = write_toy_bundle(tmp_path / "other", epsilon=3.0, padding=True).parent
    with pytest.raises(BundleError) as caught:
        find(alone, toy_recipe(spiral_embedding(WORDS[:4])))
    for part in (epsilon, "padding is True in the bundle, False", "content of mechanism.embedding is"):
        assert part in str(caught.value)


def with_counts(digest: str, name: str = "counts.tsv") -> Recipe:
    """The recipe of the toy bundle with one more file."""
    return replace(toy_recipe(spiral_embedding()), inputs={"frequencies": {"name": name, "digest": digest}})


def write_as(store: Path, made_by: Recipe, recovery: Recovery | None = None) -> Path:
    """The toy bundle, written as that of another recipe."""
    built = Laplace.build(spiral_embedding(), LaplaceSettings(epsilon=1.0), padding=False, work=BuildContext())
    return write(store, spiral_embedding(), built, made_by, {}, recovery)


def test_equal_content_of_another_recipe_stands_beside_the_first(tmp_path):
    plain = write_toy_bundle(tmp_path)
    before = (plain / "manifest.json").read_bytes()
    first, second = write_as(tmp_path, with_counts("a" * 64)), write_as(tmp_path, with_counts("b" * 64))
    assert len({plain, first, second}) == 3
    assert {open_bundle(path).fingerprint for path in (plain, first, second)} == {plain.name}
    assert all(re.fullmatch(rf"{plain.name}-[0-9a-f]{{16}}", path.name) for path in (first, second))
    assert find(tmp_path, toy_recipe(spiral_embedding())) == plain
    assert find(tmp_path, with_counts("a" * 64)) == first
    assert find(tmp_path, with_counts("b" * 64)) == second
    assert write_as(tmp_path, with_counts("b" * 64)) == second
    assert write_toy_bundle(tmp_path) == plain
    assert (plain / "manifest.json").read_bytes() == before
    assert entries(tmp_path) == sorted(path.name for path in (plain, first, second))
    (second / "words.txt").write_text("x")
    with pytest.raises(BundleError, match=r"words\.txt: has 1 bytes"):
        write_as(tmp_path, with_counts("b" * 64))


def test_files_are_compared_by_content_and_else_by_name(tmp_path):
    path = write_as(tmp_path, with_counts("a" * 64))
    blind = replace(with_counts(""), embedding_digest="")
    for asked in (with_counts("a" * 64), with_counts("a" * 64, "moved.tsv"), blind):
        assert find(tmp_path, asked) == path
    for asked, difference in (
        (with_counts("", "moved.tsv"), "mechanism.frequencies is counts.tsv in the bundle, moved.tsv in the config"),
        (replace(blind, embedding="other.vec"), "mechanism.embedding is toy.vec in the bundle, other.vec in the conf"),
        (with_counts("b" * 64), f"content of mechanism.frequencies is {'a' * 64} in the bundle, {'b' * 64} in the"),
        (toy_recipe(spiral_embedding()), "mechanism.frequencies is counts.tsv in the bundle, None in the config"),
    ):
        with pytest.raises(BundleError, match=re.escape(difference)):
            find(tmp_path, asked)


def test_a_store_stands_for_its_only_bundle_and_no_half_one(tmp_path):
    path = write_toy_bundle(tmp_path)
    half = tmp_path / ".building-x"
    half.mkdir()
    (half / "manifest.json").touch()
    assert find_one(tmp_path) == find_one(path) == path
    path.rename(tmp_path / ".building-dead")  # what a killed process leaves
    assert find(tmp_path, toy_recipe(spiral_embedding())) is None


def test_a_place_without_a_bundle_is_named(tmp_path):
    (tmp_path / "made").mkdir()
    for place in (tmp_path / "made", tmp_path / "none"):
        assert find(place, toy_recipe(spiral_embedding())) is None
        with pytest.raises(BundleError, match=rf"{place}: holds no bundle\. Build one with `wordveil build`\."):
            find_one(place)
        assert str(place) in refusal(place)


def test_a_bundle_by_its_directory_is_found_or_refused_alone(tmp_path):
    one, two = write_toy_bundle(tmp_path), write_toy_bundle(tmp_path, epsilon=2.0)
    asked = toy_recipe(spiral_embedding(), epsilon=2.0)
    assert find(tmp_path, asked) == find(two, asked) == two
    with pytest.raises(BundleError, match=r"this bundle does not match the configuration: mechanism.epsilon is 1.0"):
        find(one, asked)


def test_losing_the_race_to_the_name_is_no_error(tmp_path, monkeypatch):
    """The other writer's rename comes between our look and our own."""
    exists = Path.exists
    winner = write_toy_bundle(tmp_path)
    monkeypatch.setattr(Path, "exists", lambda self: self != winner and exists(self))
    assert write_toy_bundle(tmp_path) == winner
    assert entries(tmp_path) == [winner.name]


EMBEDDING = random_embedding(40, 3)


@pytest.fixture(params=[False, True], ids=["as-is", "padded"])
def foreign(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle whose mechanism is another package's."""
    monkeypatch.setattr(Registry, "package_of", lambda _, name: f"{name}-package 1.0")
    return laplace_bundle(tmp_path, EMBEDDING, 2.0, padding=request.param).path


def shift(batch: TokenBatch) -> TokenBatch:
    """Copy a batch and change one word."""
    return replace(batch, ids=np.where(np.arange(len(batch.ids)) == 7, 3 - batch.ids % 2, batch.ids).astype(np.int32))


@pytest.mark.parametrize("method", ["draw", "render"])
def test_a_bundle_whose_draws_differ_is_refused(foreign: Path, monkeypatch: pytest.MonkeyPatch, method: str):
    assert open_bundle(foreign).manifest["package"] == "laplace-package 1.0"
    unchanged = getattr(Laplace, method)

    def changed(self: Laplace, batch: TokenBatch, *keys: Any) -> TokenBatch:
        return shift(unchanged(self, batch, *keys))

    monkeypatch.setattr(Laplace, method, changed)
    with pytest.raises(BundleError, match=r"laplace-package 1\.0 no longer draws what it drew.*sampler_version is 2"):
        open_bundle(foreign)


def test_wordveils_own_bundles_have_no_digest(tmp_path: Path):
    assert "draws" not in laplace_bundle(tmp_path, EMBEDDING, 2.0, padding=False).manifest
