"""The list of mechanisms. Adding one is a file, a line here, and a YAML in ``conf/mechanisms``."""

from __future__ import annotations

from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.exponential import Exponential
from wordveil.mechanisms.hyperbolic import HyperbolicFDD, HyperbolicLaplace
from wordveil.mechanisms.laplace import Laplace
from wordveil.mechanisms.random import Random
from wordveil.mechanisms.syntf import SynTF

MECHANISMS: dict[str, type[Mechanism]] = {
    mechanism.name: mechanism for mechanism in (Laplace, Exponential, HyperbolicLaplace, HyperbolicFDD, SynTF, Random)
}
