"""How a bundle reaches the executors.

A broadcast variable of bytes carries its identity (manifest and checksums; a few kilobytes). The payload is read in place
where the executors see the driver's path, or sent once to each executor as an uncompressed archive, which Spark unpacks
beside the executor's other files. Either way workers map the files into memory: one copy an executor, however many
Python workers it runs.
"""

from __future__ import annotations

import atexit
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from wordveil.bundle import Bundle
from wordveil.spark.worker import BundlePlace

if TYPE_CHECKING:
    from pyspark import Broadcast, SparkContext


def distribute(context: SparkContext, bundle: Bundle, how: str) -> tuple[BundlePlace, Broadcast[bytes]]:
    """Make ``bundle`` readable by every executor. ``how``: ``auto``, ``path`` or ``archive`` (``spark.bundle``)."""
    shared = how == "path" or (how == "auto" and str(context.master).startswith("local["))
    place = BundlePlace(str(bundle.path.resolve()), archive=False) if shared else _send(context, bundle)
    return place, context.broadcast(bundle.identity)


def _send(context: SparkContext, bundle: Bundle) -> BundlePlace:
    """Add the bundle to the session as an archive; a session that has it already sends it no second time."""
    name = f"wordveil-{bundle.fingerprint}.tar"
    if not any(name in archive for archive in context.listArchives):
        home = Path(tempfile.mkdtemp(prefix="wordveil-archive-"))
        atexit.register(shutil.rmtree, home, ignore_errors=True)  # executors may ask for it until the session ends
        draft = home / name
        with tarfile.open(draft, "w") as archive:
            for file in sorted(bundle.path.iterdir()):
                archive.add(file, arcname=file.name)
        context.addArchive(str(draft))
    return BundlePlace(name, archive=True)
