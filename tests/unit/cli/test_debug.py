"""`--debug`: log messages of this package, without values of records."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

from support import toys
from support.commands import Commands, run_page
from support.repository import ROOT
from support.workspaces import Command, Workspace
from wordveil.api import build_bundle
from wordveil.cli.debug import log_frames, start_debugging, stop_debugging
from wordveil.errors import WorkerError
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN
from wordveil.spark.sanitise.worker import BundlePlace, Sanitise

PLANTED = "zqxplantedzqx"


@pytest.mark.parametrize("arguments", [("--debug", "docs", "none"), ("docs", "none", "--debug")], ids=" ".join)
def test_debug_before_or_after_a_command_shows_its_frames(run: Command, arguments: tuple[str, ...]):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "wordveil.cli.scaffold: command docs\n" in err
    assert "ConfigError was raised in\n" in err
    assert "wordveil/cli/docs.py:" in err
    assert "wordveil.cli" not in run("docs", "none")[2], "the next command is not debugged"


def test_no_log_message_has_a_value_of_a_record(workspace: Workspace, caplog: pytest.LogCaptureFixture):
    """Records that are released, refused, or that break the sanitiser."""
    caplog.set_level(logging.DEBUG)
    config = workspace.config()
    bundle = build_bundle(config)
    place = BundlePlace(str(bundle.path), archive=False)
    job = Sanitise(config.record_settings("run"), toys.KEYS, place, bundle.identity)
    batch = pa.record_batch(
        {
            "id": [PLANTED, "b", "c"],
            TEXT_COLUMN: [f"{PLANTED} again", PLANTED * 400, "\x00" + PLANTED],
            REASON_COLUMN: [None, "oversize", None],
            "day": [PLANTED] * 3,
        }
    )
    assert sum(part.num_rows for part in job(iter([batch]))) == 3
    with pytest.raises(WorkerError) as broken:
        list(job(iter([batch.set_column(1, TEXT_COLUMN, pa.array([[PLANTED]] * 3))])))
    start_debugging()
    try:
        log_frames(broken.value)
    finally:
        stop_debugging()
    assert f"opened bundle {bundle.fingerprint}" in caplog.text
    assert "WorkerError was raised in" in caplog.text
    assert PLANTED not in caplog.text


def test_frames_come_without_the_messages_of_errors(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    try:
        try:
            {}[PLANTED]
        except KeyError as error:
            raise ValueError(PLANTED) from error
    except ValueError as error:
        log_frames(error)
    assert "ValueError was raised in" in caplog.text
    assert "KeyError was raised in" in caplog.text
    assert PLANTED not in caplog.text


def test_the_page_on_debugging_runs_from_top_to_bottom(call: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    level = logging.getLogger("wordveil").level
    try:
        run_page(ROOT / "docs" / "debugging.md", {}, call)
    finally:
        logging.getLogger("wordveil").setLevel(level)
