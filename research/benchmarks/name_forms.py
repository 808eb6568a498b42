"""How many names come out of a readable job as they are, by the form of the text around them, and how many ordinary
words are taken for names.

Each name stands in each form alone, in a record of its own, under several keys. The job is the one that `wordveil init`
drafts, with `profile: readable`. A name comes out *whole* where its word, or it with `'s`, is in the output, in any
case; it is *found* where it is a part of a typed token.

False alarms are counted in gensim's news and in reviews: the share of words that are taken for first names, surnames,
places or nationalities, and of those that are ordinary by the texts' own use: in small letters more often than not.

    python research/benchmarks/name_forms.py [--smallest] [--before TREE]

TREE is a checkout of an earlier version, which is measured too, with its own drafts, in a process of its own; without
it, the figures of `before` that are there stay. `written_any` is of now, with a mechanism that writes names. Writes
research/results/name_forms.json and prints a table.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import gensim
import pyarrow as pa

from common import DATA, RESULTS, draft_job, draft_mechanism, machine, make_parser, save_results
from wordveil.assembly.bundles import build_bundle
from wordveil.crypto.keys import MasterKey
from wordveil.records.sanitiser import RecordSanitiser
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN
from wordveil.text.tokeniser import Tokeniser
from wordveil.text.types.classes import CHARACTER_TYPES, NAME_TYPES, TYPES
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.names import find_names
from wordveil.text.types.typed import Recogniser

TEXT = {"profile": "readable", "language": "en"}
KEYS, QUICK_KEYS, QUICK_NAMES = 10, 2, 3
REVIEWS = 2000
Outputs = list[list[str]]
KEY = MasterKey(sha256(b"wordveil: draws of public names").digest())

NAMES = [
    "Smith", "Jones", "Brown", "Johnson", "Lee", "Taylor", "Young", "King", "Baker", "Cook", "Wood", "Stone",
    "Green", "Hill", "White", "Black", "Walker", "Clark", "Moore", "Murphy", "John", "Mary", "Rose", "Grace",
    "Mark", "Hope", "Sato", "Kumar", "Patel", "Nguyen", "Okonkwo", "Hiroshi", "Priya", "Garcia", "Kowalski",
    "Putin", "Farouk", "Kim", "Adeyemi", "Zhang",
]  # fmt: skip
HELD_OUT_NAMES = [
    "Bishop", "Fox", "Cooper", "Hunter", "Parker", "Page", "Swift", "Frost", "Lane", "Wolf", "Ruth", "Joy", "Dean",
    "Tanaka", "Mbeki", "Svensson", "Ivanov", "Haddad", "Chowdhury", "Yamamoto",
]  # fmt: skip
# {N}: as it is written; {l}: in small letters; {U}: in capitals.
FORMS = (
    "The letter was signed by J. {N} on Monday.", "J.R.R. {N} wrote it.", "J {N} came late.", "John F. {N} spoke.",
    "{N}, J.", "{N}, John", "{U} John", "{N} John", "John {U} came", "Anna {N} came.",
    "Name: {N}", "Name: {l}", "From: {l}", "Patient - {N}", "Signed: {N}", '{{"name": "{N}"}}', "user={l}",
    "?user={l}&id=3", "{N} called.", "{N}: I agree", "* {N}: I agree", "| {N} | 42 |", "{N}\t42\tyes", "smith,{l},42",
    "We saw {N} there.", "contact {N} today", "{N}'s car is red.", '"{N}" was on the list.', "It was ({N}) again.",
    "[{N}] said no.", "<b>{N}</b> said", "Dr. {N} was late.", "Mr {N} and Mrs {N} left.", "Judge {N} ruled.",
    "Nurse {N} said so.", "Dear {N},", "Dear {l},", "Hi {N}, how are you", "Regards,\n{N}", "John\n{N} came.",
    "{N}, Jones and Brown met.", "We met Jones, {N} and Brown.", "{N} and Smith agreed.", "SIGNED BY MR {U} TODAY",
    "signed by {U} on Monday", "Mary-{N} Jones", "Anna {N}-Jones", "John van der {N}", "John bin {N}",
    "/home/{l}/notes.txt", "C:\\Users\\{l}\\Desktop", "~/{l}/mail", "{l}@mailhost", "john.{l}@mailhost",
    "{l}%40smithmail.org", "{l} [at] mail dot org", "{l} (at) mail", "{l} at mail dot com", "@john.{l}", "@{l}",
    "https://site.org/u/{l}?q=1", "{l}_backup", "john.{l}", "j.{l}", "john_{l}",
)  # fmt: skip
HELD_OUT_FORMS = (
    "Yours sincerely, {N}", "cc: {l}", "Prof. {N} et al. disagree.", "the case of {N} v. Jones", "/var/mail/{l}",
    "The {N} family moved.", "{N} (aged 42) fell.", "assigned_to={l}", "Mr. and Mrs. {N} came.", "It was {N} who rang.",
)  # fmt: skip


def write(form: str, name: str) -> str:
    """Write a form with a name in it."""
    return form.format(N=name, l=name.lower(), U=name.upper())


def cut(text: str) -> list[str]:
    """Cut out the words and groups of figures of a text, in small letters."""
    return re.findall(r"[^\W_]+", text.casefold())


def find_kinds(texts: Sequence[str], lists: PublicLists) -> list[list[tuple[str, int]]]:
    """Find the tokens of each text, with their classes."""
    tokeniser = Tokeniser()
    normal = tokeniser.normalise(pa.array(texts, pa.string()))
    scanned = tokeniser.cut_words(normal, None, Recogniser(CHARACTER_TYPES).find(normal))
    words, kinds = scanned.words.to_pylist(), find_names(scanned, lists).tolist()
    bounds = scanned.offsets.tolist()
    return [list(zip(words[start:stop], kinds[start:stop], strict=True)) for start, stop in pairwise(bounds)]


def draw(texts: Sequence[str], keys: int, *, smallest: bool, written: str | None) -> tuple[dict[str, Any], Outputs]:
    """Draw by the mechanism, and return what the job writes under each key."""
    with tempfile.TemporaryDirectory() as store:
        mechanism = draft_mechanism(store, smallest=smallest)
        if written:
            mechanism = {**mechanism, "written": written}
        config = draft_job(store, mechanism, TEXT)
        bundle = build_bundle(config)
        outputs = []
        for number in range(keys):
            name = f"names-{number}"
            sanitiser = RecordSanitiser(config.record_settings(name), bundle, KEY.for_release(name))
            columns = {"id": [str(row) for row in range(len(texts))], TEXT_COLUMN: list(texts)}
            batch = pa.RecordBatch.from_pydict({**columns, REASON_COLUMN: pa.nulls(len(texts), pa.string())})
            rows = pa.Table.from_batches(sanitiser.sanitise(batch)).select(["id", "text"]).to_pylist()
            found = {row["id"]: row["text"] or "" for row in rows}
            outputs.append([found[row] for row in columns["id"]])
    return mechanism, outputs


def measure_forms(forms: Sequence[str], names: Sequence[str], texts: Sequence[str], outputs: Outputs) -> dict[str, Any]:
    """Measure the shares of names that come out whole, and of those that are found, by forms and in all."""
    tokens = find_kinds(texts, PublicLists.load("en"))
    folded = [name.casefold() for name in names]
    shares: dict[str, dict[str, float]] = {}
    for number, form in enumerate(forms):
        rows = [*zip(range(number * len(names), (number + 1) * len(names)), folded, strict=True)]
        whole = [name in cut(written[row]) for written in outputs for row, name in rows]
        missed = [any(kind < 0 and name in cut(token) for token, kind in tokens[row]) for row, name in rows]
        shares[form] = {"whole": sum(whole) / len(whole), "found": 1 - sum(missed) / len(missed)}
    means = {side: sum(row[side] for row in shares.values()) / len(forms) for side in ("whole", "found")}
    return {**means, "forms": shares}


def measure_texts(texts: Sequence[str]) -> dict[str, Any]:
    """Measure the share of words that are taken for names, and of ordinary words that are."""
    tokens = [pair for text in find_kinds(texts, PublicLists.load("en")) for pair in text]
    named = {TYPES.index(kind) for kind in NAME_TYPES}
    words = [(word, kind) for word, kind in tokens if kind < 0 or kind in named]
    uses = Counter(word.casefold() for word, _ in words)
    small = Counter(word for word, _ in words if word.islower())
    ordinary = {word for word, count in uses.items() if small[word] > count / 2}
    taken = [word.casefold() for word, kind in words if kind >= 0]
    common = sum(word.casefold() in ordinary for word, _ in words)
    return {
        "words": len(words),
        "taken": len(taken) / len(words),
        "ordinary_words": common,
        "ordinary_taken": sum(word in ordinary for word in taken) / common,
    }


def read_texts(*, smallest: bool) -> dict[str, list[str]]:
    """Read news, and reviews where the data directory is."""
    news = Path(gensim.__file__).parent / "test" / "test_data" / "lee_background.cor"
    texts = {"news": news.read_text("utf-8").splitlines()}
    path = DATA / "aclImdb.jsonl.xz"
    if path.exists():
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            texts["reviews"] = [json.loads(line)["text"] for line, _ in zip(lines, range(REVIEWS), strict=False)]
    return {name: some[:20] if smallest else some for name, some in texts.items()}


def measure(*, smallest: bool, written: str | None = None) -> dict[str, Any]:
    """Measure all figures of the version that is imported."""
    size, keys = (QUICK_NAMES, QUICK_KEYS) if smallest else (None, KEYS)
    sets = {"tuned": (FORMS, NAMES[:size]), "held_out": (HELD_OUT_FORMS, HELD_OUT_NAMES[:size])}
    texts = {name: [write(form, one) for form in forms for one in names] for name, (forms, names) in sets.items()}
    mechanism, outputs = draw([*texts["tuned"], *texts["held_out"]], keys, smallest=smallest, written=written)
    border = len(texts["tuned"])
    parts = {"tuned": [some[:border] for some in outputs], "held_out": [some[border:] for some in outputs]}
    return {
        "mechanism": mechanism,
        "keys": keys,
        **{name: measure_forms(*sets[name], texts[name], parts[name]) for name in sets},
        "texts": {name: measure_texts(some) for name, some in read_texts(smallest=smallest).items()},
    }


def measure_apart(tree: Path, *, smallest: bool) -> dict[str, Any]:
    """Measure all figures of a checkout."""
    folders = (tree / "lib", tree / "research" / "benchmarks")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    # -P: `common` comes from the checkout.
    command = [sys.executable, "-P", __file__, "--figures", *(["--smallest"] if smallest else [])]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)


def write_table(content: dict[str, Any]) -> str:
    """Write the table of docs/types.md."""
    versions = {name: content[name] for name in ("before", "written_any", "after") if name in content}
    lines = [f"| | {' | '.join(versions)} |", f"| --- |{' ---: |' * len(versions)}"]

    def add(label: str, values: Sequence[float], digits: int) -> None:
        lines.append(f"| {label} | {' | '.join(f'{100 * value:.{digits}f}%' for value in values)} |")

    for key, label in (("tuned", ""), ("held_out", ", held out")):
        add(f"names that come out whole{label}", [one[key]["whole"] for one in versions.values()], 1)
        add(f"names that are found{label}", [one[key]["found"] for one in versions.values()], 1)
    for name in content["after"]["texts"]:
        rows = [one["texts"][name] for one in versions.values()]
        add(f"words of {name} that are taken for names", [row["taken"] for row in rows], 2)
        add(f"ordinary words of {name} that are", [row["ordinary_taken"] for row in rows], 2)
    return "\n".join(lines) + "\n"


def main(given: Sequence[str] | None = None) -> None:
    """Measure, write, show."""
    parser = make_parser(__doc__)
    parser.add_argument("--before", type=Path, help="a checkout of an earlier version")
    parser.add_argument("--figures", action="store_true", help="print the figures of one version as JSON, keep nothing")
    arguments = parser.parse_args(given)
    if arguments.figures:
        json.dump(measure(smallest=arguments.smallest), sys.stdout)
        return
    path, content = RESULTS / "name_forms.json", {"machine": machine()}
    if arguments.before:
        content["before"] = measure_apart(arguments.before, smallest=arguments.smallest)
    elif path.exists():
        content["before"] = json.loads(path.read_text("utf-8"))["before"]
    content["written_any"] = measure(smallest=arguments.smallest, written="any")
    content["after"] = measure(smallest=arguments.smallest)
    save_results("name_forms", content, smallest=arguments.smallest)
    print(write_table(content), end="")


if __name__ == "__main__":
    main()
