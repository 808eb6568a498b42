"""Distribution of a bundle, and of the n-gram model of a text policy, to the executors.

The bundle's identity (manifest and checksums; a few kilobytes) travels with the function. Executors that see the
driver's path read the payload there. Otherwise Spark sends it once to each executor as an uncompressed archive and
unpacks it beside the executor's other files. Either way workers map the files into memory: one copy for each executor,
however many Python workers it runs. A bundle of a private corpus is sent encrypted
(:mod:`wordveil.artifacts.sealed`). An n-gram model is distributed in the same way, under the digest that the
policy names.
"""

from __future__ import annotations

import atexit
import hashlib
import secrets
import shutil
import tarfile
import tempfile
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from wordveil.artifacts.bundle import Bundle
from wordveil.artifacts.sealed import SEALED, seal
from wordveil.assembly.jobs import Materials
from wordveil.crypto.keys import Secret
from wordveil.records.sanitiser import RecordSettings
from wordveil.spark.platform.connect import is_beside, is_connect, list_archives, send_archive
from wordveil.spark.platform.session import is_local
from wordveil.spark.sanitise.worker import BundlePlace, Sanitise
from wordveil.text.slots import NgramModel


def distribute_job(
    spark: SparkSession, materials: Materials, settings: RecordSettings, epoch: int | None = None
) -> Sanitise:
    """Make the workers' job under ``settings``, with the keys of a noise ``epoch``, by default the current one."""
    location = distribute(spark, materials.bundle, materials.how)
    model = distribute_model(spark, materials.ngrams, materials.how)
    keys = materials.key.for_release(settings.release, epoch)
    return Sanitise(settings, keys, location, materials.bundle.identity, model)


def distribute(spark: SparkSession, bundle: Bundle, how: str) -> BundlePlace:
    """Make ``bundle`` readable by every executor. ``how``: ``auto``, ``path`` or ``archive`` (``spark.bundle``)."""
    # Bundles of two recipes may share a fingerprint, and a worker needs this one's manifest.
    name = f"wordveil-{bundle.fingerprint}-{bundle.manifest['seal'][:16]}"
    key = _draw_key(name) if bundle.mechanism.private_weights else None
    return _distribute_directory(spark, bundle.path, name, how, key)


def distribute_model(spark: SparkSession, model: NgramModel | None, how: str) -> BundlePlace | None:
    """Make an n-gram model readable by every executor, if there is one. ``how``: as for the bundle."""
    return None if model is None else _distribute_directory(spark, model.path, f"wordveil-ngrams-{model.digest}", how)


@cache
def _draw_key(name: str) -> Secret:  # noqa: ARG001 - each archive of this process has its own
    return Secret(secrets.token_bytes(32))


def _distribute_directory(
    spark: SparkSession, directory: Path, name: str, how: str, key: Secret | None = None
) -> BundlePlace:
    may_be_here = not is_connect(spark) or is_beside(spark)
    is_here = may_be_here and is_local(spark.conf.get("spark.master", "") or "")
    if how == "path" or (how == "auto" and is_here):
        return BundlePlace(str(directory.resolve()), archive=False)
    if key is not None:
        name += f"-{hashlib.sha256(key.reveal()).hexdigest()[:16]}"
    name = f"{name}.tar"
    sent = list_archives(spark) if is_connect(spark) else spark.sparkContext.listArchives
    if not any(name in archive for archive in sent):  # a session sends it once
        home = Path(tempfile.mkdtemp(prefix="wordveil-archive-"))
        atexit.register(shutil.rmtree, home, ignore_errors=True)  # executors may fetch it until the session ends
        files = sorted(directory.iterdir())
        if key is not None:
            files = [home / SEALED]
            seal(directory, files[0], key)
        with tarfile.open(home / name, "w") as archive:
            for file in files:
                # Without owner and time one bundle makes one archive: Spark Connect refuses another of its name.
                member = tarfile.TarInfo(file.name)
                member.size = file.stat().st_size
                with file.open("rb") as stream:
                    archive.addfile(member, stream)
        if is_connect(spark):
            send_archive(spark, home / name)
        else:
            spark.sparkContext.addArchive(str(home / name))
    return BundlePlace(name, archive=True, key=key)
