"""The process from which Spark's Python workers fork. It imports what they need, so that each has it at once.

A worker that imports it by itself takes four seconds of the processor.
"""

from __future__ import annotations

import runpy

import pyarrow as pa

import wordveil.spark.sanitise.worker  # noqa: F401

if __name__ == "__main__":
    pa.array([0])  # the first array has pyarrow import pandas
    runpy.run_module("pyspark.daemon", run_name="__main__")
