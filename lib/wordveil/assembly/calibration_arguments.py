"""Arguments of a calibration on the command line: epsilons, targets, and words that are public."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wordveil.config.load import Config, load_config
from wordveil.config.yaml_file import read_yaml
from wordveil.errors import ConfigError, Fault
from wordveil.measures.calibration.meaning import THRESHOLD, WORDS, WordPlan
from wordveil.measures.calibration.targets import MATCHES, check_target
from wordveil.measures.calibration.values import RUNS
from wordveil.mechanisms.registry import MECHANISMS

KEY = "mechanism.epsilon"
# Fills in a missing epsilon while one is searched for. The search does not depend on it.
_ANY = 1.0


@dataclass(frozen=True)
class Target:
    """Figure that an epsilon should give. ``name``: one of :data:`wordveil.measures.calibration.targets.TARGETS`."""

    name: str
    value: float

    def __str__(self) -> str:
        return f"{self.name}={self.value:g}"


@dataclass(frozen=True)
class Request:
    """Request for a calibration: the options of the command line by name, as they were typed.

    ``words``, ``runs`` and ``threshold`` are those of :class:`wordveil.measures.calibration.meaning.WordPlan`.
    """

    config: Path
    overrides: Sequence[str] = ()
    epsilon: str | None = None
    target: Sequence[str] = ()
    match: Path | None = None
    by: str = MATCHES[0]
    words: int = WORDS
    runs: int = RUNS
    threshold: float = THRESHOLD

    def check(self) -> None:
        """Raise :class:`ConfigError` with every fault of the command line."""
        if faults := [*self._find_faults()]:
            raise ConfigError("command line", faults)

    def _find_faults(self) -> Iterator[Fault]:
        for part in [] if self.epsilon is None else self.epsilon.split(","):
            value = _read_number(part)
            if value is None or not 0 < value < math.inf:
                yield Fault("--epsilon", part.strip()[:80], "is no number above 0. Write e.g. --epsilon 1,2,5,10,20.")
        for text in self.target:
            yield from _find_target_faults(text)
        if self.epsilon is None and not self.target and self.match is None:
            problem = "is required, or --target or --match: there is no default. Write e.g. --epsilon 1,2,5,10,20."
            yield Fault("--epsilon", "", problem)
        if self.by not in MATCHES:
            yield Fault("--by", self.by[:80], f"should be one of {', '.join(MATCHES)}.")
        if not 0 <= self.threshold < 1:
            yield Fault("--threshold", f"{self.threshold:g}", "should be a probability from 0 to less than 1.")

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Epsilons, rising and each once. The request must be checked."""
        return () if self.epsilon is None else tuple(sorted({float(part) for part in self.epsilon.split(",")}))

    @property
    def targets(self) -> tuple[Target, ...]:
        """Targets. The request must be checked."""
        pairs = (text.partition("=") for text in self.target)
        return tuple(Target(name.strip(), float(value)) for name, _, value in pairs)

    @property
    def plan(self) -> WordPlan:
        """Plan for measuring words. The request must be checked."""
        return WordPlan(self.words, self.runs, self.threshold)

    def load(self) -> Config:
        """Read the configuration at the first epsilon of the request. It needs no ``mechanism.epsilon`` of its own.

        Raises :class:`ConfigError` with every fault of the file, for an epsilon that the mechanism cannot have, and for
        a mechanism without one.
        """
        section = read_yaml(self.config).get("mechanism")
        written = section if isinstance(section, dict) else {}
        kind = MECHANISMS.get(str(written.get("name")))
        if kind is not None and not kind.settings_type.has_epsilon():
            problem = "has no epsilon to choose. Name another mechanism."
            raise ConfigError(str(self.config), [Fault("mechanism.name", kind.name, problem)])
        has_own = written.get("epsilon") is not None
        tried = self.epsilons or (() if has_own else (_ANY,))
        configs = [load_config(self.config, [*self.overrides, f"{KEY}={value!r}"]) for value in tried]
        return configs[0] if configs else load_config(self.config, self.overrides)


def _find_target_faults(text: str) -> Iterator[Fault]:
    name, _, number = (part.strip() for part in text.partition("="))
    try:
        check_target(name, math.nan if (value := _read_number(number)) is None else value)
    except ValueError as error:
        yield Fault("--target", text[:80], f"should be NAME=VALUE, such as share_kept=0.3. {error}")


def _read_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
