"""Records of other languages in a job and in a release: told by their texts, or by a column."""

from __future__ import annotations

import pyarrow as pa
import pytest

from support.releases import Lake
from support.repository import needs
from support.workspaces import Workspace, read_output
from wordveil.errors import ConfigError
from wordveil.spark.sanitise.job import run_sanitise

pytestmark = needs("py3langid")
ROWS = {
    "english": ("the train was late again last night", "en"),
    "tagged": ("the train was late again last night", "de"),
    "short": ("ok thanks", None),
    "german": ("Der Zug hatte gestern wieder eine halbe Stunde Verspätung.", None),
    "korean": ("부산으로 가는 기차가 어제 저녁에 또 늦었습니다.", ""),
    "claimed": ("Поезд в Москву вчера вечером опять опоздал.", "en-GB"),
}


def corpus() -> pa.Table:
    texts, languages = zip(*ROWS.values(), strict=True)
    columns = {"id": [*ROWS], "body": texts, "day": ["d"] * len(ROWS), "lang": pa.array(languages, pa.string())}
    return pa.table(columns)


def reasons(workspace: Workspace) -> dict[str, str | None]:
    return {row["id"]: row["reason"] for row in read_output(workspace.root / "output")}


@pytest.mark.parametrize("column", ["lang", None])
def test_a_job_refuses_records_of_other_languages(spark, workspace: Workspace, column: str | None):
    workspace.write_corpus(corpus())
    source = {"language": column} if column else {}
    config = workspace.config(text={"other_language": "quarantine", "n_max": 12}, input=source)
    report = run_sanitise(config, lambda: spark)
    others = ("german", "korean", "tagged") if column else ("german", "korean", "claimed")
    assert reasons(workspace) == {name: "other_language" if name in others else None for name in ROWS}
    assert report.quarantined == {"other_language": 3}
    assert "lang" not in read_output(workspace.root / "output")[0]


def test_a_column_of_languages_must_be_there_and_hold_strings(spark, workspace: Workspace):
    workspace.write_corpus(corpus().append_column("number", pa.array([1] * len(ROWS))))
    for name, fault in (("langs", "Did you mean lang"), ("number", "must be strings")):
        config = workspace.config(text={"other_language": "mask", "n_max": 12}, input={"language": name})
        with pytest.raises(ConfigError, match=fault):
            run_sanitise(config, lambda: spark)


@pytest.mark.long
def test_release_draws_a_record_again_when_language_is_corrected(spark, workspace: Workspace):
    lake = Lake(spark, workspace)
    lake.write(corpus())
    config = lake.config(text={"other_language": "quarantine", "n_max": 12}, input={"language": "lang"})
    lake.run(config)
    first = {name: row["reason"] for name, row in lake.newest().items()}
    assert first["tagged"] == "other_language"
    assert first["claimed"] is None
    lake.sql(
        "UPDATE {input} SET lang = CASE id WHEN 'claimed' THEN 'ru' ELSE 'en' END WHERE id IN ('claimed', 'tagged')"
    )
    lake.run(config)
    second = {name: row["reason"] for name, row in lake.newest().items()}
    assert second == {**first, "tagged": None, "claimed": "other_language"}
