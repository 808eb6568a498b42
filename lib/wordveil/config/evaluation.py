"""Section ``evaluation``: measurements of ``wordveil evaluate`` on an output, and its contradictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StringConstraints

from wordveil.config.schema import GateSection, Name, Section
from wordveil.errors import Fault
from wordveil.input.columns import Columns, fold_name
from wordveil.records.paths import read_path
from wordveil.scores.methods import AUTHOR_ATTACKS, ENCODER, TEXT_TASKS, WEIGHTED_BAG

if TYPE_CHECKING:
    AttackerName = str
    TaskName = str
else:
    AttackerName, TaskName = Literal[tuple(AUTHOR_ATTACKS)], Literal[tuple(TEXT_TASKS)]
MAX_RECORDS = 100_000
"""A sample is held in the driver's memory."""


class EvaluationSection(Section):
    """Measurements of ``wordveil evaluate``, and their numbers of records. Nothing here changes what is released."""

    author: Name | None = None
    """The column that says who wrote a record; by default that of ``input.author``. Attackers guess it."""
    label: Name | None = None
    """The column with a topic or another class of each record, which ``tasks`` guess."""
    attackers: list[AttackerName] = Field(default=["svm-characters", "svm-words"])
    """The attackers that guess authors."""
    tasks: list[TaskName] = Field(default=["linear-words"])
    """The classifiers that guess labels, trained on sanitised texts."""
    encoder: Annotated[str, StringConstraints(pattern=ENCODER)] = WEIGHTED_BAG
    """The encoder of texts into vectors, for similarity and linkage: ``weighted-bag``, ``mean-vector``, or
    ``sentence-transformers:MODEL`` where that package is installed. It may download MODEL. Cosines of different
    encoders must not be compared.
    """
    topics: Annotated[int, Field(ge=0, le=100)] = 5
    """The number of topics that are found in the originals and in the sanitised texts, to compare them. 0 compares
    terms alone, which is quicker.
    """
    records: Annotated[int, Field(ge=8, le=MAX_RECORDS)] = 5_000
    """The most records that are measured, chosen at random; and the most that are read besides of some authors, to
    attack them.
    """
    authors: Annotated[int, Field(ge=2, le=10_000)] = 200
    """The most authors that an attacker chooses between, chosen at random until their records are ``records``. Among
    more authors an attacker names fewer right, and more times as many as by chance.
    """
    min_texts: Annotated[int, Field(ge=2)] = 4
    """Authors with fewer records, and labels with fewer among those measured, are left out."""
    known_share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The share of each author's records whose originals the attacker knows. Tasks are trained on the same share of
    each label's records, and both are measured on the others.
    """
    examples: Annotated[int, Field(ge=0, le=100)] = 0
    """The number of records that the report shows, original beside sanitised text. They are private: such a report is
    as secret as the corpus.
    """
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Decides which records are measured, which of them the attacker knows, and what classifiers leave to chance."""

    def find_faults(self) -> Iterable[Fault]:
        """List tasks without labels, repeated names, and a sample too small for two authors."""
        if "tasks" in self.model_fields_set and self.tasks and self.label is None:
            problem = "needs labels to guess. Name their column in evaluation.label, or remove it."
            yield Fault("evaluation.tasks", ", ".join(self.tasks), problem)
        for setting, names in (("attackers", self.attackers), ("tasks", self.tasks)):
            if repeated := sorted(name for name, count in Counter(names).items() if count > 1):
                yield Fault(f"evaluation.{setting}", ", ".join(repeated), "is listed more than once. Keep one of them.")
        if 2 * self.min_texts > self.records:
            problem = f"two authors of {self.min_texts} records do not fit into evaluation.records: {self.records}."
            yield Fault(
                "evaluation.min_texts", str(self.min_texts), f"{problem} Lower it, or raise evaluation.records."
            )


def find_evaluation_faults(section: EvaluationSection, source: Columns, gate: GateSection | None) -> Iterable[Fault]:
    """List contradictions of the section with the input's columns or the gate, which is None if it has faults."""
    roots = {fold_name(root) for text in source.texts for root in (text, read_path(text)[0])}
    for name in ("author", "label"):
        if (value := getattr(section, name)) is not None and fold_name(value) in roots:
            problem = "is the text column. Name a column that says something about the text, or remove it."
            yield Fault(f"evaluation.{name}", value, problem)
    has_authors = bool(section.author or source.author)
    if "attackers" in section.model_fields_set and section.attackers and not has_authors:
        problem = "needs authors to guess. Name their column in evaluation.author or input.author, or remove it."
        yield Fault("evaluation.attackers", ", ".join(section.attackers), problem)
    if gate is None or (bound := gate.rules.attack_to_chance) is None:
        return
    if not has_authors:
        problem = "measures who wrote a text. Name the authors' column in evaluation.author or input.author."
        yield Fault("gate.attack_to_chance", f"{bound:g}", problem)
    if not section.attackers:
        problem = f"needs attackers, and evaluation.attackers is empty. Allowed: {', '.join(AUTHOR_ATTACKS)}."
        yield Fault("gate.attack_to_chance", f"{bound:g}", problem)
