"""The list of mechanisms.

A mechanism is a file here, a line below, and a YAML in ``conf/mechanisms``. The configuration, the contract tests and
`wordveil plan --compare` are made from this list.
"""

from __future__ import annotations

from typing import Any

from wordveil.mechanisms.additive.hyperbolic import HyperbolicFDD, HyperbolicLaplace
from wordveil.mechanisms.additive.laplace import Laplace
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.er_ae.mechanism import ErAe
from wordveil.mechanisms.random import Random
from wordveil.mechanisms.staircase.mechanism import Staircase
from wordveil.mechanisms.tables.exponential import Exponential
from wordveil.mechanisms.tables.syntf import SynTF
from wordveil.mechanisms.tree.mechanism import Tree

MECHANISMS: dict[str, type[Mechanism[Any]]] = {
    mechanism.name: mechanism
    for mechanism in (
        Tree,
        Staircase,
        Exponential,
        Laplace,
        HyperbolicLaplace,
        HyperbolicFDD,
        ErAe,
        SynTF,
        Random,
    )
}
"""By name, in the order in which people see them: the recommended default first."""
