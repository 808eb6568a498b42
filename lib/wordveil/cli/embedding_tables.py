"""What a build says of its embedding, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wordveil.cli.output import Table
from wordveil.cli.tables import NOT_MEASURED

FIGURES_NOTE = (
    "stay: words that stay themselves, each word of the vocabulary counted once. Where all words are equally likely a "
    "guesser recovers at least as many. All figures are of public words: `wordveil docs choosing`."
)


def suitability_facts(suits: Mapping[str, Any] | None) -> dict[str, str]:
    """The rows that say how the embedding suits the mechanism. None: of a bundle that does not say."""
    if suits is None:
        return {"embedding": NOT_MEASURED}
    cosine = suits["measure"] == "cosine"
    unit = "cosine" if cosine else f"{suits['measure']} distance"
    facts = {f"{unit}, nearest": _spread(suits["nearest"]), f"{unit}, word {suits['neighbour']}": _spread(suits["far"])}
    if suits["gamma"] is not None:
        facts["gamma to begin with"] = f"{suits['gamma']:g}, the median distance of word {suits['neighbour']}"
    if suits["epsilon"] is not None:
        low, high = suits["epsilon"]
        facts["epsilons to look at"] = f"{low:g} to {high:g}"
    return {**facts, "words with digits": _digits(suits["digits"]), "public text covered": _covered(suits)}


def _spread(quantiles: Mapping[str, float]) -> str:
    return f"median {quantiles['median']:.3g}; of 90% of words {quantiles['low']:.3g} to {quantiles['high']:.3g}"


def _digits(digits: Mapping[str, Any]) -> str:
    if not digits["words"]:
        return "none"
    stays = "" if digits["stays"] is None else f"; {_percent(digits['stays'])} of them stay"
    return f"{digits['words']:,}: {', '.join(digits['examples'])}{stays}"


def _covered(suits: Mapping[str, Any]) -> str:
    if suits["covered"] is None:
        return "not measured: gensim's test data is not installed"
    return f"{_percent(suits['covered'])} of {suits['text_words']:,} words of {suits['text']}"


def epsilon_table(suits: Mapping[str, Any], configured: float) -> Table:
    """What rising epsilons do to words, a line for each; ``configured`` is marked."""
    table = Table("What epsilon does to words")
    for heading in ("epsilon", "stay", "recovered of running text"):
        table.add_column(heading, justify="right")
    for row in suits["epsilons"]:
        mark = " (yours)" if row["epsilon"] == configured else ""
        recovered = f"at least {_percent(row['recovered'])}"
        table.add_row(f"{row['epsilon']:g}{mark}", _percent(row["stays"]), recovered)
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.1 else f"{100 * share:.0f}%"
