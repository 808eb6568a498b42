"""Writes the table of emoji, lib/wordveil/text/types/finders/emoji_table.py, from the package ``emoji``, which follows
Unicode.

    python scripts/emoji_table.py

Run it when a new version of the package knows new emoji. The table has the characters that emoji are made of, not their
sequences: a sequence is found by the grammar of Unicode's Technical Standard 51, so that a new one of known characters
is found too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import emoji

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "lib" / "wordveil" / "text" / "types" / "finders" / "emoji_table.py"
# The zero width joiner, the sign of emoji's form, the keycap and what is a digit or a tag.
NOT_BASES = {0x200D, 0xFE0F, 0x20E3, *range(0x80), *range(0xE0000, 0xE0080)}


def ranges(points: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Return rows of successive numbers: first and last."""
    first = last = None
    for point in sorted(points):
        if last is None or point > last + 1:
            if first is not None and last is not None:
                yield first, last
            first = point
        last = point
    if first is not None and last is not None:
        yield first, last


def write(name: str, points: Iterable[int], about: str) -> str:
    """Write one constant of the module."""
    rows = [f"(0x{first:X}, 0x{last:X})," for first, last in ranges(points)]
    lines = ["    " + " ".join(rows[i : i + 5]) for i in range(0, len(rows), 5)]
    return "\n".join([f"{name}: tuple[tuple[int, int], ...] = (", *lines, f')  # fmt: skip\n"""{about}"""'])


def main() -> None:
    """Write the module."""
    full = emoji.STATUS["fully_qualified"]
    bases = {ord(character) for sequence in emoji.EMOJI_DATA for character in sequence} - NOT_BASES
    shown = {ord(sequence) for sequence, about in emoji.EMOJI_DATA.items() if len(sequence) == 1
             and about["status"] in (full, emoji.STATUS["component"])} & bases  # fmt: skip
    parts = [
        f'"""Characters of emoji, rows of them. From emoji {emoji.__version__} by scripts/emoji_table.py."""',
        "from __future__ import annotations",
        write("BASES", bases, "What emoji are made of."),
        write("PRESENTED", shown, "Those that are an emoji without U+FE0F after them."),
    ]
    TABLE.write_text("\n\n".join(parts) + "\n", "utf-8")


if __name__ == "__main__":
    main()
