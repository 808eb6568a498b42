"""Settings of mechanisms: a frozen dataclass for each, in its own module.

The configuration makes a section from the fields: types, defaults, and bounds (metadata of :mod:`annotated_types`).
Numbers are finite. Workers load these classes, so nothing here imports pydantic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from annotated_types import Ge, Le

from wordveil.embeddings.embedding import Embedding
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs

MetricName = Literal["euclidean", "manhattan", "angular", "hyperbolic"]
"""Name of a space of :data:`wordveil.geometry.spaces.SPACES`."""
TableEpsilon = Annotated[float, Ge(1e-9)]
"""Epsilon of mechanisms that draw from a table."""
PureEpsilon = Annotated[float, Ge(1e-3), Le(1000)]
"""Largest loss between any two words."""
Neighbours = Annotated[int, Ge(2), Le(2**20)]
"""Number of nearest words that have individual weights."""


@dataclass(frozen=True)
class ComparisonTerms:
    """Terms that mechanisms share when `wordveil plan --compare` shows them side by side.

    Attributes
    ----------
    metric : MetricName
        the space of the words.
    neighbours : int or None
        the number of nearest words that have individual weights, or None without such a setting.
    gamma : float or None
        the distance from which words count as unrelated, or None without such a setting.
    """

    metric: MetricName = "euclidean"
    neighbours: int | None = None
    gamma: float | None = None

    def label(self, name: str) -> str:
        """Name a mechanism with these terms, for people: ``exponential, gamma 3, neighbours 256``."""
        terms = [f"{key} {value:g}" for key in ("gamma", "neighbours") if (value := getattr(self, key))]
        return ", ".join([name, *terms])


@dataclass(frozen=True, kw_only=True)
class MechanismSettings:
    """Base of the settings of a mechanism.

    Raises
    ------
    ValueError
        if settings contradict each other. The configuration and the build check bounds of single values.
    """

    input_files: ClassVar[tuple[str, ...]] = ()
    """The settings that name public files, which become :class:`wordveil.mechanisms.inputs.PublicInputs`.

    Any of ``similarity``, ``pairs``, ``classes``, ``ngrams``, ``model``, ``merge``, ``written``, ``passages``: strings,
    or None for a default (:mod:`wordveil.assembly.inputs`).
    """

    def __post_init__(self) -> None:
        if faults := [*self.find_faults(vars(self))]:
            raise ValueError("; ".join(f"mechanism.{name}: {problem}" for name, problem in faults))

    @classmethod
    def find_faults(cls, written: Mapping[str, Any]) -> Iterator[tuple[str, str]]:  # noqa: ARG003 - most have none
        """List settings that contradict each other, as (setting, fault and remedy).

        ``written``: settings by name as configured, lists as tuples. Any may be missing, or have a fault.
        """
        return iter(())

    @classmethod
    def has_epsilon(cls) -> bool:
        """Return whether there is an epsilon to choose."""
        return "epsilon" in {field.name for field in fields(cls)}

    @property
    def nominal_epsilon(self) -> float:
        """Epsilon as configured, per unit of the metric's distance and token; 0 without such a setting."""
        return float(getattr(self, "epsilon", 0.0))

    @property
    def record_limit(self) -> int | None:
        """Largest number of records ever drawn from weights of the private corpus, or None for public data."""
        limit: int | None = getattr(self, "max_records", None)
        return limit

    @property
    def files(self) -> dict[str, str]:
        """Public files that these settings name, by setting."""
        return {name: value for name in self.input_files if (value := getattr(self, name)) is not None}

    def at_epsilon(self, epsilon: float) -> Self:
        """Copy the settings with another epsilon. They must have one (:meth:`has_epsilon`)."""
        changes: dict[str, Any] = {"epsilon": epsilon}
        return replace(self, **changes)

    def recipe(self) -> dict[str, Any]:
        """List the settings that enter a bundle's recipe, as plain values that survive JSON unchanged."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    @property
    def terms(self) -> ComparisonTerms:
        """Terms that others must share with these settings to be compared with them."""
        return ComparisonTerms()


def _plain(value: Any) -> Any:
    """Turn tuples into lists, as JSON does."""
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


@dataclass(frozen=True)
class Example:
    """Settings under which the contracts of every mechanism are checked.

    Attributes
    ----------
    small : MechanismSettings
        for a few hundred words with standard normal vectors in 12 dimensions: outputs must vary, and some words stay.
        For a mechanism of hyperbolic space the vectors are scaled into the ball.
    large : MechanismSettings
        likewise for the demo embedding, 20,000 words in 100 dimensions.
    extra : str
        the package that must be installed, or empty.
    inputs : callable
        makes the public data for a build from that embedding.
    """

    small: MechanismSettings
    large: MechanismSettings
    extra: str = ""
    inputs: Callable[[Embedding], PublicInputs] = lambda _: NO_INPUTS
