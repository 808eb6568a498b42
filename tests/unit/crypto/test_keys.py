"""Keys are read or refused, printed by nothing, derived for purposes and releases, rotated and destroyed."""

from __future__ import annotations

import itertools
import json
import os
import pickle
from dataclasses import fields

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from typer.testing import CliRunner

from wordveil.cli.key import app
from wordveil.crypto.keys import (
    MasterKey,
    ReleaseKeys,
    Secret,
    create_key,
    destroy_key,
    encode_public_key,
    find_key_fault,
    load_key,
    rotate_key,
)
from wordveil.errors import ConfigError, KeyMaterialError

MATERIAL = bytes.fromhex("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
LATER = bytes(range(7, 39))
LATEST = bytes(range(60, 92))
PURPOSES = [field.name for field in fields(ReleaseKeys)]


def key_file(tmp_path, content, mode=0o600):
    path = tmp_path / "release.key"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(mode)
    return path


def fault_of(**places):
    with pytest.raises(KeyMaterialError) as caught:
        load_key(places.get("file"), places.get("env"))
    return caught.value


def assert_tells_nothing(text, content=None):
    """No run of eight digits of the key stands in the text, in either case."""
    content = content or MATERIAL.hex()
    runs = {content[start : start + 8].lower() for start in range(len(content) - 7)}
    assert not any(run in text.lower() for run in runs)


def test_subkeys_are_hkdf_with_release_and_purpose():
    """No two of them are equal, whatever Unicode a release's name holds: no purpose has a bar."""

    def derive(info):
        return HKDF(algorithm=SHA256(), length=32, salt=None, info=f"wordveil 1|{info}".encode()).derive(MATERIAL)

    master = MasterKey(MATERIAL)
    for release in ("support-mail", "", "été|noise|"):
        found = {name: getattr(master.for_release(release), name).reveal() for name in PURPOSES}
        assert found == {name: derive(f"{name}|{release}") for name in PURPOSES}
        assert len({*found.values()}) == len(found)
    assert not any("|" in name for name in (*PURPOSES, "signing", "fingerprint"))
    assert master.signing_key("a").private_bytes_raw() == derive("signing|a")
    assert master.fingerprint == derive("fingerprint|")[:8].hex()
    assert (master.epoch, master.epoch_fingerprints) == (1, (master.fingerprint,))


def test_a_missing_file_a_directory_and_raw_bytes_are_named(tmp_path):
    tmp_path.chmod(0o700)
    raw = key_file(tmp_path, bytes(range(128, 160)))
    for path in (tmp_path / "none.key", tmp_path, raw):
        error = fault_of(file=str(path))
        assert str(path) in str(error)
        assert error.exit_code == 5
        assert "Put back the copy of a key that was used before" in str(error)  # before a new one is made


def test_a_key_without_one_place_or_with_no_value_is_named(monkeypatch):
    for places in ({}, {"file": "a", "env": "B"}):
        message = str(fault_of(**places))
        assert "key.file" in message
        assert "key.env" in message
    monkeypatch.delenv("TOY_KEY", raising=False)
    assert "key.env = TOY_KEY" in str(fault_of(env="TOY_KEY"))
    monkeypatch.setenv("TOY_KEY", "")
    assert "key.env = TOY_KEY" in str(fault_of(env="TOY_KEY"))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o601])
def test_only_a_file_of_its_owner_alone_is_accepted(tmp_path, mode):
    path = key_file(tmp_path, MATERIAL.hex(), mode)
    message = str(fault_of(file=str(path)))
    assert f"chmod 600 {path}" in message
    assert_tells_nothing(message)
    for private in (0o600, 0o400, 0o700):
        path.chmod(private)
        assert load_key(str(path), None).fingerprint == MasterKey(MATERIAL).fingerprint


MALFORMED = {
    "too short": MATERIAL.hex()[:-2],
    "not hexadecimal": "g" + MATERIAL.hex()[1:],
    "inner spaces of the right length": MATERIAL.hex()[:30] + "  " + MATERIAL.hex()[:32],
    "hexadecimal prefix": "0x" + MATERIAL.hex()[2:],
    "low entropy": "ab" * 32,
    "two lines": MATERIAL.hex()[:32] + "\n" + MATERIAL.hex()[32:],
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_key_is_refused_without_showing_it(tmp_path, monkeypatch, content):
    path = str(key_file(tmp_path, content))
    monkeypatch.setenv("TOY_KEY", content)
    for place, message in ((path, str(fault_of(file=path))), ("TOY_KEY", str(fault_of(env="TOY_KEY")))):
        assert place in message
        assert_tells_nothing(message.replace(path, ""), content)


def test_a_refusal_chains_no_exception_that_quotes_the_key(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_KEY", MALFORMED["not hexadecimal"])
    for error in (fault_of(env="TOY_KEY"), fault_of(file=str(key_file(tmp_path, MALFORMED["too short"])))):
        assert error.__suppress_context__ or error.__context__ is None


def test_master_key_has_32_bytes_of_many_values():
    for size in (0, 16, 31, 33, 64):
        with pytest.raises(KeyMaterialError, match="32 bytes"):
            MasterKey(bytes(range(size)))
    with pytest.raises(KeyMaterialError, match="not a random key"):
        MasterKey((bytes(range(7)) * 5)[:32])


def shown(value):
    """Every usual way to make text of a value."""
    texts = [repr(value), str(value), f"{value}", f"{value!s:>80}", f"{value!r}"]
    return [*texts, f"{[value]} { ({1: value}) }"]


@pytest.mark.parametrize(
    "value",
    [Secret(MATERIAL), MasterKey(MATERIAL), MasterKey(MATERIAL).for_release("a")],
    ids=lambda v: type(v).__name__,
)
def test_no_way_of_printing_shows_bytes(value):
    material = [MATERIAL]
    if isinstance(value, ReleaseKeys):
        material = [getattr(value, name).reveal() for name in PURPOSES]
    for text, secret in itertools.product(shown(value), material):
        assert_tells_nothing(text, secret.hex())
        assert repr(secret)[2:-1] not in text
        assert repr(secret[:4])[2:-1] not in text


def test_pickling_brings_secrets_back_and_still_hides_them():
    key = MasterKey(MATERIAL, later=[LATER])
    keys = key.for_release("a")
    back, whole = pickle.loads(pickle.dumps((keys, key)))  # noqa: S301 - our own bytes
    assert back == keys == whole.for_release("a")
    assert back.noise.reveal() == keys.noise.reveal()
    assert repr(back).count("<secret>") == len(PURPOSES)
    assert whole.epoch_fingerprints == key.epoch_fingerprints
    assert_tells_nothing("".join(shown(whole)), LATER.hex())


def test_a_new_key_is_random_private_and_read_back(tmp_path):
    made = [create_key(tmp_path / name) for name in ("a.key", "b.key")]
    assert made[0].fingerprint != made[1].fingerprint
    for key, name in zip(made, ("a.key", "b.key"), strict=True):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
        assert load_key(str(tmp_path / name), None).fingerprint == key.fingerprint


def test_a_key_is_never_overwritten(tmp_path):
    create_key(tmp_path / "a.key")
    before = (tmp_path / "a.key").read_bytes()
    with pytest.raises(KeyMaterialError, match="exists already, and a key is never overwritten"):
        create_key(tmp_path / "a.key")
    assert (tmp_path / "a.key").read_bytes() == before
    with pytest.raises(KeyMaterialError, match="cannot be written"):
        create_key(tmp_path / "no" / "a.key")


def epochs_file(tmp_path, *materials, mode=0o600):
    return key_file(tmp_path, "".join(f"{material.hex()}\n" for material in materials), mode)


def loaded(path):
    return load_key(str(path), None)


def test_a_later_epoch_changes_the_noise_alone(tmp_path):
    before, after = MasterKey(MATERIAL), loaded(epochs_file(tmp_path, MATERIAL, LATER, LATEST))
    assert after.epoch == 3
    assert after.fingerprint == before.fingerprint
    assert after.epoch_fingerprints == tuple(MasterKey(material).fingerprint for material in (MATERIAL, LATER, LATEST))
    assert encode_public_key(after.signing_key("a")) == encode_public_key(before.signing_key("a"))
    old, new, alone = before.for_release("a"), after.for_release("a"), MasterKey(LATEST).for_release("a")
    for name in ("tag", "layout", "pseudonym"):
        assert getattr(new, name) == getattr(old, name) != getattr(alone, name)
    for name in ("context", "noise", "sampling", "shuffle", "types", "rotating_pseudonym"):
        assert getattr(new, name) == getattr(alone, name) != getattr(old, name)


@pytest.mark.parametrize(
    ("materials", "words"),
    [
        ((MATERIAL, MATERIAL), "epoch 2, repeats epoch 1"),
        ((MATERIAL, LATER, LATEST, LATER), "epoch 4, repeats epoch 2"),
        ((MATERIAL, b"ab" * 16), "epoch 2, repeats a few byte values"),
        ((MATERIAL, LATER[:31]), "64 hexadecimal digits"),
    ],
)
def test_a_faulty_epoch_is_refused_without_showing_it(tmp_path, materials, words):
    message = str(fault_of(file=str(epochs_file(tmp_path, *materials))))
    assert words in message
    for material in materials:
        assert_tells_nothing(message, material.hex())


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_rotation_appends_a_random_epoch_and_keeps_the_mode(tmp_path, mode):
    path, link = epochs_file(tmp_path, MATERIAL, mode=mode), tmp_path / "link.key"
    link.symlink_to(path)
    first = rotate_key(path)
    second = rotate_key(link)
    assert link.is_symlink()
    assert loaded(path).epoch_fingerprints == second.epoch_fingerprints
    assert second.epoch_fingerprints[:2] == first.epoch_fingerprints
    assert len(set(second.epoch_fingerprints)) == second.epoch == 3
    assert path.read_text().split()[0] == MATERIAL.hex()
    assert path.stat().st_mode & 0o777 == mode
    assert {item.name for item in tmp_path.iterdir()} == {path.name, link.name}


@pytest.mark.parametrize("change", [rotate_key, destroy_key])
def test_no_bad_file_is_changed(tmp_path, change):
    for content, mode in ((MATERIAL.hex(), 0o644), ("no key", 0o600), (f"{MATERIAL.hex()} " * 2, 0o600)):
        path = key_file(tmp_path, content, mode)
        with pytest.raises(KeyMaterialError):
            change(path)
        assert path.read_text() == content
        assert [item.name for item in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("change", [rotate_key, destroy_key])
def test_of_two_who_change_a_key_one_is_refused(tmp_path, change):
    path = epochs_file(tmp_path, MATERIAL)
    draft = tmp_path / f".{path.name}.wordveil-draft"
    draft.write_text("")
    with pytest.raises(KeyMaterialError, match="another command is changing the key") as caught:
        change(path)
    assert str(draft) in str(caught.value)
    assert draft.exists()
    assert loaded(path).epoch == 1


@pytest.mark.parametrize("change", [rotate_key, destroy_key])
def test_a_change_that_fails_leaves_the_key_and_nothing_else(tmp_path, monkeypatch, change):
    path = epochs_file(tmp_path, MATERIAL)

    def fail(*_):
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace", "rename"):
        monkeypatch.setattr(os, name, fail)
    with pytest.raises(KeyMaterialError, match="No space left on device"):
        change(path)
    assert [item.name for item in tmp_path.iterdir()] == [path.name]
    if change is rotate_key:
        assert path.read_text() == f"{MATERIAL.hex()}\n"


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_destroyed_key_is_overwritten_in_place_and_says_so(tmp_path, monkeypatch, mode):
    path = epochs_file(tmp_path, MATERIAL, LATER, LATEST, mode=mode)
    (tmp_path / "hard.key").hardlink_to(path)
    size = path.stat().st_size
    tombstone = destroy_key(path)
    fingerprint = MasterKey(MATERIAL).fingerprint
    assert tombstone.fingerprint == fingerprint
    for name in (path.name, "hard.key"):
        content = (tmp_path / name).read_text()
        assert len(content) >= size
        for material in (MATERIAL, LATER, LATEST):
            assert_tells_nothing(content.replace(fingerprint, ""), material.hex())
        message = str(fault_of(file=str(tmp_path / name)))
        assert f"key {fingerprint} was destroyed on {tombstone.date}, so everything drawn with it is frozen" in message
    assert path.stat().st_mode & 0o777 == mode
    monkeypatch.setenv("TOY_KEY", path.read_text())
    assert f"was destroyed on {tombstone.date}" in str(fault_of(env="TOY_KEY"))
    for change in (rotate_key, destroy_key):
        with pytest.raises(KeyMaterialError, match="was destroyed on"):
            change(path)


ROOT, SECOND, THIRD, OTHER = (
    MasterKey(material).fingerprint for material in (MATERIAL, LATER, LATEST, bytes(range(99, 131)))
)


@pytest.mark.parametrize(
    ("root", "epochs", "words"),
    [
        (ROOT, (ROOT,), None),
        (ROOT, (ROOT, SECOND), None),
        (OTHER, (OTHER,), f"the key is {ROOT}, but the release was drawn with {OTHER}"),
        (ROOT, (ROOT, SECOND, THIRD), "has 2 epochs, but the release was drawn with 3: the key is older"),
        (ROOT, (ROOT, THIRD), f"epoch 2 of key {ROOT} is {SECOND}, but the release was drawn with {THIRD}"),
    ],
)
def test_a_key_is_compared_with_what_a_release_recorded(root, epochs, words):
    fault = find_key_fault(root, epochs, MasterKey(MATERIAL, later=[LATER]))
    assert fault is None if words is None else words in fault


def command(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command_tells_epochs_and_the_public_key_when_asked(tmp_path):
    path = epochs_file(tmp_path, MATERIAL)
    assert json.loads(command("rotate", path, "--json").stdout)["epoch"] == 2
    told = json.loads(command("fingerprint", "--file", path, "--release", "a", "--json").stdout)
    assert told["fingerprint"] == ROOT
    assert told["epoch_fingerprints"] == list(loaded(path).epoch_fingerprints)
    assert told["public_key"] == encode_public_key(MasterKey(MATERIAL).signing_key("a"))
    assert "public_key" not in json.loads(command("fingerprint", "--file", path, "--json").stdout)
    assert isinstance(command("fingerprint", "--file", path, "--release", "a b").exception, ConfigError)
    assert_tells_nothing(command("fingerprint", "--file", path).stdout, path.read_text().split()[1])


def test_the_command_destroys_nothing_without_yes(tmp_path):
    path = epochs_file(tmp_path, MATERIAL, LATER)
    refused = command("destroy", path)
    assert isinstance(refused.exception, ConfigError)
    assert f"would destroy key {ROOT}" in str(refused.exception)
    assert "its 2 epochs" in str(refused.exception)
    assert loaded(path).epoch == 2
    assert json.loads(command("destroy", path, "--yes", "--json").stdout)["fingerprint"] == ROOT
    assert "was destroyed on" in str(fault_of(file=str(path)))
