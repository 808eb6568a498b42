"""Presentation of an epsilon's meaning for people: sentences, rows of tables, and the page, with lines in pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wordveil.measures.calibration.figures import Calibration, EpsilonMeaning, FoundEpsilon, WordFigure
from wordveil.privacy.recovery import PriorRecovery, Recovery
from wordveil.report.bars import VISIBLE, draw_histogram
from wordveil.report.picture import choose_ticks, make_marks, make_scale
from wordveil.report.templates import render_page
from wordveil.report.values import NOT_MEASURED, show_number, show_recovered, show_share

WIDTH, HEIGHT = 300, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 50.0, 10.0, 12.0, 30.0
# Texts of the axis that are closer to each other are unreadable.
_APART = 26.0
_MOST_DECADES = 6


def draw_lines(
    title: str, epsilons: Sequence[float], figures: Mapping[str, Sequence[float | None]], show: Callable[[float], str]
) -> dict[str, Any]:
    """Draw figures, 0 or more or None for each epsilon, over a logarithmic axis of positive, rising epsilons.

    The axis of figures is logarithmic, too, if one above 0 would be drawn at 0; then figures of 0 are left out. For the
    template: ``label`` is for screen readers, and all places are in pixels.
    """
    ends = {"left": _LEFT, "right": WIDTH - _RIGHT, "top": _TOP, "bottom": HEIGHT - _BOTTOM}
    to_x = _make_axis(epsilons, ends["left"], ends["right"])
    points_of = {
        name: [(epsilon, value) for epsilon, value in zip(epsilons, values, strict=True) if value is not None]
        for name, values in figures.items()
    }
    drawn = [value for pairs in points_of.values() for _, value in pairs]
    if 0 < min(filter(None, drawn), default=0.0) < VISIBLE * max(drawn):
        title += ", log scale"
        points_of = {name: [pair for pair in pairs if pair[1] > 0] for name, pairs in points_of.items()}
        low, high = math.floor(math.log10(min(filter(None, drawn)))), math.ceil(math.log10(max(drawn)))
        up = tuple(10.0**power for power in range(high, low - 1, (low - high) // _MOST_DECADES))
        to_y = _make_axis((10.0**low, 10.0**high), ends["bottom"], ends["top"])
    else:
        up = choose_ticks([0.0, *drawn])
        to_y = make_scale(up, ends["bottom"], ends["top"])
    lines: list[dict[str, Any]] = []
    for name, pairs in points_of.items():
        spots = [
            {"x": round(to_x(epsilon), 1), "y": round(to_y(value), 1), "text": f"{show(value)} at epsilon {epsilon:g}"}
            for epsilon, value in pairs
        ]
        lines.append({"name": name, "spots": spots, "points": " ".join(f"{spot['x']},{spot['y']}" for spot in spots)})
    said = "; ".join(f"{line['name']}: {', '.join(spot['text'] for spot in line['spots'])}" for line in lines)
    # Of marks that show alike, such as those too small for digits, the lowest.
    marks = {mark["text"]: mark for mark in make_marks(up, to_y, show)}
    axes = {"across": _name_epsilons(epsilons, to_x), "up": list(marks.values())}
    return {"title": title, "label": f"{title}. {said}.", **ends, **axes, "lines": lines}


def _make_axis(values: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    low, high = math.log(values[0]), math.log(values[-1])
    scale = make_scale((low, high) if low < high else (low - 1, low + 1), start, end)
    return lambda value: scale(math.log(value))


def _name_epsilons(epsilons: Sequence[float], to_x: Callable[[float], float]) -> list[dict[str, Any]]:
    """Make marks of the axis for epsilons, without texts that would overlap the previous one."""
    marks, last = make_marks(epsilons, to_x), -math.inf
    for mark in marks:
        if mark["position"] - last < _APART:
            mark["text"] = ""
        else:
            last = mark["position"]
    return marks


PRIORS = {"frequency": "running text", "uniform": "all words alike"}
DEFINITIONS = {
    "epsilon": "mechanism.epsilon as configured: per unit of the mechanism's metric, or the loss itself of a mechanism "
    "whose epsilon is pure.",
    "largest loss": "the certified loss of one token between any two words, in nats: no output changes the odds "
    "between two words by more than e to this power.",
    "nearest loss": "the median over words of the loss between a word and its nearest neighbour, in nats: how well a "
    "word is hidden among similar ones.",
    "kept": "the share of draws that give the word itself; each word counts once.",
    "in its cluster": "the share of draws that stay in the word's cluster, where one word is written for each cluster.",
    "recovered": "the share of words that the best attacker gets right, given one output and everything but the key "
    "and the text (Bayes vulnerability). In running text words are as likely as they are frequent in public text.",
    "leakage": "how many times as many words the attacker gets right as without looking (multiplicative Bayes "
    "leakage).",
}
_UTILITY = {
    "text_words": "words of the text",
    "noise_dimension": "dimension of the noise",
    "points_50": "Earth Mover's distance to the noisy points, with 50%: at most",
    "words_50": "the same to the words, with 50%: at most",
    "points_95": "Earth Mover's distance to the noisy points, with 95%: at most",
    "words_95": "the same to the words, with 95%: at most",
}
_PUBLIC_NOTE = "Figures of public words and vectors, drawn with a public key. They use no text of the corpus."


def describe_found(answer: FoundEpsilon) -> str:
    """Describe the epsilon that meets a target, in a sentence."""
    how = "computed" if answer.is_exact else "from draws, with a confidence of 95%"
    return (
        f"{answer.target} needs epsilon {answer.epsilon:g} ({answer.low:.4g} to {answer.high:.4g}, {how}); there it is "
        f"{_show_brief(answer.reached)}."
    )


def describe_meaning(meaning: EpsilonMeaning) -> list[str]:
    """Describe what one epsilon means, in sentences."""
    epsilon = f"{meaning.epsilon:g}"
    kept, stays = show_share(meaning.share_kept), meaning.share_in_cluster
    sentences = [
        f"At epsilon {epsilon} a word comes back as itself in {kept} of the draws."
        if stays is None
        else f"At epsilon {epsilon} a word stays in its cluster in {show_share(stays)} of the draws, and becomes the "
        "word that stands for it."
    ]
    if meaning.recovery is not None:
        recovery = Recovery.from_dict(meaning.recovery)
        frequency, uniform = (
            f"{show_recovered(prior.after[0])} of the words ({show_share(prior.before)} without looking)"
            for prior in (recovery.frequency, recovery.uniform)
        )
        sentences.append(f"An attacker who knows word frequencies names {frequency}.")
        sentences.append(f"Where all words are equally likely, rare ones too, an attacker names {uniform}.")
    but = f", except with a probability of {meaning.delta:.3g}" if meaning.delta else ""
    sentences.append(
        f"No output changes the odds between any two words by more than e^{_show_brief(meaning.pure_epsilon)}{but}."
    )
    if meaning.nearest_loss is not None:
        sentences.append(
            f"Between a word and its nearest neighbour the median loss is {_show_brief(meaning.nearest_loss)}."
        )
    return sentences


def list_columns(meanings: Sequence[EpsilonMeaning]) -> dict[str, list[str]]:
    """List the figures of each epsilon besides the statistics of words: by heading, a text for each epsilon."""
    columns = {
        "epsilon": [f"{meaning.epsilon:g}" for meaning in meanings],
        "largest loss": [_show_brief(meaning.pure_epsilon) for meaning in meanings],
        "nearest loss": [
            "" if meaning.nearest_loss is None else _show_brief(meaning.nearest_loss) for meaning in meanings
        ],
        "kept": [show_share(meaning.share_kept) for meaning in meanings],
    }
    stays = [meaning.share_in_cluster for meaning in meanings]
    if None not in stays:
        columns["in its cluster"] = [show_share(share) for share in stays if share is not None]
    for prior, heading in PRIORS.items():
        priors = [_find_prior(meaning, prior) for meaning in meanings]
        columns[f"recovered, {heading}"] = ["" if prior is None else show_recovered(prior.after[0]) for prior in priors]
        columns[f"leakage, {heading}"] = ["" if prior is None else _show_leakage(prior) for prior in priors]
    return {heading: texts for heading, texts in columns.items() if any(texts)}


def list_statistics(meanings: Sequence[EpsilonMeaning]) -> dict[str, list[str]]:
    """List the statistics of words: by heading, ``average / worst`` for each epsilon; empty if it is missing."""
    names = dict.fromkeys(figure.name for meaning in meanings for figure in meaning.words)
    shown = [
        {figure.name: f"{_show_figure(figure.average)} / {_show_figure(figure.worst)}" for figure in meaning.words}
        for meaning in meanings
    ]
    return {f"{name}, average / worst": [figures.get(name, "") for figures in shown] for name in names}


def _show_figure(value: float) -> str:
    """Show a figure, without decimals if it is whole."""
    return f"{int(value):,}" if float(value).is_integer() else show_number(value)


def _show_leakage(prior: PriorRecovery) -> str:
    least, most = _show_brief(prior.leakage_at_least), prior.leakage_at_most
    if most is None:
        return f"at least {least}"
    return least if most == prior.leakage_at_least else f"{least} to {_show_brief(most)}"


def _show_brief(value: float) -> str:
    """Show a figure in three digits, or without decimals if it is large."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _find_prior(meaning: EpsilonMeaning, name: str) -> PriorRecovery | None:
    return None if meaning.recovery is None else PriorRecovery.from_dict(meaning.recovery[name])


def render_calibration(calibration: Calibration) -> str:
    """Render the page of a calibration, in HTML: sentences, pictures, tables, examples and definitions, escaped."""
    meanings = calibration.meanings
    epsilons = [f"{meaning.epsilon:g}" for meaning in meanings]
    words = dict.fromkeys(example.word for meaning in meanings for example in meaning.examples)
    definitions = {figure.name: figure.definition for meaning in meanings for figure in meaning.words}
    return render_page(
        "calibration.html",
        title=f"What epsilon means: {calibration.mechanism}",
        width=WIDTH,
        height=HEIGHT,
        calibration=calibration,
        public_note=_PUBLIC_NOTE,
        found=[describe_found(answer) for answer in calibration.found],
        readings=list(zip(epsilons, map(describe_meaning, meanings), strict=True)),
        panels=draw_panels(meanings),
        tables=[list_columns(meanings), {"epsilon": epsilons, **list_statistics(meanings)}],
        histograms=draw_histograms(meanings),
        utility=_list_utility(meanings),
        examples=[
            (word, [(f"{meaning.epsilon:g}", _list_outputs(meaning, word)) for meaning in meanings]) for word in words
        ],
        definitions={**DEFINITIONS, **definitions},
        figures=[
            (epsilon, [_describe_figure(figure) for figure in meaning.words])
            for epsilon, meaning in zip(epsilons, meanings, strict=True)
        ],
    )


def draw_panels(meanings: Sequence[EpsilonMeaning]) -> list[dict[str, Any]]:
    """Draw the pictures against epsilon: words kept, words recovered, and the losses of a token."""
    epsilons = [meaning.epsilon for meaning in meanings]
    recovered: dict[str, list[float | None]] = {
        heading: [
            None if (prior_recovery := _find_prior(meaning, prior)) is None else prior_recovery.after[0].at_least
            for meaning in meanings
        ]
        for prior, heading in PRIORS.items()
    }
    kept: dict[str, list[float | None]] = {
        "words that come back": [meaning.share_kept for meaning in meanings],
        "words that stay in their cluster": [meaning.share_in_cluster for meaning in meanings],
    }
    losses: dict[str, list[float | None]] = {
        "largest loss": [meaning.pure_epsilon for meaning in meanings],
        "nearest loss": [meaning.nearest_loss for meaning in meanings],
    }
    panels: dict[str, dict[str, list[float | None]]] = {
        "Words kept": kept,
        "Words that an attacker names": recovered,
        "Loss of a token, in nats": losses,
    }
    return [
        draw_lines(title, epsilons, known, _show_brief if figures is losses else show_share)
        for title, figures in panels.items()
        if (known := {name: values for name, values in figures.items() if any(value is not None for value in values)})
    ]


def draw_histograms(meanings: Sequence[EpsilonMeaning]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Draw for each epsilon the statistics that are counted in whole numbers."""
    charts_of = [
        (f"{meaning.epsilon:g}", [_draw_figure(figure) for figure in meaning.words if figure.histogram])
        for meaning in meanings
    ]
    return [(epsilon, charts) for epsilon, charts in charts_of if charts]


def _draw_figure(figure: WordFigure) -> dict[str, Any]:
    marks = {"average": figure.scale * figure.average, "worst": figure.scale * figure.worst}
    named = {f"{name} {_show_figure(value)}": value for name, value in marks.items()}
    unit = figure.name if figure.scale == 1 else f"{figure.name}, draws of {figure.scale:,}"
    return {**_describe_figure(figure), "unit": unit, "chart": draw_histogram(figure.histogram, named, tail=True)}


def _describe_figure(figure: WordFigure) -> dict[str, Any]:
    return {
        "name": figure.name,
        "average": _show_figure(figure.average),
        "worst": _show_figure(figure.worst),
        "worst_word": figure.worst_word,
        "quantiles": [_show_figure(value) for value in figure.quantiles],
        "how": "computed" if figure.is_exact else "drawn",
    }


def _list_utility(meanings: Sequence[EpsilonMeaning]) -> list[tuple[str, list[str]]]:
    names = dict.fromkeys(name for meaning in meanings for name in meaning.utility)
    shown = [{name: _show_brief(value) for name, value in meaning.utility.items()} for meaning in meanings]
    return [(_UTILITY.get(name, name), [figures.get(name, NOT_MEASURED) for figures in shown]) for name in names]


def _list_outputs(meaning: EpsilonMeaning, word: str) -> list[tuple[str, str]]:
    """List the likeliest outputs of an example and their shares."""
    outputs = (example.outputs for example in meaning.examples if example.word == word)
    return [(output, show_share(share)) for output, share in next(outputs, ())]
