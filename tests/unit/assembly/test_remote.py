"""Bundles, audits and public files on another file system: each machine keeps a copy that is as new as the original.

What is on an object store is tested in tests/spark/test_s3.py.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.toys import random_embedding, toy_settings
from wordveil.artifacts import bundle as bundles
from wordveil.assembly.audits import find_audits, keep_audit
from wordveil.assembly.bundles import build_bundle, find_bundle, find_embedding, open_bundle
from wordveil.audit.bundle import audit_bundle
from wordveil.audit.findings import LEAST_DRAWS
from wordveil.config.load import Config, parse_config
from wordveil.errors import BundleError, PublicFileError

Machine = Callable[[str], Path]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Go on as on the machine of that name. Returns where it keeps its copies."""

    def enter(name: str) -> Path:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        return tmp_path / name

    return enter


def write_embedding(path: Path, seed: int = 0) -> None:
    random_embedding(30, 3, seed).save(path)


def configure(root: Path, store: str = "bundles", **mechanism: Any) -> Config:
    """A job whose public files are below ``root``, by their URI."""
    public = {"name": "laplace", "epsilon": 2.0, "embedding": (root / "vectors").as_uri(), "public": True}
    return parse_config(toy_settings({**public, **mechanism}, bundle_store=(root / store).as_uri()), "job")


def names_in(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def test_a_bundle_that_one_machine_builds_is_what_another_finds(tmp_path: Path, machine: Machine):
    write_embedding(tmp_path / "vectors")
    config = configure(tmp_path)
    machine("ours")
    assert find_bundle(config) is None
    built = build_bundle(config)
    store = tmp_path / "bundles"
    assert names_in(store / built.fingerprint) == names_in(built.path)
    assert built.manifest["recipe"]["embedding"] == config.mechanism.embedding
    written = (store / built.fingerprint / "manifest.json").stat().st_mtime_ns
    assert build_bundle(config).identity == built.identity
    assert (store / built.fingerprint / "manifest.json").stat().st_mtime_ns == written, "nothing is built again"

    kept = machine("theirs")
    build_bundle(configure(tmp_path, epsilon=3.0))
    shutil.rmtree(kept)
    found = find_bundle(config)
    assert found is not None
    assert found.identity == built.identity
    assert found.path.is_relative_to(kept)
    copies = [Path(name) for name in names_in(kept)]
    assert sum(path.name == "manifest.json" for path in copies) == 2
    assert [path.parent.name for path in copies if path.name == "index.bin"] == [built.fingerprint], "the other is not"
    assert not any("vectors" in path.parts for path in copies), "only what makes a bundle reads the embedding"

    alone = find_bundle(configure(tmp_path, f"bundles/{built.fingerprint}"))
    assert alone is not None
    assert (alone.path, alone.identity) == (found.path, built.identity)
    assert open_bundle(f"{store.as_uri()}/{built.fingerprint}/").identity == built.identity
    with pytest.raises(BundleError) as error:
        find_bundle(configure(tmp_path, epsilon=4.0))
    assert str(error.value).startswith(f"bundle_store = {store.as_uri()}: none of its 2 bundle(s) matches")


def list_open(cache: Path) -> set[str]:
    """What of a cache others may read, write or enter."""
    return {path.relative_to(cache).as_posix() for path in cache.rglob("*") if path.stat().st_mode & 0o077}


def test_copies_are_for_their_owner_alone(tmp_path: Path, machine: Machine):
    """Whatever the umask is, and whatever was there before."""
    write_embedding(tmp_path / "vectors")
    kept = machine("ours")
    before = os.umask(0)
    try:
        build_bundle(configure(tmp_path))
        copies = [*(kept / "wordveil").glob("remote-*")]
        assert len(copies) == 2
        assert list_open(kept) == set()
        for path in (kept / "wordveil", *copies):
            path.chmod(0o777)
        built = build_bundle(configure(tmp_path, epsilon=3.0))
        assert list_open(kept) == set()
        kept = machine("theirs")
        open_bundle(f"{(tmp_path / 'bundles').as_uri()}/{built.fingerprint}")
        assert list_open(kept) == set()
    finally:
        os.umask(before)


def test_a_cache_of_another_user_is_refused(tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch):
    """He could replace what is drawn from."""
    write_embedding(tmp_path / "vectors")
    machine("ours")
    build_bundle(configure(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    with pytest.raises(PublicFileError, match=r"its copy cannot be kept in .*wordveil \(it belongs to another user\)"):
        build_bundle(configure(tmp_path))


def test_private_weights_are_refused_before_they_are_copied(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    write_embedding(tmp_path / "vectors")
    machine("ours")
    config = configure(tmp_path)
    built = build_bundle(config)
    kept = machine("theirs")
    monkeypatch.setattr(bundles, "is_private", lambda path: path.name == built.fingerprint)
    address = f"{(tmp_path / 'bundles').as_uri()}/{built.fingerprint}"
    for look in (lambda: open_bundle(address), lambda: find_bundle(config)):
        with pytest.raises(BundleError, match=rf"^{address}: a private corpus trained this bundle's weights"):
            look()
    assert {Path(name).name for name in names_in(kept) if built.fingerprint in name} == {"manifest.json"}


def test_changed_file_is_copied_again_and_damaged_one_refused(tmp_path: Path, machine: Machine):
    write_embedding(tmp_path / "vectors")
    (tmp_path / "counts.tsv").write_text("".join(f"{word}\t1\n" for word in random_embedding(30, 3).words.to_pylist()))
    config = configure(tmp_path, frequencies=(tmp_path / "counts.tsv").as_uri())
    machine("ours")
    first = build_bundle(config)
    shutil.rmtree(tmp_path / "vectors")
    write_embedding(tmp_path / "vectors", seed=1)
    (tmp_path / "vectors" / "more.txt").write_text("")
    assert build_bundle(config).fingerprint != first.fingerprint
    (tmp_path / "vectors" / "more.txt").unlink()
    embedding = find_embedding(config)
    assert embedding is not None
    assert (embedding.vectors == random_embedding(30, 3, 1).vectors).all()
    copy = next((tmp_path / "ours").rglob("vectors"))
    assert names_in(copy) == names_in(tmp_path / "vectors"), "what is gone goes here too"

    machine("theirs")
    index = tmp_path / "bundles" / first.fingerprint / "index.bin"
    index.write_bytes(bytes(index.stat().st_size))
    with pytest.raises(BundleError, match=r"index\.bin: its checksum differs"):
        find_bundle(configure(tmp_path, f"bundles/{first.fingerprint}", frequencies=config.mechanism.frequencies))


def test_an_audit_counts_on_every_machine_until_it_is_deleted(tmp_path: Path, machine: Machine):
    write_embedding(tmp_path / "vectors")
    config = configure(tmp_path)
    machine("ours")
    bundle = build_bundle(config)
    assert find_audits(config, bundle.fingerprint) == ()
    path, refuted = keep_audit(config.bundle_store, audit_bundle(bundle, draws=LEAST_DRAWS["bundle"]))
    assert refuted is None
    assert path == f"{(tmp_path / 'bundles').as_uri()}/.audits/{bundle.fingerprint}/bundle.json"
    machine("theirs")
    assert find_audits(config, bundle.fingerprint) == ("bundle",)
    Path(path.removeprefix("file://")).unlink()
    for name in ("theirs", "ours"):
        machine(name)
        assert find_audits(config, bundle.fingerprint) == (), name


def test_what_cannot_be_read_is_named_with_the_setting(tmp_path: Path, machine: Machine):
    machine("ours")
    with pytest.raises(PublicFileError, match=r"^mechanism\.embedding = file:.*/vectors: no such file or directory"):
        build_bundle(configure(tmp_path))
    unknown = configure(tmp_path).model_copy(update={"bundle_store": "dbfs:/bundles"})
    with pytest.raises(PublicFileError, match=r"^bundle_store = dbfs:/bundles: cannot be read or written \(Unrecogn"):
        find_bundle(unknown)
