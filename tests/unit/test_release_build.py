"""What a release is: a wheel with all that users copy and read, wherever it is built, and notes of its version."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import wordveil
from support.repository import ROOT, load_script

CONTAINER = (ROOT / "conf" / "spark" / "Containerfile").read_text("utf-8")
LARGE = ("glove_embedding", "demo_embedding", "poincare_embedding", "hypernyms", "bigrams")


script = load_script("scripts/release.py")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the container image builds the package from, but for large files, which packing would take seconds for."""
    place = tmp_path_factory.mktemp("source")
    copied = re.findall(r"^COPY (.+) /src/", CONTAINER, re.MULTILINE)
    left_out = shutil.ignore_patterns("__pycache__", "*.egg-info", *LARGE)
    for name in " ".join(copied).split():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, symlinks=True, ignore=left_out)
        else:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    return place


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built there."""
    target = tmp_path_factory.mktemp("wheel")
    code = "from setuptools.build_meta import build_wheel; import sys; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, target], cwd=source, check=True, capture_output=True)
    (found,) = target.glob("*.whl")
    return found


def test_a_wheel_from_the_container_image_is_the_whole_package(source: Path, wheel: Path):
    files = script.list_package(ROOT)
    expected = {name: place for name, place in files.items() if not any(f"/data/{large}/" in name for large in LARGE)}
    assert script.list_package(source).keys() == expected.keys()
    assert script.find_differences(wheel, expected) == []


def test_a_wheel_has_what_users_copy_and_read(wheel: Path):
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, pattern in (("airflow_dags", "*.py"), ("jobs", "*.py"), ("docs", "**/*.md"), ("conf", "**/*.yaml")):
        files = [path.relative_to(ROOT).as_posix() for path in (ROOT / folder).glob(pattern)]
        assert files
        assert {f"wordveil/data/{name}" for name in files} <= names
    assert {f"wordveil/data/sentences/{name}" for name in ("wordnet.parquet", "LICENSE.wordnet-3.0")} <= names
    assert not any("pictures" in name for name in names), "a megabyte that no terminal shows"


def test_a_wheel_says_its_version(wheel: Path):
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dynamic"]
    name = f"wordveil-{wordveil.__version__}"
    assert wheel.name == f"{name}-py3-none-any.whl"
    metadata = zipfile.ZipFile(wheel).read(f"{name}.dist-info/METADATA").decode()
    assert f"\nVersion: {wordveil.__version__}\n" in metadata


def test_differences_of_a_wheel_are_found(wheel: Path, tmp_path: Path):
    altered = tmp_path / wheel.name
    left_out, changed = "wordveil/data/docs/choosing.md", "wordveil/data/conf/nightly.yaml"
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(altered, "w") as after:
        for name in before.namelist():
            if name != left_out:
                after.writestr(name, before.read(name) + b"#" * (name == changed))
        after.writestr("wordveil/left_over.py", "")
    large = {name for name in script.list_package(ROOT) if any(f"/data/{large}/" in name for large in LARGE)}
    files = {name: place for name, place in script.list_package(ROOT).items() if name not in large}
    assert script.find_differences(altered, files) == [
        f"{left_out} is missing",
        "wordveil/left_over.py is no file of the package",
        f"{changed} has another content",
    ]


def test_links_that_lead_nowhere_are_found(tmp_path: Path):
    data = tmp_path / "lib" / "wordveil" / "data"
    data.mkdir(parents=True)
    (data / "docs").symlink_to("../../../docs")
    with pytest.raises(FileNotFoundError, match="data/docs: what the link names is missing"):
        script.list_package(tmp_path)


def test_the_version_has_notes_and_kept_files():
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    script.check_notes(changelog, wordveil.__version__)
    assert changelog.index("\n## Unreleased\n") < changelog.index(f"\n## {wordveil.__version__} - ")
    assert (ROOT / "tests" / "releases" / wordveil.__version__ / "expected.json").exists()
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert f"\n## {citation['version']} - {citation['date-released']}\n" in changelog
    assert citation["version"] == wordveil.__version__
    with pytest.raises(SystemExit, match=r"CHANGELOG\.md has no section `## 99\.0\.0 - DATE`"):
        script.check_notes(changelog, "99.0.0")
