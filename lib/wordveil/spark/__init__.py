"""The only room that imports Spark. It is internal: code imports from :mod:`wordveil`."""

from importlib.util import find_spec

from wordveil.errors import PlatformError

if find_spec("pyspark") is None:
    raise PlatformError("PySpark is not installed. Install it with: pip install 'wordveil[spark]'")
