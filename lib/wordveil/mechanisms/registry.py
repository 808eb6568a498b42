"""The registry of mechanisms: those of this package, then those of installed packages.

A mechanism of this package is a file here, a line below, and a YAML in ``conf/mechanisms``. Another package names its
own in the entry-point group :data:`GROUP` of its metadata::

    [project.entry-points."wordveil.mechanisms"]
    my-mechanism = "my_package.module:MyMechanism"

The configuration, the contract tests and `wordveil plan --compare` read this registry alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from wordveil.errors import PlatformError
from wordveil.mechanisms.additive.hyperbolic import HyperbolicFDD, HyperbolicLaplace
from wordveil.mechanisms.additive.laplace import Laplace
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.er_ae.mechanism import ErAe
from wordveil.mechanisms.staircase.mechanism import Staircase
from wordveil.mechanisms.tables.exponential import Exponential
from wordveil.mechanisms.tree.mechanism import Tree

GROUP = "wordveil.mechanisms"
"""The entry-point group in which an installed package names its mechanisms."""
SHIPPED = (
    Tree,
    Staircase,
    Exponential,
    Laplace,
    HyperbolicLaplace,
    HyperbolicFDD,
    ErAe,
)
"""This package's own mechanisms, the recommended default first."""


class Registry(Mapping[str, type[Mechanism[Any]]]):
    """Mechanisms by name, in the order in which people see them: the recommended default first.

    This package's mechanisms need no look at others: a worker that draws with one never reads the metadata of installed
    packages. Another package's module is imported when its mechanism is asked for.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, type[Mechanism[Any]]] = {mechanism.name: mechanism for mechanism in SHIPPED}

    @cached_property
    def _installed(self) -> dict[str, EntryPoint]:
        """The entry points of installed packages. Raises :class:`PlatformError` where a name is taken twice."""
        owners = {mechanism.name: "wordveil" for mechanism in SHIPPED}
        points = {}
        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
            package = _package_of(point)
            if point.name in owners:
                raise PlatformError(
                    f"the package {package} names a mechanism {point.name}, and so does {owners[point.name]}. Remove "
                    f"one of them, or rename the entry point of {GROUP}."
                )
            owners[point.name], points[point.name] = package, point
        return points

    def __getitem__(self, name: str) -> type[Mechanism[Any]]:
        if name not in self._loaded:
            self._loaded[name] = _load(self._installed[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from (mechanism.name for mechanism in SHIPPED)
        yield from self._installed

    def __len__(self) -> int:
        return len(SHIPPED) + len(self._installed)

    def package_of(self, name: str) -> str:
        """The installed package that has a mechanism, with its version; empty for one of wordveil's own."""
        return "" if self[name] in SHIPPED else _package_of(self._installed[name])


def _load(point: EntryPoint) -> type[Mechanism[Any]]:
    """Import a mechanism. Raises :class:`PlatformError` where that fails, or what it finds is no mechanism of that
    name.
    """
    subject = f"the package {_package_of(point)}: {point.value}, its mechanism {point.name},"
    try:
        mechanism = point.load()
    except Exception as error:  # a module may raise whatever it likes
        raise PlatformError(f"{subject} cannot be imported: {type(error).__name__}: {error}.") from error
    if not (isinstance(mechanism, type) and issubclass(mechanism, Mechanism)):
        raise PlatformError(f"{subject} is no subclass of wordveil.mechanisms.base.Mechanism.")
    if getattr(mechanism, "name", None) != point.name:
        raise PlatformError(f"{subject} calls itself {getattr(mechanism, 'name', None)}. Give both one name.")
    return mechanism


def _package_of(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.module


MECHANISMS = Registry()
"""All mechanisms by name."""
