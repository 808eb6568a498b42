"""Selection of a sample's records: each has the same chance, few files are read, and these are spread over the table.

The records of a table form a line, file after file in the order of their names. A systematic sample of this line with a
random start has windows at equal distances. Each window fixes the number of records taken from the files that it
covers, and chance selects them. A file of c records out of T, of which the windows of N records cover x, gives x of its
c, and x is N c / T on average over the start: so each record has the chance N / T, however files are cut (Särndal,
Swensson and Wretman, *Model Assisted Survey Sampling*, 1992, sections 3.4 and 4.3).

Records of a file are sampled together. If files differ, figures vary more than those of N records drawn singly, at
worst as much as if there were one record for each window.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wordveil.crypto.keys import Secret
from wordveil.crypto.streams import CONTEXT_BYTES, KeyedStream

MAX_WINDOWS = 32
"""The most windows of a sample."""
MAX_SEED = 2**63 - 1


def new_seed() -> int:
    """Make a seed that is easy to type."""
    return secrets.randbelow(10**9)


def spread_records(counts: Mapping[str, int], rows: int, seed: int, max_windows: int = MAX_WINDOWS) -> dict[str, int]:
    """Compute the number of records to take from each file.

    ``counts``: the number of records of each file. ``rows``: how many records to take of all; all of them where the
    table has no more. ``seed``: decides where windows begin; 0 to :data:`MAX_SEED`. ``max_windows``: the most windows.

    Returns
    -------
    dict of str to int
        files of which at least one record is taken, in the order of their names; the numbers add up to ``rows``, and
        none is greater than the file's count.
    """
    names = sorted(counts)
    ends = np.cumsum([0, *(counts[name] for name in names)])
    total = int(ends[-1])
    if total <= rows:
        taken = np.diff(ends)
    elif total < 2 * rows:
        # There is hardly room between windows, and nearly all is read: records are drawn singly.
        chosen = np.sort(np.argsort(draw_words(seed, b"records", total), kind="stable")[:rows])
        taken = np.diff(np.searchsorted(chosen, ends))
    else:
        windows = min(max_windows, rows)
        start = int(draw_words(seed, b"start", 1)[0]) * total >> 64
        # As whole numbers: a window is at most as long as the distance to the next, so none overlap.
        first = [start + number * total // windows for number in range(windows)]
        length = [(number + 1) * rows // windows - number * rows // windows for number in range(windows)]
        taken = np.zeros(len(names), np.int64)
        for low, size in zip(first, length, strict=True):
            for shift in (0, total):  # the line is a circle
                covered = np.clip(ends, low - shift, low - shift + size)
                taken += np.diff(covered)
    return {name: number for name, number in zip(names, taken.tolist(), strict=True) if number}


def draw_rate(number: int, count: int) -> float:
    """Compute a chance for each of ``count`` records, drawn singly.

    With it fewer than ``number`` are drawn less than once in a million times.
    """
    return min(1.0, (number + 5 * math.sqrt(number) + 12) / count)


def choose_records(files: Sequence[str], wanted: Mapping[str, int], seed: int) -> list[int]:
    """Choose the positions, ascending, of the records to keep of those that were read.

    Of each file they are the number that is ``wanted``, or all if fewer were read.

    ``files``: the file of each record. ``seed``: selects records.
    """
    left = dict(wanted)
    kept = []
    for position in np.argsort(draw_words(seed, b"kept", len(files)), kind="stable").tolist():
        if left[files[position]] > 0:
            left[files[position]] -= 1
            kept.append(position)
    return sorted(kept)


def draw_words(seed: int, purpose: bytes, count: int) -> NDArray[np.uint64]:
    """Draw uniform 64-bit words, uint64 ``(count,)``, by seed and purpose alone. ``seed``: 0 to :data:`MAX_SEED`;
    ``purpose``: at most 16 bytes.
    """
    key = hashlib.blake2b(seed.to_bytes(8, "little"), person=purpose, digest_size=32).digest()
    nowhere = np.zeros((count, CONTEXT_BYTES), np.uint8)
    words: NDArray[np.uint64] = KeyedStream(Secret(key), 1).words(nowhere, np.arange(count))[0]
    return words
