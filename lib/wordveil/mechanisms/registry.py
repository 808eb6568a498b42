"""The list of mechanisms. Adding one is a file, a line here, and a YAML in ``conf/mechanisms``."""

from __future__ import annotations

from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.laplace import Laplace

MECHANISMS: dict[str, type[Mechanism]] = {mechanism.name: mechanism for mechanism in (Laplace,)}
