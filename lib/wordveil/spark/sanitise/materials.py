"""What a job draws with: the key, the bundle and the n-gram model, found before Spark starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark import SparkContext

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
    """What a job draws with, and how bundle and model reach the executors: ``auto``, ``path`` or ``archive``."""

    key: MasterKey
    bundle: Bundle
    ngrams: NgramModel | None
    how: str

    @contextmanager
    def distribute(
        self, context: SparkContext, settings: RecordSettings, epoch: int | None = None
    ) -> Iterator[Sanitise]:
        """What workers do under ``settings``, with the keys of a noise ``epoch`` (by default the current one).

        Executors can reach bundle and model only inside the ``with`` block.
        """
        location, identity = distribute(context, self.bundle, self.how)
        try:
            model = distribute_model(context, self.ngrams, self.how)
            yield Sanitise(settings, self.key.for_release(settings.release, epoch), location, identity, model)
        finally:
            identity.unpersist()


def load_materials(config: Config, progress: Callable[[str], None], tasks: TaskProgress) -> Materials:
    """Read the key and the n-gram model, and find or build the bundle.

    Raises :class:`KeyMaterialError`, :class:`BundleError`, :class:`NgramError` or :class:`EmbeddingError`.
    """
    key = load_key(config.key.file, config.key.env)
    bundle = ready_bundle(config, BuildContext(progress, tasks))
    return Materials(key, bundle, find_ngrams(config), config.spark.bundle)
