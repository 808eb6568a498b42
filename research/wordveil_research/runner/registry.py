"""The list of experiments. Adding one is a file, and a line here. A file is imported when its experiment is run."""

from __future__ import annotations

from importlib import import_module

from wordveil.errors import ConfigError, Fault
from wordveil_research.runner.base import Experiment

EXPERIMENTS = {
    "f19-table1": "wordveil_research.papers.f19",
    "fdd-table3": "wordveil_research.papers.fdd",
    "fdd-table4": "wordveil_research.papers.fdd_deniability",
    "fdd-table6": "wordveil_research.papers.fdd",
    "eraee-table1": "wordveil_research.papers.eraee",
    "eraee-tables": "wordveil_research.papers.eraee_tables",
    "field": "wordveil_research.field.experiment",
    "passages": "wordveil_research.papers.passages",
    "sentence-encoder": "wordveil_research.papers.sentence_encoder",
}
"""The module of each experiment, by the name that the command line has. Its class has the same name."""


def find_experiment(name: str) -> Experiment:
    """Find the experiment of a name. Raises :class:`ConfigError` for a name that none has."""
    if name not in EXPERIMENTS:
        problem = f"no experiment has this name. There are: {', '.join(EXPERIMENTS)}."
        raise ConfigError("command line", [Fault("NAME", name, problem)])
    for value in vars(import_module(EXPERIMENTS[name])).values():
        if isinstance(value, type) and issubclass(value, Experiment) and getattr(value, "name", "") == name:
            experiment: Experiment = value()
            return experiment
    raise LookupError(f"{EXPERIMENTS[name]} has no experiment of the name {name}.")
