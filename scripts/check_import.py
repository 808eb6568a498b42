"""Check an environment that has the package and nothing of its extras but those that are named: it can be imported, and
what needs neither Spark nor Java works.

BIN/python scripts/check_import.py [EXTRA...]
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import distributions, requires
from pathlib import Path

import wordveil

CHOSEN = set(sys.argv[1:])
KEPT = Path(__file__).parents[1] / "tests" / "releases" / "0.3.0"


def normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command of the installed package, which ends with ``code``."""
    command = [str(Path(sys.prefix) / "bin" / "wordveil"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    if done.returncode != code:
        sys.exit(f"wordveil: {' '.join(command)} ended with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")
    return done


needed = [requirement.partition(";") for requirement in requires("wordveil") or []]
names = [(normalise(re.split(r"[^\w.-]", name)[0]), re.search(r"extra == .([\w-]+)", end)) for name, _, end in needed]
wanted = {name for name, extra in names if extra is None or extra[1] in CHOSEN}
present = {normalise(distribution.name) for distribution in distributions()}
if found := sorted(({name for name, _ in names} - wanted) & present - {"setuptools", "wordveil"}):
    sys.exit(f"wordveil: the package alone brings {', '.join(found)}, which belong to extras")
if not Path(wordveil.__file__).is_relative_to(sys.prefix):
    sys.exit(f"wordveil: {wordveil.__file__} is not the installed package")
shown = run("--help").stdout
run("docs", "releases")
state = json.loads(run("release", "show", "--config", KEPT / "release.yaml", "--json").stdout)
verify = ("verify", "--table", KEPT / "release" / "public")
if "verify" in CHOSEN:
    facts = json.loads(run(*verify, "--json").stdout)
    said = f"verified {facts['records']} records by {facts['reader']}"
else:
    said = run(*verify, code=7).stderr.strip()
    if "pip install 'wordveil[verify]'" not in said:
        sys.exit(f"wordveil: verify does not name its extra: {said}")
alone = f"with {', '.join(CHOSEN)}" if CHOSEN else "alone"
print(f"wordveil {wordveil.__version__} {alone}, {len(present)} packages: {len(shown.splitlines())} lines of help")
print(f"  release show: {len(state['runs'])} runs; {said}")
