"""The process from which Spark's Python workers fork. It imports what they need, so that each has it at once.

A worker that imports it by itself takes four seconds of the processor.
"""

from __future__ import annotations

import gc
import runpy
import zipimport

import pyarrow as pa
import pyspark.worker  # noqa: F401

import wordveil.spark.sanitise.worker  # noqa: F401

if __name__ == "__main__":
    pa.array([0])  # the first array has pyarrow import pandas
    # After each task PySpark collects garbage, and would look at all modules again: 70 ms.
    gc.freeze()
    # Before each task it has Python look for new modules. PySpark comes as a zip file, which does not change: to read
    # its list again for each of its packages takes 80 ms, longer than most tasks of few records.
    zipimport.zipimporter.invalidate_caches = lambda *_: None  # type: ignore[method-assign]
    runpy.run_module("pyspark.daemon", run_name="__main__")
