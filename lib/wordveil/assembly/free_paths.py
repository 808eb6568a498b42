"""Paths where no table may be created: inside an existing release or Delta table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from wordveil.config.schema import LedgerSection, OutputSection
from wordveil.errors import ConfigError, Fault
from wordveil.release.layout import DELTA_LOG, DRAWS, JOURNAL


def _exists(path: str) -> bool:
    """Return whether the path exists on this machine's disk."""
    local = Path(path.removeprefix("file:"))
    return local.is_absolute() and local.exists()


def _list_ancestors(path: str) -> Iterator[str]:
    """Yield ``path`` and the directories above it, without a slash at the end."""
    local = Path(path.removeprefix("file:"))
    yield from (str(directory).rstrip("/") for directory in (local, *local.parents))


def require_free_paths(
    output: OutputSection,
    ledger: LedgerSection | None,
    exists: Callable[[str], bool] = _exists,
    list_ancestors: Callable[[str], Iterable[str]] = _list_ancestors,
) -> None:
    """Raise :class:`ConfigError` if a table would be created inside a release or a Delta table.

    Their clean-up or removal would delete it too. Tables of the configuration that exist already stay where they are.

    ``exists``, ``list_ancestors``: those of a file system; by default only paths on this machine's disk are checked.
    """
    faults = [
        Fault(setting, path, f"is {owner}, or inside it.", "Choose another path.")
        for setting, path in _list_new_tables(output, ledger, exists)
        if (owner := _find_owner(list_ancestors(path), exists))
    ]
    if faults:
        raise ConfigError("configuration", faults)


def _list_new_tables(
    output: OutputSection, ledger: LedgerSection | None, exists: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
    """Yield the settings whose tables a run would create, with their paths."""
    if output.format != "delta":
        yield "output.path", output.path
        return
    tables = (
        ("output.path", output.path, f"{DRAWS}/{DELTA_LOG}"),
        ("output.public", output.public, DELTA_LOG),
        ("ledger.path", ledger and ledger.path, DELTA_LOG),
    )
    for setting, path, sign in tables:
        if path and not exists(f"{path.rstrip('/')}/{sign}"):
            yield setting, path


def _find_owner(directories: Iterable[str], exists: Callable[[str], bool]) -> str:
    """Find the release or the Delta table that one of the directories is; empty if none is."""
    for directory in directories:
        shown = directory.removeprefix("file:")
        if all(exists(f"{directory}/{name}/{DELTA_LOG}") for name in (JOURNAL, DRAWS)):
            return f"the directory of a release, {shown}"
        if exists(f"{directory}/{DELTA_LOG}"):
            return f"the Delta table {shown}"
    return ""
