"""A plug-in of pytest that registers a toy mechanism before anything imports the configuration.

``WORDVEIL_TOY`` names the class of :mod:`plugin.toy_mechanism`.
"""

from __future__ import annotations

import os
import sys

from plugin import toy_mechanism
from wordveil.mechanisms.registry import MECHANISMS

if "wordveil.config.mechanisms" in sys.modules:
    raise RuntimeError("the configuration was imported before the toy was registered")
_TOY = getattr(toy_mechanism, os.environ["WORDVEIL_TOY"])
MECHANISMS[_TOY.name] = _TOY
