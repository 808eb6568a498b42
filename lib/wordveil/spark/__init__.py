"""Code that imports Spark, all of it in this room. It is internal: code imports from :mod:`wordveil`."""

from importlib.util import find_spec

from wordveil.errors import PlatformError

if find_spec("pyspark") is None:
    raise PlatformError("PySpark is not installed. Install it with: pip install 'wordveil[spark]'")
