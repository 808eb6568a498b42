"""Made texts of authors with habits, for tests of attackers."""

from __future__ import annotations

import numpy as np

from wordveil.scores.documents import Documents


def make_documents(
    authors: int, texts: int, seed: int, words: int = 80, alphabet: str = "abcdefghiklmnoprstuw"
) -> Documents:
    """Texts of authors who prefer some words of a common list. ``seed``: of the texts; habits are always the same."""
    habits_of = np.random.default_rng(7)
    letters = np.array(list(alphabet))
    lexicon = ["".join(habits_of.choice(letters, habits_of.integers(1, 9))) for _ in range(300)]
    habits = habits_of.dirichlet(np.full(len(lexicon), 0.3), authors)
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(authors), texts)
    made = [" ".join(rng.choice(lexicon, words, p=habits[label])) for label in labels]
    return Documents.of(made, [f"author {label:02d}" for label in labels.tolist()])


def shuffle_labels(documents: Documents, seed: int) -> Documents:
    """The same texts, each with the label of another."""
    return Documents(documents.texts, np.random.default_rng(seed).permutation(documents.labels), documents.names)
