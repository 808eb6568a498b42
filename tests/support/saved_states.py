"""States of a release that tests begin with: made once, kept as directories, and put back."""

from __future__ import annotations

import copy
import shutil

from support.releases import Lake


class States:
    """States of a lake's directory, by name.

    A state comes back at the place where it was made: a release records where its input and its ledger are.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._kept = lake.root.with_name(f"{lake.root.name}-states")

    def keep(self, name: str) -> None:
        """Keep the directory as it is now."""
        shutil.copytree(self._lake.root, self._kept / name)

    def restore(self, name: str) -> Lake:
        """Put a kept state back, whatever has happened since. Returns the lake as it was made."""
        shutil.rmtree(self._lake.root)
        shutil.copytree(self._kept / name, self._lake.root)
        self._lake.forget()
        return copy.copy(self._lake)
