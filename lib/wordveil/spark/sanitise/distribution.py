"""How a bundle, and the n-gram model of a text policy, reach the executors.

A broadcast variable carries the bundle's identity (manifest and checksums; a few kilobytes). Executors that see the
driver's path read the payload there. Otherwise Spark sends it once to each executor as an uncompressed archive and
unpacks it beside the executor's other files. Either way workers map the files into memory: one copy for each executor,
however many Python workers it runs. A bundle of a private corpus is sent encrypted
(:mod:`wordveil.spark.sanitise.sealed`). An n-gram model is distributed in the same way; its identity is its digest,
which the policy names.
"""

from __future__ import annotations

import atexit
import secrets
import shutil
import tarfile
import tempfile
from functools import cache
from pathlib import Path

from pyspark import Broadcast, SparkContext

from wordveil.artifacts.bundle import Bundle
from wordveil.crypto.keys import Secret
from wordveil.spark.sanitise.sealed import SEALED, seal
from wordveil.spark.sanitise.worker import BundlePlace
from wordveil.text.slots import NgramModel


def distribute(context: SparkContext, bundle: Bundle, how: str) -> tuple[BundlePlace, Broadcast[bytes]]:
    """Make ``bundle`` readable by every executor. ``how``: ``auto``, ``path`` or ``archive`` (``spark.bundle``)."""
    # Bundles of two recipes may share a fingerprint, and a worker asks for this one's manifest.
    name = f"wordveil-{bundle.fingerprint}-{bundle.manifest['seal'][:16]}"
    key = _draw_key(name) if bundle.mechanism.private_weights else None
    return _distribute_directory(context, bundle.path, name, how, key), context.broadcast(bundle.identity)


def distribute_model(context: SparkContext, model: NgramModel | None, how: str) -> BundlePlace | None:
    """Make an n-gram model readable by every executor; None if there is none. ``how``: as for the bundle."""
    return None if model is None else _distribute_directory(context, model.path, f"wordveil-ngrams-{model.digest}", how)


@cache
def _draw_key(name: str) -> Secret:  # noqa: ARG001 - each archive of this process has its own
    return Secret(secrets.token_bytes(32))


def _distribute_directory(
    context: SparkContext, directory: Path, name: str, how: str, key: Secret | None = None
) -> BundlePlace:
    if how == "path" or (how == "auto" and str(context.master).startswith("local[")):
        return BundlePlace(str(directory.resolve()), archive=False)
    name = f"{name}.tar"
    if not any(name in archive for archive in context.listArchives):  # a session sends it once
        home = Path(tempfile.mkdtemp(prefix="wordveil-archive-"))
        atexit.register(shutil.rmtree, home, ignore_errors=True)  # executors may fetch it until the session ends
        files = sorted(directory.iterdir())
        if key is not None:
            files = [home / SEALED]
            seal(directory, files[0], key)
        with tarfile.open(home / name, "w") as archive:
            for file in files:
                archive.add(file, arcname=file.name)
        context.addArchive(str(home / name))
    return BundlePlace(name, archive=True, key=key)
