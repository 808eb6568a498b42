"""Process from which Spark's Python workers fork, with their imports done: each alone would take four seconds."""

from __future__ import annotations

import gc
import runpy

import pyarrow as pa
import pyspark.worker  # noqa: F401

from wordveil.spark.sanitise.worker import keep_archives

if __name__ == "__main__":
    pa.array([0])  # the first array has pyarrow import pandas
    keep_archives()
    # After each task PySpark collects garbage, and would scan all modules again: 70 ms.
    gc.freeze()
    runpy.run_module("pyspark.daemon", run_name="__main__")
