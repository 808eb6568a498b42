"""Errors that a user can cause.

Each derives from :class:`WordveilError`. Its message names the field or file, the value, and the fix; it never holds
text of a record, and anything that looks like a credential is hidden in it. ``exit_code`` is that of the command line.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wordveil.credentials import hide_credentials, hide_in_value

_HIDES = {"where": hide_in_value, "value": hide_in_value, "problem": hide_credentials, "hint": hide_credentials}
_SHOWN = 80


class WordveilError(Exception):
    """Base of every error with a message for the user. Exit code 1, unless a class names another."""

    exit_code = 1
    faults: Sequence[Fault] = ()

    def __init_subclass__(cls, exit_code: int | None = None) -> None:
        cls.exit_code = exit_code or cls.exit_code

    def __init__(self, message: str = "") -> None:
        super().__init__(hide_credentials(message))


@dataclass(frozen=True)
class Fault:
    """One fault of a configuration.

    Attributes
    ----------
    where
        the key, dotted (``mechanism.epsilon``).
    value
        the value as text; empty if the key is missing or its value must not be shown.
    problem
        the fault and the allowed values.
    hint
        the remedy; empty if ``problem`` has it.
    """

    where: str
    value: str
    problem: str
    hint: str = ""

    def __post_init__(self) -> None:
        """Hide credentials, whatever made the fault."""
        for name, hide in _HIDES.items():
            object.__setattr__(self, name, hide(getattr(self, name)))

    def __str__(self) -> str:
        value = f" = {self.value}" if self.value else ""
        tail = f" {self.hint}" if self.hint else ""
        return f"{self.where}{value}: {self.problem}{tail}"


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Suggest the nearest of the ``allowed`` names in a sentence; empty if nothing is near."""
    return "".join(f" Did you mean {match}?" for match in difflib.get_close_matches(name, list(allowed), n=1))


def shown_value(value: object) -> str:
    """Write a value as a fault shows it: without credentials, and cut if it is long."""
    text = str(value).lower() if isinstance(value, bool) else "" if value is None else hide_in_value(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


class ConfigError(WordveilError, exit_code=2):
    """A configuration or command line that cannot be used. Lists all faults at once. Exit code 2."""

    def __init__(self, source: str, faults: list[Fault]) -> None:
        self.source = hide_credentials(source)
        self.faults = faults
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        super().__init__("\n".join([f"{source}: {count}", *(f"  - {fault}" for fault in faults)]))


class GateError(WordveilError, exit_code=3):
    """A gate did not pass, so nothing was published. Names the rules that failed. Exit code 3."""


class RefutedError(WordveilError, exit_code=3):
    """An audit refuted a guarantee, or could not have refuted any. Exit code 3."""


class EmbeddingError(WordveilError, exit_code=4):
    """An embedding that cannot be read or must not be used. Exit code 4."""


class PublicFileError(WordveilError, exit_code=4):
    """A file of public words, beside the embedding, that cannot be read or does not fit the embedding. Exit code 4."""


class BundleError(WordveilError, exit_code=4):
    """A bundle that is missing, damaged, cannot be built, or does not match the configuration. Exit code 4."""


class NgramError(WordveilError, exit_code=4):
    """An n-gram model that is missing, damaged, cannot be built, or does not fit the text policy. Exit code 4."""


class GeneratorError(WordveilError, exit_code=4):
    """Weights of a generator that are missing, damaged or do not fit, or training that cannot continue. Exit code 4."""


def usage_error(option: str, value: str, problem: str, hint: str = "") -> ConfigError:
    """Make the error of a command line with one fault: an option, its value, and the problem."""
    return ConfigError("command line", [Fault(option, value, problem, hint)])


class InputError(WordveilError, exit_code=4):
    """An input table that cannot be read or lacks what the configuration names. Exit code 4."""


class EmptyInputError(InputError):
    """An input, or a slice of one, without records, where the caller asked to do nothing then."""


class KeyMaterialError(WordveilError, exit_code=5):
    """A key that is missing, unsafe or malformed. Its message never holds key bytes. Exit code 5."""


class OutputExistsError(WordveilError, exit_code=6):
    """The output exists already, and overwriting was not requested. Exit code 6."""


class PlatformError(WordveilError, exit_code=7):
    """Java, Spark or an optional package is missing or does not fit. Exit code 7."""


class SparkJobError(WordveilError, exit_code=8):
    """A Spark job failed. The output is unchanged. Exit code 8."""


class ReleaseError(WordveilError, exit_code=9):
    """A release, its ledger or a budget that refuses a command, or a manifest that fails verification. Exit code 9."""


class OutdatedGateError(ReleaseError):
    """The draws have changed since they were gated: a later run needs its own gate and publication. Exit code 9."""


class WorkerError(WordveilError):
    """A Spark task failed inside the sanitiser. The message names kind and place alone: the original may quote a
    record.
    """
