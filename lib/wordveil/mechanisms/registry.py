"""Registry of mechanisms: those of this package, then those of installed packages.

A mechanism of this package is a file here, a line below, and a YAML in ``conf/mechanisms``. Another package names its
own in the entry-point group :data:`GROUP` of its metadata::

    [project.entry-points."wordveil.mechanisms"]
    my-mechanism = "my_package.module:MyMechanism"

The configuration, the contract tests and `wordveil plan --compare` read this registry alone.
"""

from __future__ import annotations

from typing import Any

from wordveil.mechanisms.additive.hyperbolic import HyperbolicFDD, HyperbolicLaplace
from wordveil.mechanisms.additive.laplace import Laplace
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.er_ae.mechanism import ErAe
from wordveil.mechanisms.passages.mechanism import Passages
from wordveil.mechanisms.staircase.mechanism import Staircase
from wordveil.mechanisms.tables.exponential import Exponential
from wordveil.mechanisms.tree.mechanism import Tree
from wordveil.plugins import Registry

GROUP = "wordveil.mechanisms"
"""Entry-point group in which an installed package names its mechanisms."""
SHIPPED = (Tree, Staircase, Exponential, Laplace, HyperbolicLaplace, HyperbolicFDD, ErAe, Passages)
"""This package's own mechanisms, the recommended default first."""


def find_fault(name: str, mechanism: Any) -> str:
    """Explain why an installed package's object cannot be the mechanism of this name; return "" if it can."""
    if not (isinstance(mechanism, type) and issubclass(mechanism, Mechanism)):
        return "is no subclass of wordveil.mechanisms.base.Mechanism."
    found = getattr(mechanism, "name", None)
    return "" if found == name else f"calls itself {found}. Give both one name."


MECHANISMS: Registry[type[Mechanism[Any]]] = Registry(
    GROUP, {mechanism.name: mechanism for mechanism in SHIPPED}, find_fault
)
"""All mechanisms by name."""
