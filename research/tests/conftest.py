"""The fixtures of the product's tests, such as `spark`; and where the laboratory is not installed, its entry points."""

import atexit
import os
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

from support.plugins import RESEARCH, install_plugin

pytest_plugins = ["conftest"]

try:
    distribution("wordveil-research")
except PackageNotFoundError:
    _home = TemporaryDirectory()
    atexit.register(_home.cleanup)
    _site = str(install_plugin(Path(_home.name), RESEARCH))
    sys.path.append(_site)
    # Spark's workers and commands are processes of their own.
    os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), _site])
