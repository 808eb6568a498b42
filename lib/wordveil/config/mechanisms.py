"""Section ``mechanism`` of a configuration: one pydantic model for each mechanism, made from its settings class.

A model has the settings that all mechanisms share (:class:`MechanismSection`) and the fields of the mechanism's own,
with their types, bounds and defaults. So a mechanism that is registered before this module is imported has a section.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import ErrorDetails

from wordveil.config.paths import (
    ClassesPath,
    EmbeddingPath,
    FrequenciesPath,
    Location,
    MergePath,
    ModelPath,
    PassagesPath,
    WrittenPath,
)
from wordveil.config.schema import Section, fields_of, make_section
from wordveil.embeddings.training.hypernyms import PoincareSettings
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import MechanismSettings

HYPERNYMS = "hypernyms"
FREQUENCIES = "frequencies"
"""The setting of all mechanisms that names a public file."""
_FILE_TYPES = {
    "similarity": EmbeddingPath,
    "classes": ClassesPath,
    "ngrams": ModelPath,
    "pairs": ModelPath,
    "merge": MergePath,
    "written": WrittenPath,
    "passages": PassagesPath,
}
"""The types of settings that name public files; :data:`Location` for others."""


if TYPE_CHECKING:
    EmbeddingTrainingSection = Section
else:
    _DOC = "Training of a Poincare embedding (:class:`wordveil.embeddings.training.hypernyms.PoincareSettings`)."
    EmbeddingTrainingSection = make_section("EmbeddingTrainingSection", _DOC, PoincareSettings)


class MechanismSection(Section):
    """The mechanism that replaces words: settings of all mechanisms. Numbers are finite."""

    model_config = ConfigDict(allow_inf_nan=False)

    embedding: EmbeddingPath
    """The word vectors: ``glove``, ``demo``, ``demo-poincare``, or the path of public ones."""
    embedding_format: Literal["auto", "wordveil", "word2vec", "word2vec-binary", "glove", "fasttext", "hypernyms"] = (
        "auto"
    )
    """The format of the embedding's file. ``hypernyms``: pairs of words and hypernyms, from which the embedding is
    trained.
    """
    training: EmbeddingTrainingSection = EmbeddingTrainingSection()
    """Training of the embedding, with ``embedding_format: hypernyms`` alone."""
    frequencies: FrequenciesPath | None = None
    """A table of words and how often a public corpus has them, or ``wordfreq:de`` for a list of the package wordfreq:
    what attackers are assumed to know, and what some mechanisms are built from. By default frequencies follow the
    words' ranks in the embedding.
    """
    texts: PassagesPath | None = None
    """Public texts of the field of the private ones: a file with a text a line or a column of texts. ``plan`` and
    ``calibrate`` measure how well the vectors fit them, and ``plan`` shows their words as examples. Changes no draw.
    """
    public: Literal[True]
    """States that nothing named in this section was made from the private corpus: the embedding with its vocabulary and
    index, frequencies, texts, similarities, pairs, classes, n-grams and passages; and a generator, unless ``corpus``
    says otherwise.
    """
    name: str
    """The mechanism."""
    _written: dict[str, str] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _keep_written(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        section = handler(values)
        if isinstance(values, Mapping):
            written = {name: value for name, value in values.items() if isinstance(value, str)}
            section._written = written  # noqa: SLF001 - its own
        return section

    @property
    def mechanism(self) -> type[Mechanism[Any]]:
        """Class of the mechanism."""
        return MECHANISMS[self.name]

    @property
    def settings(self) -> MechanismSettings:
        """Settings with which the mechanism is built."""
        kind = self.mechanism.settings_type
        return kind(**{field.name: getattr(self, field.name) for field in fields(kind)})

    @property
    def training_settings(self) -> PoincareSettings:
        """Settings of the embedding's training."""
        return PoincareSettings(**self.training.model_dump())

    @property
    def public_files(self) -> dict[str, str]:
        """Locations of the files that :mod:`wordveil.assembly.inputs` reads besides the embedding, by setting."""
        return {**({FREQUENCIES: self.frequencies} if self.frequencies else {}), **self.settings.files}

    @property
    def names(self) -> dict[str, str]:
        """Embedding and public files by setting, as they were written. Recipes have these names, and so they do not
        depend on the location of a configuration's file.
        """
        paths = {"embedding": self.embedding, **self.public_files}
        return {name: self._written.get(name, path) for name, path in paths.items()}

    @property
    def recipe(self) -> dict[str, Any]:
        """Settings that enter a bundle's recipe, with those of the embedding's training if it is trained.

        Public files are not among them: a recipe has them by their content (:attr:`public_files`).
        """
        training = self.training_settings.recipe if self.embedding_format == HYPERNYMS else {}
        files = self.mechanism.settings_type.input_files
        return {**{name: value for name, value in self.settings.recipe().items() if name not in files}, **training}

    @property
    def nominal_epsilon(self) -> float:
        """Epsilon as configured: per unit of the metric's distance and token; 0 if there is none to configure."""
        return self.settings.nominal_epsilon


def _make_section(mechanism: type[Mechanism[Any]]) -> type[MechanismSection]:
    kind = mechanism.settings_type
    own: dict[str, Any] = {
        name: (_annotation(kind, name, hint), value) for name, (hint, value) in fields_of(kind).items()
    }
    own["name"] = (Literal[mechanism.name], ...)
    return create_model(f"{mechanism.__name__}Section", __base__=MechanismSection, __doc__=kind.__doc__, **own)


def _annotation(kind: type[MechanismSettings], name: str, hint: Any) -> Any:
    """Return the type of a setting in a configuration: files have a name, and a tuple is written as a list."""
    if name in kind.input_files:
        file_type = _FILE_TYPES.get(name, Location)
        return file_type | None if type(None) in get_args(hint) else file_type
    if not _holds_tuple(hint):
        return hint
    return Annotated[hint, BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)]


def _holds_tuple(hint: Any) -> bool:
    return get_origin(hint) is tuple or any(map(_holds_tuple, get_args(hint)))


MECHANISM_SECTIONS = {name: _make_section(mechanism) for name, mechanism in MECHANISMS.items()}

if TYPE_CHECKING:
    AnyMechanism = MechanismSection
else:
    AnyMechanism = Annotated[reduce(or_, MECHANISM_SECTIONS.values()), Field(discriminator="name")]


def nearest_mechanism(name: object) -> type[Mechanism[Any]] | None:
    """Return the mechanism of this name, or of the most similar one; None if no name is similar."""
    near = difflib.get_close_matches(str(name), MECHANISMS, n=1)
    return MECHANISMS[near[0]] if near else None


def check_misnamed(written: Mapping[str, Any]) -> list[ErrorDetails]:
    """Find the other faults of a section whose name is not a mechanism's.

    It is checked as a section of the mechanism with the most similar name. If no name is similar, only the settings
    that all mechanisms share are checked, and other keys are ignored.
    """
    near = nearest_mechanism(written.get("name"))
    model = MECHANISM_SECTIONS[near.name] if near else MechanismSection
    location = ("mechanism", near.name if near else "")
    try:
        model.model_validate({**written, "name": near.name if near else ""})
    except ValidationError as error:
        return [
            {**details, "loc": (*location, *details["loc"])}
            for details in error.errors(include_url=False)
            if near is not None or details["type"] != "extra_forbidden"
        ]
    return []
