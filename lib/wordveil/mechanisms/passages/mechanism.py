r"""Passages: one draw for a whole text, written as a public passage on the same subject.

Public passages are clustered by subject. A text's *symbol* is the nearest of the ``K`` centres, a function of the text
and of public data alone (:mod:`wordveil.mechanisms.passages.encoder`), or ``empty`` for a text without a known word.
The symbol is drawn by randomised response among these ``K + 1`` (Warner 1965; Kairouz, Oh, Viswanath 2014), by the
whole numbers and the certificate of :mod:`wordveil.mechanisms.tree.levels` with ``empty`` in the place of padding. So
two texts of any lengths, about anything, have a loss of at most epsilon, and of 0 if they have one symbol. What is
written is a function of the drawn symbol and of public data (Dwork and Roth 2014, proposition 2.1).

Someone who holds ``N`` equally likely candidates for an original names the right one with probability at most
``e^E / (e^E + N - 1)``, whatever they know.

Related work: documents as points that are protected as a whole (Fernandes, Dras, McIver 2019); sentences replaced by
public candidates (Meehan, Mrini, Chaudhuri 2022, whose output is an embedding); public triples rewritten by a language
model (Meisenbacher, Chevli, Matthes 2025); vectors of texts (Feyisetan, Kasiviswanathan 2021).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from annotated_types import Ge, Le

from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError, did_you_mean
from wordveil.mechanisms.base import MechanismArtifact, TextEncoder
from wordveil.mechanisms.inputs import NO_INPUTS, WORDNET, PublicInputs, PublicPassages
from wordveil.mechanisms.passages.encoder import PARTS, SumEncoder
from wordveil.mechanisms.passages.model import ModelEncoder
from wordveil.mechanisms.settings import Example, MechanismSettings, PureEpsilon
from wordveil.mechanisms.tables.mechanism import check_epsilon
from wordveil.mechanisms.tree.build import certify_table, solve_nesting
from wordveil.mechanisms.tree.draws import ClusterDraws
from wordveil.mechanisms.tree.table import arrange
from wordveil.neighbours.blocks import BuildContext
from wordveil.privacy.guarantees import TEXTS, Metric, WordGuarantee
from wordveil.scores.methods import SENTENCE_TRANSFORMERS, find_model

_ENCODERS = f"{', '.join(PARTS)} or {SENTENCE_TRANSFORMERS}MODEL"


@dataclass(frozen=True, kw_only=True)
class PassagesSettings(MechanismSettings):
    """Whole texts replaced by public passages on the same subject, for one loss a text.

    Attributes
    ----------
    epsilon : float
        the most that a whole text can cost, in nats, whatever its length. It has no default.
    passages : str
        the public passages: ``wordnet``, or the path of a file with a text a line or a column of texts. Take public
        text of your own field if there is any. It has no default.
    clusters : int
        number of subjects. About ``e^epsilon / 4`` keeps a text's subject in four of five texts: 16 at epsilon 4, 37 at
        5, 100 at 6.
    encoder : str or None
        what a text's subject is found by: ``vectors``, the embedding; ``passages``, which words the passages have
        together; both; or ``sentence-transformers:MODEL``, where that package is installed on every machine. None:
        ``vectors`` with ``wordnet``, which knows too little of a field, and otherwise both.
    output : {"passage", "keywords"}
        what is written for a subject: its most central passage, or its ten most telling words.
    """

    input_files: ClassVar[tuple[str, ...]] = ("passages",)

    epsilon: PureEpsilon
    passages: str
    clusters: Annotated[int, Ge(2), Le(100_000)]
    encoder: str | None = None
    output: Literal["passage", "keywords"] = "passage"

    @classmethod
    def find_faults(cls, written: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        encoder = written.get("encoder")
        if isinstance(encoder, str) and encoder not in PARTS and not find_model(encoder):
            yield "encoder", f"{encoder} is no encoder. Allowed: {_ENCODERS}.{did_you_mean(encoder, PARTS)}"


class Passages(ClusterDraws[PassagesSettings]):
    """Passages mechanism; see the module. Arrays: the table's, and the encoder's."""

    name = "passages"
    settings_type = PassagesSettings
    priced = "a whole text"
    draws_texts = True

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        return {
            "": Example(
                PassagesSettings(epsilon=4.0, passages="wordnet", clusters=300),
                PassagesSettings(epsilon=6.0, passages="wordnet", clusters=100),
                inputs=_example_inputs,
            ),
            "keywords": Example(
                PassagesSettings(epsilon=4.0, passages="wordnet", clusters=300, encoder="vectors", output="keywords"),
                PassagesSettings(epsilon=6.0, passages="wordnet", clusters=100, encoder="vectors", output="keywords"),
                inputs=_example_inputs,
            ),
        }

    @classmethod
    def build(
        cls,
        embedding: Embedding,
        settings: PassagesSettings,
        *,
        padding: bool,
        work: BuildContext,
        inputs: PublicInputs = NO_INPUTS,
    ) -> MechanismArtifact:
        check_epsilon(settings.epsilon)
        if inputs.passages is None:
            raise BundleError(
                "mechanism.passages is not read. Set it to wordnet, or to the path of a file of public texts."
            )
        if not padding:
            raise BundleError(
                "text.profile: the mechanism passages draws a text as a whole. Set text: {profile: passages}."
            )
        from wordveil.mechanisms.passages.subjects import find_subjects  # workers need no sparse algebra

        subjects = find_subjects(
            embedding,
            inputs.frequencies_of(embedding.size),
            inputs.passages,
            settings.clusters,
            settings.encoder or ("vectors" if settings.passages == WORDNET else "both"),
            keywords=settings.output == "keywords",
            work=work,
        )
        work.progress("choosing and certifying the probabilities of subjects")
        count = settings.clusters
        positions = np.arange(count + 1, dtype=np.int32)
        losses = [0.0, settings.epsilon]
        nesting, levels = solve_nesting([positions, positions[[0, -1]]], losses, None, padding=True)
        table = arrange(nesting, levels, np.arange(count + 2, dtype=np.int32), positions)
        _, loss = certify_table(table, settings.epsilon)
        encoder = subjects.encoder
        arrays = {**table.arrays, "bounds": positions, **encoder.arrays}
        parameters = {
            "epsilon": settings.epsilon,
            "losses": losses,
            "counts": [count, 1],
            "output": settings.output,
            "padding": True,
            "pad_share": None,
            **encoder.parameters,
        }
        digest = sha256(b"texts")
        for array in encoder.arrays.values():
            digest.update(np.ascontiguousarray(array).tobytes())
        guarantee = WordGuarantee(Metric(TEXTS, digest.hexdigest()), settings.epsilon, loss, diameter=1.0)
        stays = float(table.mixture(0).probabilities[0])
        largest, effective = subjects.spread
        lacking = subjects.lacking
        kept = f"It keeps its subject with a probability of {stays:.3g}."
        even = f"the largest has {largest:.1%}, and they are as even as {effective:.0f} equal ones."
        notes: tuple[str, ...] = (
            f"A text loses at most {loss:.4g}, whatever its length. {kept}",
            f"{len(inputs.passages):,} passages are spread over {count:,} subjects: {even}",
        )
        if lacking:
            notes += (
                f"{lacking:,} subjects have no passage of their own that may be written: another's stands there.",
            )
        if loss < 0.99 * settings.epsilon:
            notes += (f"No table of 64 bits loses more than {loss:.4g}: a larger epsilon keeps no more.",)
        return MechanismArtifact(parameters, arrays, guarantee, notes=notes, topics=subjects.topics)

    def make_blind(self) -> MechanismArtifact:
        rows = self._table.rows
        alike = {**self._arrays, "rows": np.full_like(rows, len(rows) - 1)}
        guarantee = WordGuarantee(Metric(TEXTS, sha256(b"blind").hexdigest()), 0.0, 0.0, diameter=1.0)
        return MechanismArtifact(self._parameters, alike, guarantee)

    @property
    def responses(self) -> int:  # type: ignore[override]
        # The subjects, and empty.
        return int(self._parameters["counts"][0]) + 1

    @cached_property
    def encoder(self) -> TextEncoder:
        if "model" in self._parameters:
            return ModelEncoder.of(self._arrays, self._parameters["model"])
        return SumEncoder.of(self._arrays, self._parameters["widths"])

    def check_installed(self) -> None:
        _ = self.encoder


def _example_inputs(embedding: Embedding) -> PublicInputs:
    """Make twelve hundred passages of three of the first words."""
    words = embedding.words.to_pylist()[:300]
    chosen = (np.arange(3_600) * 7_919 % len(words)).reshape(-1, 3).astype(np.int32)
    texts = pa.array([" ".join(words[word] for word in row) for row in chosen.tolist()], pa.string())
    offsets = np.arange(len(chosen) + 1, dtype=np.int64) * 3
    return PublicInputs(passages=PublicPassages(chosen.ravel(), offsets, texts, chosen.ravel(), offsets, texts))
