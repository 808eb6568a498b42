"""Builds a release of the last commit into dist/ and checks it: sdist, wheel and SHA256SUMS.

The wheel is built from the sdist, as on a machine that has nothing else. It must hold the package's files, byte by
byte, also those that stand elsewhere in the repository and are links in the package. It is installed into an empty
environment and run there.

    make release
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "lib/wordveil"
# No files of the package: what Python writes, and pictures, which no terminal shows.
LEFT_OUT = re.compile(r"(^|/)__pycache__/|^wordveil/data/docs/pictures/")
JOB = """
format_version: 2
release: check
input: {path: records.jsonl, format: json, id: id, text: text}
mechanism: {name: staircase, epsilon: 5, embedding: demo, public: true}
bundle_store: bundles
text: {profile: readable}
key: {file: key}
output: {path: output}
"""


def run(*command: str | Path, directory: Path = ROOT, **more: str) -> str:
    """Run a command, and exit with its output if it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=directory, env={**environment, **more}, capture_output=True, text=True)  # noqa: PLW1510, S603
    if done.returncode:
        sys.exit(f"wordveil: {' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def list_package(root: Path) -> dict[str, Path]:
    """List the files that a wheel must hold, by their names there. Links are followed, and must lead somewhere."""
    library = root / "lib"
    found: dict[str, Path] = {}
    for folder, folders, names in os.walk(root / PACKAGE, followlinks=True):
        places = [Path(folder, name) for name in (*folders, *names)]
        if dangling := [str(place) for place in places if not place.exists()]:
            raise FileNotFoundError(f"{', '.join(dangling)}: what the link names is missing")
        found |= {place.relative_to(library).as_posix(): place for place in places if place.is_file()}
    return {name: place for name, place in found.items() if not LEFT_OUT.search(name)}


def find_differences(wheel: Path, files: Mapping[str, Path]) -> list[str]:
    """Say how a wheel differs from the package's ``files``."""
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        changed = [name for name in held & files.keys() if archive.read(name) != files[name].read_bytes()]
    return [
        *(f"{name} is missing" for name in sorted(files.keys() - held)),
        *(f"{name} is no file of the package" for name in sorted(held - files.keys())),
        *(f"{name} has another content" for name in sorted(changed)),
    ]


def check_notes(changelog: str, version: str) -> None:
    """End where the changelog does not say what the version brings, and when it was released."""
    if not re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        sys.exit(f"wordveil: CHANGELOG.md has no section `## {version} - DATE`")


def export(place: Path) -> Path:
    """Copy the files of the last commit, without what this checkout has beside them."""
    run("git", "archive", "--output", place / "source.tar", "HEAD")
    shutil.unpack_archive(place / "source.tar", place / "source")
    return place / "source"


def build(source: Path, target: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it. The times in the wheel are those of the last commit."""
    shutil.rmtree(target, ignore_errors=True)
    time = run("git", "log", "-1", "--format=%ct")
    constraints = str(source / "constraints.txt")
    run(sys.executable, "-m", "build", "--outdir", target, source, PIP_CONSTRAINT=constraints, SOURCE_DATE_EPOCH=time)
    (sdist,), (wheel,) = target.glob("*.tar.gz"), target.glob("*.whl")
    return sdist, wheel


def try_wheel(wheel: Path, version: str) -> None:
    """Install the wheel into an empty environment, and run what needs the package's data, without Java."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        run(sys.executable, "-m", "venv", home / "environment")
        binaries = home / "environment" / "bin"
        pip = (binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile")
        run(*pip, "-c", ROOT / "constraints.txt", wheel, directory=home)
        command = binaries / "wordveil"
        if (told := run(command, "--version", directory=home)) != version:
            sys.exit(f"wordveil: the wheel is of version {version}, and its command says {told}")
        if "Usage: wordveil" not in (told := run(command, "--help", directory=home)):
            sys.exit(f"wordveil: `wordveil --help` says {told}")
        (home / "job.yaml").write_text(JOB)
        (home / "records.jsonl").write_text('{"id": "r1", "text": "The old men sang."}\n')
        run(command, "key", "new", "key", directory=home)
        run(command, "build", "--config", "job.yaml", directory=home)
        run(command, "docs", "choosing", directory=home)
        run(command, "docs", "conf/nightly.yaml", directory=home)
        run(command, "init", "--airflow", "dags", directory=home)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        source = export(Path(scratch))
        sdist, wheel = build(source, ROOT / "dist")
        version = wheel.name.split("-")[1]
        check_notes((source / "CHANGELOG.md").read_text("utf-8"), version)
        if differences := find_differences(wheel, list_package(source)):
            sys.exit("wordveil: the wheel is not the package:\n" + "\n".join(differences))
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    # W002, equal files: each folder of data has its licence.
    run(Path(sys.executable).with_name("check-wheel-contents"), "--no-config", "--ignore", "W002", wheel)
    try_wheel(wheel, version)
    digests = {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in (sdist, wheel)}
    sums = "".join(f"{digest}  {file.name}\n" for file, digest in digests.items())
    (ROOT / "dist" / "SHA256SUMS").write_text(sums)
    print(f"wordveil {version}, in dist/ ({wheel.stat().st_size / 1e6:.1f} MB):\n{sums}", end="")
    print(f"To publish: git tag -s v{version} -m 'wordveil {version}' && git push origin v{version}")
    if run("git", "status", "--porcelain", "--untracked-files=no"):
        print("wordveil: files have changed since the last commit. The changes are not in it.")
