"""The forecast of what budgets refuse agrees with the night that follows, before it and after it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from support.releases import Lake
from support.workspaces import WORDS, Workspace
from wordveil.assembly.bundles import build_bundle
from wordveil.records.sanitiser import release_terms
from wordveil.release.budgets import AuthorRecords, RefusalForecast, RefusedGroup
from wordveil.spark.input.source import open_input
from wordveil.spark.release.forecast import count_authors, forecast_refusals

AUTHORS = [*["often"] * 70, *["seldom"] * 40, *[None] * 3]


def test_forecast_refusals_agrees_with_the_night(spark: Any, workspace: Workspace):
    """Records of two words, by visible lengths, with room for 50 of an author. Ids rise with the day."""
    lake = Lake(spark, workspace)
    ids = [f"r{number:03d}" for number in range(len(AUTHORS))]
    columns = {"id": ids, "body": [" ".join(WORDS[:2])] * len(ids), "author": AUTHORS}
    # The name of a kept column is also one of admission.
    lake.write(pa.table({**columns, "tokens": [*["early"] * 40, *["late"] * 73]}))
    sections = {"input": {"author": "author", "keep": ["tokens"]}, "text": {"profile": "strict", "length": "as_is"}}
    bundle = build_bundle(lake.config(**sections))
    limit = 50 * 2 * bundle.guarantee.pure
    budgets = {"unit": "pure", "relation": "same_length", "author": limit, "delta": 1e-6}
    config = lake.config(**sections, budgets=budgets)
    assert config.budget is not None
    terms = release_terms(config.record_settings(""), bundle)

    def forecast() -> tuple[RefusalForecast, AuthorRecords | None]:
        table = open_input(spark, config.source)
        return forecast_refusals(table, config.budget, config.home, terms, [2] * 7)

    found = forecast()
    refused = {"null_author": 3, "over_author_budget": 20}
    worst = (RefusedGroup("tokens", "late", 73, 23),)
    authors = AuthorRecords(2, 40, 70, 70)
    assert found == (RefusalForecast(113, refused, authors=1, most_refused=worst, by_sample=True), authors)
    assert count_authors(open_input(spark, config.source)) == authors
    assert lake.run(config).refused == refused
    assert forecast() == found, "what was drawn stays, and the others find no room again"
