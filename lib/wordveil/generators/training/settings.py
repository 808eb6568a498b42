"""Settings of a generator's training, and the packages of the extra ``er-ae``, without which there is none.

The configuration makes sections of these classes: types with their bounds, and defaults.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Lt

from wordveil.errors import PlatformError

Precision = Literal["float32", "bfloat16"]
Count = Annotated[int, Ge(1), Lt(2**31)]
Share = Annotated[float, Ge(0), Lt(1)]
Weight = Annotated[float, Ge(0), Le(1000)]


@dataclass(frozen=True)
class RewardSettings:
    """Losses of ER-AE (Bo, Ding, Fung, Iqbal 2021, equations 7 and 8) and their weights.

    Attributes
    ----------
    reconstruction
        the weight of the reconstruction loss, the paper's first lambda.
    reward
        the weight of the embedding reward, the paper's second lambda. 0 trains AE-DP, the paper's baseline.
    likeliest
        how many of the likeliest symbols get a reward at each position.
    explored
        how many words, drawn uniformly from the vocabulary, get a reward at each position.
    floor, ceiling
        rewards, and probabilities before their logarithm, are clipped to these bounds.
    baseline
        what is subtracted from a reward: nothing, as in the paper, or the mean over the candidates of its position.
    """

    reconstruction: Weight = 1.0
    reward: Weight = 0.5
    likeliest: Annotated[int, Ge(1), Le(1000)] = 5
    explored: Annotated[int, Ge(1), Le(1000)] = 5
    floor: Annotated[float, Gt(0), Lt(1)] = 1e-5
    ceiling: Annotated[float, Gt(0), Le(1)] = 0.85
    baseline: Literal["none", "mean"] = "none"


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the optimisation: Adam (Kingma, Ba 2015) on batches of sequences.

    Attributes
    ----------
    seed
        decides all that is random.
    learning_rate
        of Adam.
    batch
        sequences of a step.
    clip_norm
        gradients with a larger norm are scaled down to it.
    word_dropout
        the share of the words that the generator reads as unknown words in training, so that it relies on the latent
        vector.
    corruption
        the share of the words that the generator reads as other words, drawn uniformly, in training. A mechanism
        replaces words in this way once the generator is used. The paper has no such setting.
    precision
        of matrix products: ``bfloat16`` is faster on GPUs that have it. Sums and weights stay float32.
    chunk
        positions whose probabilities are held in memory at once. It changes sums in their last bits alone.
    """

    seed: Annotated[int, Ge(0), Lt(2**32)] = 0
    learning_rate: Annotated[float, Gt(0), Le(1)] = 0.001
    batch: Annotated[int, Ge(1), Le(65_536)] = 128
    clip_norm: Annotated[float, Gt(0), Le(1e6)] = 5.0
    word_dropout: Share = 0.0
    corruption: Share = 0.0
    precision: Precision = "float32"
    chunk: Annotated[int, Ge(1), Le(2**20)] = 1024
    reward: RewardSettings = field(default_factory=RewardSettings)


@dataclass(frozen=True)
class Schedule:
    """Schedule of measuring, saving and ending a training. Nothing here changes a step.

    Attributes
    ----------
    epochs
        passes over the training sequences, at most.
    reconstruction_epochs
        of these, the first ones have no reward, unless early stopping ends them sooner.
    steps
        steps at most; None: no limit.
    minutes
        of training at most, those before an interruption included; None: no limit.
    validate_every
        steps between two measurements of the validation loss.
    patience
        how many measurements in a row may fail to lower the validation loss.
    checkpoint_every
        steps between two checkpoints.
    report_every
        steps between two rows of the metrics.
    """

    epochs: Count = 10
    reconstruction_epochs: Annotated[int, Ge(0), Lt(2**31)] = 5
    steps: Count | None = None
    minutes: Annotated[float, Gt(0), Lt(1e6)] | None = None
    validate_every: Count = 500
    patience: Count = 3
    checkpoint_every: Count = 500
    report_every: Count = 20


INSTALL = "Install them with: pip install 'wordveil[er-ae]'"
_NAMES = {"jax": "JAX", "flax": "Flax", "optax": "Optax"}


def find_missing() -> list[str]:
    """List the packages of the extra that are not installed."""
    return [name for module, name in _NAMES.items() if find_spec(module) is None]


def require_packages() -> None:
    """Raise :class:`PlatformError` if a package of the extra is not installed."""
    if missing := find_missing():
        raise PlatformError(f"{', '.join(missing)}: not installed, and the training of generators needs it. {INSTALL}")
