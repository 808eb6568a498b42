"""Configuration of ``wordveil train``: a file of its own, since a generator is trained once for many jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationError

from wordveil.config.credential_checks import find_credential_faults
from wordveil.config.load import make_fault
from wordveil.config.paths import EmbeddingPath, LocalPath
from wordveil.config.schema import FromValue, Name, Section, fields_of, make_section
from wordveil.config.yaml_file import read_yaml, set_key
from wordveil.errors import ConfigError, Fault
from wordveil.generators.shape import GeneratorShape
from wordveil.generators.training.settings import RewardSettings, Schedule, Share, TrainingSettings
from wordveil.text import choices
from wordveil.text.policy import TextPolicy
from wordveil.text.types.classes import masked_actions

FORMAT_VERSION = 1
Size = Annotated[int, Field(ge=1, le=65_536)]


class TextsSection(Section):
    """The texts that train a generator: a table that Arrow reads."""

    path: LocalPath
    """A file, or a directory of them."""
    format: Literal["parquet", "json"] = "parquet"
    """``parquet``, or ``json``: an object a line."""
    column: Name = "text"
    """The column with the texts. Texts that are null are left out."""
    cut: Literal["sentences", "windows"] = "sentences"
    """``sentences``: a sequence is a sentence. ``windows``: texts are cut after each ``shape.length`` words alone.
    Sentences that are longer are cut in the same way.
    """
    validation: Share = 0.02
    """The share of the texts that measure and do not train, chosen by hashes of the texts. 0: training cannot stop
    early, and the last weights count.
    """


class WordsSection(Section):
    """Splitting of texts into words, as in the text policy of the jobs that use the generator."""

    tokeniser: Annotated[choices.TokeniserKind, FromValue] = choices.TokeniserKind.WORDS
    """The tokeniser."""
    hyphens: Annotated[choices.Hyphens, FromValue] = choices.Hyphens.SPLIT
    """``split``: a hyphen ends a word. ``inner``: a single one between two letters does not."""
    case: Literal["lower", "exact"] = "lower"
    """The case in which words are looked up."""
    types: Literal["mask", "none"] = "mask"
    """``mask``: addresses, numbers and the like count as unknown words, as in the profile ``strict``. ``none``: no
    class is told apart from words.
    """

    @property
    def policy(self) -> TextPolicy:
        """Text policy."""
        types = masked_actions() if self.types == "mask" else {}
        settings = {"tokeniser": self.tokeniser, "hyphens": self.hyphens, "case": self.case, "types": types}
        return TextPolicy(**settings)  # type: ignore[arg-type]


class ShapeSection(Section):
    """The sizes of a generator (:class:`wordveil.generators.shape.GeneratorShape`). Words and dimension are the
    embedding's.
    """

    length: Annotated[int, Field(ge=2, le=1024)] = 50
    """Symbols of a sequence. ``text.n_max`` of a job is a multiple of it."""
    cells: Annotated[int, Field(ge=2, le=8192, multiple_of=2)] = 512
    """Cells of each layer of the generator, even. Each direction of the encoder has half as many."""
    latent: Size = 256
    """The dimension of the latent vector."""
    encoder_layers: Annotated[int, Field(ge=1, le=8)] = 2
    """Layers of the encoder."""
    generator_layers: Annotated[int, Field(ge=1, le=8)] = 2
    """Layers of the generator."""


if TYPE_CHECKING:
    RewardSection = Section
    GeneratorTrainingSection = Section
else:
    _DOC = "Training of the weights, with when they are measured and saved, and when it ends."
    RewardSection = make_section("RewardSection", "The losses of ER-AE and their weights.", RewardSettings)
    GeneratorTrainingSection = make_section("GeneratorTrainingSection", _DOC, TrainingSettings, Schedule)
_STEP_SETTINGS = {*fields_of(TrainingSettings)}


class GeneratorSection(Section):
    """A generator: its texts, its sizes and its training."""

    output: LocalPath
    """The file of the weights, ``.npz``. The figures of the training and a picture of them are written beside it."""
    checkpoints: LocalPath | None = None
    """The directory in which training keeps what it needs to go on; by default ``output`` with ``.training`` at its
    end. It holds the words of the texts as numbers, so it is as secret as they are.
    """
    embedding: EmbeddingPath
    """The word vectors: ``glove``, ``demo``, or the path of public ones. The generator has their words, and so must the
    job's mechanism.
    """
    embedding_format: Literal["auto", "wordveil", "word2vec", "word2vec-binary", "glove", "fasttext"] = "auto"
    """The format of the embedding's file."""
    public: Literal[True]
    """``true``: the embedding was made without the private corpus."""
    corpus: Literal["public", "private"]
    """``public``: the texts were written without the private corpus. ``private``: they are the private corpus, or a
    part of it. The weights may then tell it, and releases that use them cost far more.
    """
    texts: TextsSection
    """The texts that train."""
    text: WordsSection = WordsSection()
    """Splitting of texts into words."""
    shape: ShapeSection = ShapeSection()
    """The sizes."""
    reward: RewardSection = RewardSection()
    """The losses."""
    training: GeneratorTrainingSection = GeneratorTrainingSection()
    """Training of the weights."""

    @property
    def directory(self) -> Path:
        """Directory of checkpoints."""
        return Path(self.checkpoints or f"{self.output}.training")

    @property
    def settings(self) -> TrainingSettings:
        """Settings that decide a step."""
        chosen = self.training.model_dump(include=_STEP_SETTINGS)
        return TrainingSettings(**chosen, reward=RewardSettings(**self.reward.model_dump()))

    @property
    def schedule(self) -> Schedule:
        """Schedule of measuring, saving and ending the training."""
        return Schedule(**self.training.model_dump(exclude=_STEP_SETTINGS))

    def find_shape(self, size: int, dimension: int) -> GeneratorShape:
        """Return the shape over an embedding's words."""
        return GeneratorShape(size=size, dimension=dimension, **self.shape.model_dump())


class GeneratorConfig(Section):
    """Configuration of ``wordveil train``."""

    format_version: Literal[1]
    """The version of this format."""
    generator: GeneratorSection


_MESSAGES: dict[tuple[str, str], str] = {
    ("format_version", "missing"): f"is required: write `format_version: {FORMAT_VERSION}`.",
    ("format_version", "literal_error"): f"this wordveil reads format_version {FORMAT_VERSION} of generators.",
    ("generator", "missing"): "is required. `wordveil docs conf/generators/demo.yaml` prints an example.",
    ("generator.public", "missing"): (
        "is required: set `public: true` if the embedding was made without the private corpus. What is made from the "
        "corpus leaks it: use another embedding."
    ),
    ("generator.public", "literal_error"): (
        "only `public: true` can be used: an embedding made from the private corpus breaks the guarantee."
    ),
    ("generator.corpus", "missing"): (
        "is required and has no default: `public` if the texts were written without the private corpus, else "
        "`private`. Weights trained on private texts may tell them."
    ),
}


def load_generator_config(file: Path, overrides: Sequence[str] = ()) -> GeneratorSection:
    """Read and check a configuration of ``wordveil train``. ``overrides`` are ``key=value`` with a dotted key.

    Relative paths are taken from the directory of ``file``. Raises :class:`ConfigError` with every fault of the file.
    """
    raw = read_yaml(file)
    faults = [fault for override in overrides for fault in set_key(raw, override)]
    faults.extend(find_credential_faults(raw))
    try:
        config = GeneratorConfig.model_validate(raw, context=file.parent)
    except ValidationError as error:
        faults += [make_fault(details, GeneratorConfig, _MESSAGES) for details in error.errors(include_url=False)]
        raise ConfigError(str(file), faults) from None
    if faults := [*faults, *find_generator_faults(config.generator)]:
        raise ConfigError(str(file), faults)
    return config.generator


def find_generator_faults(section: GeneratorSection) -> Iterable[Fault]:
    """List settings that contradict each other."""
    training, reward, schedule = section.settings, section.settings.reward, section.schedule
    if reward.floor >= reward.ceiling:
        yield Fault("generator.reward.floor", f"{reward.floor:g}", "should be below reward.ceiling. Lower it.")
    if training.word_dropout + training.corruption > 1:
        problem = "and training.corruption are more than 1 together. Lower one of them."
        yield Fault("generator.training.word_dropout", f"{training.word_dropout:g}", problem)
    if reward.reward and schedule.reconstruction_epochs >= schedule.epochs:
        problem = "leaves no epoch with the reward. Lower it, raise training.epochs, or set reward.reward: 0.0."
        yield Fault("generator.training.reconstruction_epochs", str(schedule.reconstruction_epochs), problem)
    if not Path(section.texts.path).exists():
        yield Fault("generator.texts.path", section.texts.path, "no such file or directory. Name an existing one.")
