"""Materials of a job: the key, the bundle and the n-gram model, found before Spark starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from wordveil.artifacts.bundle import Bundle
from wordveil.assembly.bundles import find_ngrams, ready_bundle
from wordveil.config.load import Config
from wordveil.crypto.keys import MasterKey, load_key
from wordveil.neighbours.blocks import BuildContext
from wordveil.records.sanitiser import RecordSettings
from wordveil.spark.platform.progress import TaskProgress
from wordveil.spark.sanitise.distribution import distribute, distribute_model
from wordveil.spark.sanitise.worker import Sanitise
from wordveil.text.slots import NgramModel


@dataclass(frozen=True)
class Materials:
    """Materials that a job draws with, and the way of bundle and model to the executors: ``auto``, ``path`` or
    ``archive``.
    """

    key: MasterKey
    bundle: Bundle
    ngrams: NgramModel | None
    how: str

    def distribute(self, spark: SparkSession, settings: RecordSettings, epoch: int | None = None) -> Sanitise:
        """Make the workers' job under ``settings``, with the keys of a noise ``epoch`` (by default the current one)."""
        location = distribute(spark, self.bundle, self.how)
        model = distribute_model(spark, self.ngrams, self.how)
        keys = self.key.for_release(settings.release, epoch)
        return Sanitise(settings, keys, location, self.bundle.identity, model)


def load_materials(config: Config, progress: Callable[[str], None], tasks: TaskProgress) -> Materials:
    """Read the key and the n-gram model, and find or build the bundle.

    Raises :class:`KeyMaterialError`, :class:`BundleError`, :class:`NgramError` or :class:`EmbeddingError`.
    """
    key = load_key(config.key.file, config.key.env)
    bundle = ready_bundle(config, BuildContext(progress, tasks))
    return Materials(key, bundle, find_ngrams(config), config.spark.bundle)
