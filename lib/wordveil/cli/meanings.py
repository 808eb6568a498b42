"""What the terms of a guarantee mean, in one sentence each."""

from __future__ import annotations

from wordveil.privacy.relations import Exposure, Relation

RELATIONS = {
    Relation.ANY_TEXT: "any two texts",
    Relation.SAME_LENGTH: "two texts with the same number of tokens",
    Relation.SAME_SKELETON: "two texts that agree in everything that is copied or shown",
}
"""The pairs of texts that a bound compares."""
EXPOSURES = {
    Exposure.PRESENCE: "Whether the record was refused because of its text.",
    Exposure.LANGUAGE: "Which records are of another language: none of their words is copied.",
    Exposure.CONDITION: "That the text meets input.where.",
    Exposure.EDITED: "In which runs the text changed.",
    Exposure.WITHDRAWN: "That the record was in the release and was taken out.",
    Exposure.GATE: "That the release passed rules which read original texts.",
    Exposure.LAYOUT: "The order of the input's rows, which follows the sizes of texts.",
    Exposure.LENGTH: "How many tokens the text has.",
    Exposure.REPETITION: "Which positions of the text hold the same word.",
    Exposure.TYPES: "Which tokens are addresses, numbers, dates or names, and the shape of those that keep it.",
    Exposure.PUNCTUATION: "Everything between words is copied.",
    Exposure.CASE: "Which words are capitalised or in upper case.",
    Exposure.DIGITS: "Words with a digit are copied.",
    Exposure.STOP_WORDS: "Stop-words are copied.",
    Exposure.UNKNOWN_WORDS: "Words outside the vocabulary are copied, without protection.",
    Exposure.CARRIER_PHRASES: "Words that public text expects in their place are copied, and show which are not.",
}
"""What each entry of ``exposes`` means; columns are not among them."""


def explain_exposure(name: str) -> str:
    """What an entry of ``exposes`` means."""
    if name.startswith("column:"):
        return "The column is published unchanged."
    return EXPOSURES[Exposure(name)]
