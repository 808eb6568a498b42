"""How often a name, an address or a date comes out whole, with its class told apart and without.

Each stands in a made sentence of 2,000 records, sanitised as `wordveil init` drafts a readable job: `tree`, epsilon 8,
500 clusters of `glove`. Whole means: the same words anywhere in the output, in any case.

    python research/benchmarks/canaries.py

Writes research/results/canaries.json and prints a table.
"""

from __future__ import annotations

import re
import tempfile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from common import draft_job, draft_mechanism, machine, make_parser, save_results
from wordveil.artifacts.bundle import Bundle
from wordveil.assembly.bundles import build_bundle
from wordveil.config.load import Config
from wordveil.crypto.keys import make_throwaway_keys
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN

RECORDS = 2_000
CANARIES = (
    *("Alice Johnson", "John Smith", "John Jones", "Alice", "London", "john.smith@corp.com", "+1 555-123-4567"),
    *("23 August 2004", "Aug. 23, 2004", "2004-08-23", "14:30", "3,500", "$1,250.00", "192.168.10.7"),
    *("4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00", "@jsmith_81", "www.corp.com/people/jsmith"),
)


def configure(store: str, mechanism: dict[str, Any], *, told_apart: bool) -> Config:
    """Return the drafted job, with classes told apart or not."""
    apart = {} if told_apart else {"types": "none", "names": "words"}
    return draft_job(store, mechanism, {"profile": "readable", **apart})


def measure(config: Config, bundle: Bundle, canary: str, records: int) -> float:
    """Measure the share of records that still hold ``canary``."""
    sanitiser = RecordSanitiser(RecordSettings("canaries", "", config.policy, ()), bundle, make_throwaway_keys())
    batch = pa.RecordBatch.from_pydict(
        {
            "id": [f"r{number}" for number in range(records)],
            TEXT_COLUMN: [f"The meeting with {canary} was moved to the morning."] * records,
            REASON_COLUMN: pa.nulls(records, pa.string()),
        }
    )
    texts = pa.Table.from_batches(sanitiser.sanitise(batch)).column("text")
    ends = ("\\b" if canary[place].isalnum() else "" for place in (0, -1))
    whole = re.escape(canary).join(ends)
    return float(pc.mean(pc.match_substring_regex(texts, whole, ignore_case=True)).as_py())


def main() -> None:
    """Measure, write, show."""
    smallest = make_parser(__doc__).parse_args().smallest
    records = 10 if smallest else RECORDS
    with tempfile.TemporaryDirectory() as store:
        mechanism = draft_mechanism(store, smallest=smallest)
        plain, typed = (configure(store, mechanism, told_apart=told_apart) for told_apart in (False, True))
        bundles = [build_bundle(config) for config in (plain, typed)]
        rows = [
            {
                "text": canary,
                "words": measure(plain, bundles[0], canary, records),
                "types": measure(typed, bundles[1], canary, records),
            }
            for canary in CANARIES
        ]
    save_results("canaries", {"machine": machine(), "records": records, "rows": rows}, smallest=smallest)
    table = Table(title=f"Comes out whole, share of {records:,} records")
    for name in ("text", "words", "types"):
        table.add_column(name, justify="left" if name == "text" else "right")
    for row in rows:
        table.add_row(row["text"], f"{row['words']:.2%}", f"{row['types']:.3%}")
    Console().print(table)


if __name__ == "__main__":
    main()
