"""Compiled loops of :mod:`wordveil.evaluation.context`: candidates of outputs, and sequences of words.

A pair of words in the bigram model is never less likely than its back-off. So the back-off of all words before is
summed, or its best chosen, once for each token, and then only pairs in the model are considered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wordveil.arrays import Float64, Int32, Int64
from wordveil.compiled import compiled, compiled_part, find_first_from

NOBODY = -1
STEPS = 256
"""Steps of a cost to a bit: costs are ``-log2 p``, rounded, so that sums and choices are exact."""
_POWERS = 2**16
# Words that are less likely than this, given all before, are continued by their back-off alone.
_FAINT = 1e-7


class LanguageCosts(NamedTuple):
    """Bigram model by ids of words. Row ``size`` is the beginning of a text, row ``size + 1`` an unknown word.

    ``first``: int64 ``(size + 3,)``; the pairs that begin with a row are entries ``first[i]`` up to ``first[i + 1]``.
    ``followers``: int32 ``(pairs,)``, words, rising within a row. ``costs``: int32 ``(pairs,)``. ``words``: int32
    ``(size + 2,)``, the cost of a word by its share alone. ``beyond``: int32 ``(size + 2,)``, additional cost after
    each row if the pair is not in the model.
    """

    first: Int64
    followers: Int32
    costs: Int32
    words: Int32
    beyond: Int32


class WordCandidates(NamedTuple):
    """Candidate words for each row of a table.

    ``counts``: int64 ``(rows,)``. ``words``: int32 ``(rows, candidates)``, rising ids, then :data:`NOBODY`. ``costs``:
    int64 ``(rows, candidates)``, ``-log2 P(output | word)`` in :data:`STEPS`.
    """

    counts: Int64
    words: Int32
    costs: Int64


class ListedLaws(NamedTuple):
    """Laws of words by output.

    ``starts``: int64 ``(outputs + 1,)``. ``words``: int32, and ``extras``: float64 ``(entries,)``. ``common``: float64
    ``(outputs,)``, and ``shares``: float64 ``(size,)``, as in :class:`wordveil.mechanisms.laws.WordLaws`.
    """

    starts: Int64
    words: Int32
    extras: Float64
    common: Float64
    shares: Float64


@compiled
def list_candidates(
    outputs: Int32, laws: ListedLaws, prior: Float64, leaders: Int32, words: Int32, chances: Float64
) -> None:
    """List the likeliest words for each of ``outputs`` into ``words`` and ``chances``, ``P(output | word)``.

    Both are ``(outputs, candidates)``, filled from the left. ``leaders``: at least as many words as candidates that are
    the likeliest if an output is not listed. Among equals words that list the output come first, then lower ids.
    """
    starts, listed, extras, common, shares = laws
    longest = len(leaders)
    for output in outputs:
        longest = max(longest, starts[output + 1] - starts[output] + len(leaders))
    who, chance, value = np.empty(longest, np.int32), np.empty(longest), np.empty(longest)
    seen = np.full(len(prior), -1, np.int64)
    for row in range(len(outputs)):
        output, count = outputs[row], 0
        for entry in range(starts[output], starts[output + 1]):
            word = listed[entry]
            seen[word] = row
            who[count], chance[count] = word, shares[word] * common[output] + extras[entry]
            value[count] = prior[word] * chance[count]
            count += 1
        for word in leaders:
            if seen[word] != row:
                who[count], chance[count] = word, shares[word] * common[output]
                value[count] = prior[word] * chance[count]
                count += 1
        _keep_largest(value[:count], who, chance, words[row], chances[row])


@compiled_part
def _keep_largest(value: Float64, who: Int32, chance: Float64, words: Int32, chances: Float64) -> None:
    """Keep the words with the largest values above 0, as many as fit; the first among equals."""
    wanted, size, least = len(words), 0, 0.0
    if len(value) > wanted:
        # Compiling np.partition takes longer than any of its calls.
        best = np.zeros(wanted)
        for candidate in value:
            place = 0
            while place < wanted and best[place] < candidate:
                if place > 0:
                    best[place - 1] = best[place]
                best[place] = candidate
                place += 1
        least = best[0]
    for entry in range(len(value)):
        if value[entry] > least:
            words[size], chances[size] = who[entry], chance[entry]
            size += 1
    for entry in range(len(value)):
        if least > 0 and value[entry] == least and size < wanted:
            words[size], chances[size] = who[entry], chance[entry]
            size += 1


@compiled
def decode_likeliest(rows: Int32, offsets: Int64, table: WordCandidates, model: LanguageCosts, start: int) -> Int32:
    """Decode the likeliest sequence of words of each record: int32 ``(tokens,)``.

    ``rows``: int32 ``(tokens,)``, the row of ``table`` of each token. ``offsets``: int64 ``(records + 1,)``. ``start``:
    the row of ``model`` for the beginning of a text. Among equally likely sequences the last word with the lowest id
    wins, then the word before it, and so on.
    """
    width = table.words.shape[1]
    out = np.empty(len(rows), np.int32)
    longest = 0
    for record in range(len(offsets) - 1):
        longest = max(longest, offsets[record + 1] - offsets[record])
    back = np.empty((longest, width), np.int32)
    before, spent, cost = np.empty(width, np.int32), np.empty(width, np.int64), np.empty(width, np.int64)
    for record in range(len(offsets) - 1):
        first, length = offsets[record], offsets[record + 1] - offsets[record]
        count = 1
        before[0], spent[0] = start, 0
        for step in range(length):
            row = rows[first + step]
            here, words = table.counts[row], table.words[row]
            _extend(before[:count], spent, words[:here], cost, back[step], model)
            for j in range(here):
                before[j], spent[j] = words[j], cost[j] + table.costs[row, j]
            count = here
        best = np.argmin(spent[:count])
        for step in range(length - 1, -1, -1):
            out[first + step] = table.words[rows[first + step], best]
            best = np.int64(back[step, best])
    return out


@compiled
def _extend(before: Int32, spent: Int64, words: Int32, cost: Int64, back: Int32, model: LanguageCosts) -> None:
    """Write the cost of each of ``words`` after the best previous word into ``cost``, and its index into ``back``."""
    via, best_cost = 0, spent[0] + model.beyond[before[0]]
    for i in range(1, len(before)):
        total = spent[i] + model.beyond[before[i]]
        if total < best_cost:
            via, best_cost = i, total
    most = best_cost
    for j in range(len(words)):
        cost[j] = best_cost + model.words[words[j]]
        back[j] = via
        most = max(most, cost[j])
    for i in range(len(before)):
        if spent[i] > most:  # none of its pairs does better
            continue
        low, end = model.first[before[i]], model.first[before[i] + 1]
        for j in range(len(words)):
            low = find_first_from(words[j], low, end, model.followers)
            if low == end:
                break
            if model.followers[low] == words[j]:
                total = spent[i] + model.costs[low]
                if total < cost[j] or (total == cost[j] and i < back[j]):
                    cost[j], back[j] = total, i


@compiled
def decode_marginals(rows: Int32, offsets: Int64, table: WordCandidates, model: LanguageCosts, start: int) -> Int32:
    """Decode the likeliest word at each position, the lowest id among equals: int32 ``(tokens,)``.

    Pairs that begin with a word that is next to impossible given all before it are neglected. Parameters are those of
    :func:`decode_likeliest`.
    """
    width = table.words.shape[1]
    out = np.empty(len(rows), np.int32)
    powers = 2.0 ** (-np.arange(_POWERS) / STEPS)
    longest = 0
    for record in range(len(offsets) - 1):
        longest = max(longest, offsets[record + 1] - offsets[record])
    forward, seen = np.empty((longest, width)), np.empty((longest, width))
    onward = np.empty(width)
    opening, opened = np.full(1, start, np.int32), np.ones(1)
    for record in range(len(offsets) - 1):
        first, length = offsets[record], offsets[record + 1] - offsets[record]
        words, weights = opening, opened
        for step in range(length):
            row = rows[first + step]
            here = table.counts[row]
            now, chances = table.words[row, :here], seen[step, :here]
            for j in range(here):
                chances[j] = powers[min(table.costs[row, j], _POWERS - 1)]
            _step_forward(words, weights, now, chances, forward[step, :here], powers, model)
            words, weights = now, forward[step, :here]
        backward = np.ones(width)
        for step in range(length - 1, -1, -1):
            row = rows[first + step]
            here = table.counts[row]
            best = np.argmax(forward[step, :here] * backward[:here])
            out[first + step] = table.words[row, best]
            if step > 0:
                earlier = rows[first + step - 1]
                count = table.counts[earlier]
                for j in range(here):
                    onward[j] = seen[step, j] * backward[j]
                words, weights = table.words[earlier, :count], forward[step - 1, :count]
                _step_back(words, weights, table.words[row, :here], onward[:here], backward, powers, model)
    return out


@compiled_part
def _step_forward(
    before: Int32, weights: Float64, words: Int32, chances: Float64, out: Float64, powers: Float64, model: LanguageCosts
) -> None:
    """Compute the weight of each of ``words``, up to a factor: that of the paths to it, times its chance."""
    fallback = 0.0
    for i in range(len(before)):
        fallback += weights[i] * powers[model.beyond[before[i]]]
    for j in range(len(words)):
        out[j] = fallback * powers[model.words[words[j]]]
    for i in range(len(before)):
        if weights[i] < _FAINT:
            continue
        low, end = model.first[before[i]], model.first[before[i] + 1]
        for j in range(len(words)):
            low = find_first_from(words[j], low, end, model.followers)
            if low == end:
                break
            if model.followers[low] == words[j]:
                beyond = powers[model.beyond[before[i]]] * powers[model.words[words[j]]]
                out[j] += weights[i] * max(powers[model.costs[low]] - beyond, 0.0)
    total = 0.0
    for j in range(len(words)):
        out[j] *= chances[j]
        total += out[j]
    for j in range(len(words)):
        out[j] /= total


@compiled_part
def _step_back(
    before: Int32, weights: Float64, words: Int32, onward: Float64, out: Float64, powers: Float64, model: LanguageCosts
) -> None:
    """Compute the weight of the paths after each previous word, up to a factor; ``onward`` is that after ``words``."""
    fallback = 0.0
    for j in range(len(words)):
        fallback += powers[model.words[words[j]]] * onward[j]
    total = 0.0
    for i in range(len(before)):
        back_off = powers[model.beyond[before[i]]]
        sum_of = back_off * fallback
        low, end = model.first[before[i]], model.first[before[i] + 1]
        if weights[i] < _FAINT:
            low = end
        for j in range(len(words)):
            low = find_first_from(words[j], low, end, model.followers)
            if low == end:
                break
            if model.followers[low] == words[j]:
                sum_of += onward[j] * max(powers[model.costs[low]] - back_off * powers[model.words[words[j]]], 0.0)
        out[i] = sum_of
        total += sum_of
    for i in range(len(before)):
        out[i] /= total
