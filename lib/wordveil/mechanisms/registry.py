"""The list of mechanisms.

A mechanism is a file here, a line below, and a YAML in ``conf/mechanisms``. The configuration, the contract tests and
`wordveil plan --compare` are made from this list.
"""

from __future__ import annotations

from typing import Any

from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.er_ae import ErAe
from wordveil.mechanisms.exponential import Exponential
from wordveil.mechanisms.hyperbolic import HyperbolicFDD, HyperbolicLaplace
from wordveil.mechanisms.laplace import Laplace
from wordveil.mechanisms.random import Random
from wordveil.mechanisms.staircase import Staircase
from wordveil.mechanisms.syntf import SynTF
from wordveil.mechanisms.tree import Tree

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
