"""The list of experiments. Adding one is a file, and a line here. A file is imported when its experiment is run."""

from __future__ import annotations

from importlib import import_module

from wordveil.errors import ConfigError, Fault
from wordveil_research.runner.base import Experiment

_HERE = "wordveil.evaluation.experiments"
EXPERIMENTS = {
    "f19-table1": f"{_HERE}.f19",
    "fdd-table3": f"{_HERE}.fdd",
    "fdd-table4": f"{_HERE}.fdd_deniability",
    "fdd-table6": f"{_HERE}.fdd",
    "eraee-table1": f"{_HERE}.eraee",
    "eraee-tables": f"{_HERE}.eraee_tables",
    "field": f"{_HERE}.field",
}
"""The module of each experiment, by the name that the command line has. Its class has the same name."""


def find_experiment(name: str) -> Experiment:
    """The experiment of a name. Raises :class:`ConfigError` for a name that none has."""
    if name not in EXPERIMENTS:
        problem = f"no experiment has this name. There are: {', '.join(EXPERIMENTS)}."
        raise ConfigError("command line", [Fault("--experiment", name, problem)])
    for one in vars(import_module(EXPERIMENTS[name])).values():
        if isinstance(one, type) and issubclass(one, Experiment) and getattr(one, "name", "") == name:
            made: Experiment = one()
            return made
    raise LookupError(f"{EXPERIMENTS[name]} has no experiment of the name {name}.")
