"""Labels of sentences by the mean of their words' vectors, as SentEval (Conneau, Kiela 2018) measures them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from wordveil.arrays import Int64
from wordveil.embeddings.embedding import DEMO, Embedding, load
from wordveil.evaluation.classifiers import FittedModel, TextClassifier, load_package, take_known
from wordveil.scores.documents import Documents
from wordveil_research.methods.bags import WordVectors


@dataclass(frozen=True)
class SentenceVectors(TextClassifier):
    """Logistic regression over mean vectors.

    ``embedding``: a public one, such as the mechanism's; None for the demo embedding. ``cost``: the weight of errors
    against that of large coefficients. Features have variance 1.
    """

    needs_embedding: ClassVar[bool] = True
    name: ClassVar[str] = "sentence-vectors"

    embedding: Embedding | None = None
    cost: float = 1.0

    @property
    def definition(self) -> str:
        return (
            f"Multinomial logistic regression (C = {self.cost:g}) over the mean vector of a text's words, as SentEval "
            "measures bags of vectors, by scikit-learn."
        )

    def fit(self, known: Documents, seed: int) -> FittedModel:  # noqa: ARG002 -- nothing is drawn
        """See :class:`TextClassifier`. Raises :class:`PlatformError` where scikit-learn is not installed."""
        documents = take_known(known)
        vectors = WordVectors(self.embedding or load(DEMO))
        model = fit_logistic(vectors.average(documents.texts), documents.labels, self.cost)
        return FittedModel(vectors.average, model)


def fit_logistic(features: Any, labels: Int64, cost: float = 1.0) -> Any:
    """Fit multinomial logistic regression to features that are scaled to mean 0 and variance 1.

    ``features``: float64 ``(texts, features)``. Raises :class:`PlatformError` where scikit-learn is not installed.
    """
    pipeline, preprocessing = load_package("sklearn.pipeline"), load_package("sklearn.preprocessing")
    model = load_package("sklearn.linear_model").LogisticRegression(C=cost, max_iter=2_000)
    return pipeline.make_pipeline(preprocessing.StandardScaler(), model).fit(features, labels)
