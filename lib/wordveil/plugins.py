"""Registries of entries of this package and of installed packages.

Another package registers its own in the entry-point group of a registry::

    [project.entry-points."wordveil.mechanisms"]
    my-mechanism = "my_package.module:MyMechanism"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from wordveil.errors import PlatformError

Entry = TypeVar("Entry")


class Registry(Mapping[str, Entry]):
    """Entries by name, in the order to show: ``shipped``, then those of installed packages.

    A worker that uses a shipped entry never reads the metadata of installed packages. Another package's module is
    imported when its entry is requested.

    ``group``: name of entry points, such as ``wordveil.mechanisms``. ``find_fault``: describes the fault of a loaded
    entry, given its name; empty if it has none.
    """

    def __init__(self, group: str, shipped: Mapping[str, Entry], find_fault: Callable[[str, Any], str]) -> None:
        self.group, self.shipped, self._find_fault = group, shipped, find_fault
        self._kind = group.removeprefix("wordveil.").removesuffix("s")
        self._loaded = dict(shipped)

    @cached_property
    def _installed(self) -> dict[str, EntryPoint]:
        """Entry points of installed packages. Raises :class:`PlatformError` if a name is taken twice."""
        owners = dict.fromkeys(self.shipped, "wordveil")
        points = {}
        for point in sorted(entry_points(group=self.group), key=lambda point: point.name):
            package = _package_of(point)
            if point.name in owners:
                article = "an" if self._kind[0] in "aeiou" else "a"
                raise PlatformError(
                    f"the package {package} names {article} {self._kind} {point.name}, and so does "
                    f"{owners[point.name]}. Remove one of them, or rename the entry point of {self.group}."
                )
            owners[point.name], points[point.name] = package, point
        return points

    def __getitem__(self, name: str) -> Entry:
        if name not in self._loaded:
            self._loaded[name] = self._load(self._installed[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.shipped
        yield from self._installed

    def __len__(self) -> int:
        return len(self.shipped) + len(self._installed)

    def package_of(self, name: str) -> str:
        """Return the installed package that has an entry, with its version; empty for one of wordveil's own."""
        return "" if name in self.shipped else _package_of(self._installed[name])

    def _load(self, point: EntryPoint) -> Any:
        """Import an entry. Raises :class:`PlatformError` if that fails, or its object has a fault."""
        subject = f"the package {_package_of(point)}: {point.value}, its {self._kind} {point.name},"
        try:
            entry = point.load()
            fault = self._find_fault(point.name, entry)
        except Exception as error:  # a module may raise whatever it likes
            raise PlatformError(f"{subject} cannot be imported: {type(error).__name__}: {error}.") from error
        if fault:
            raise PlatformError(f"{subject} {fault}")
        return entry


def _package_of(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.module
