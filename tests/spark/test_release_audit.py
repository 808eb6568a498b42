"""Made documents through the whole pipeline on real Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.audits import list_refuted
from support.commands import Commands
from support.releases import EXPONENTIAL, States
from support.workspaces import Workspace
from wordveil.assembly.audits import identify_release, keep_audit
from wordveil.assembly.bundles import find_bundle
from wordveil.audit.bundle import audit_bundle
from wordveil.audit.findings import Audit, Verdict, counts
from wordveil.config.load import Config, load_config
from wordveil.errors import ConfigError, InputError
from wordveil.evaluation.redrawn import BundleSanitiser
from wordveil.spark.evaluate import canaries as module
from wordveil.spark.evaluate.canaries import audit_release
from wordveil.spark.release.gate import run_gate
from wordveil.spark.sanitise import job

WHO = {"column": "who", "as": "pseudonym", "name": "customer"}
COLUMNS = {"text": ["message.subject", "body"], "keep": ["day", "note", WHO], "where": "day > ''"}
STRICT = {"profile": "strict", "n_max": {"message.subject": 4, "body": 8}, "refused": "empty"}
COPIES = 48


def config_of(workspace: Workspace, **sections: Any) -> Config:
    mechanism = {**workspace.settings()["mechanism"], **EXPONENTIAL}
    return workspace.config(mechanism=mechanism, **sections)


def test_a_sound_release(spark: Any, workspace: Workspace, call: Commands):
    """By its command. Several columns, of which one is in a struct, directories, cut files and a condition. Nothing but
    the audit is left, and neither input nor key is there.
    """
    mechanism = {**workspace.settings()["mechanism"], **EXPONENTIAL}
    output = {"partition_by": ["day"], "records_per_file": 500}
    key = {"file": str(workspace.root / "none")}
    file = workspace.write_config(mechanism=mechanism, input=COLUMNS, text=STRICT, output=output, key=key)
    found = Audit.from_dict(call.read("audit", "release", "-c", file, "--copies", COPIES))
    config = load_config(file)
    assert list_refuted(list(found.findings)) == set()
    assert counts(found)
    assert found.identity == identify_release(config, found.facts["bundle"])
    verdicts = {finding.test: finding.verdict for finding in found.findings}
    assert verdicts["canary:layout"] is Verdict.NOT_REFUTED
    assert verdicts["exposes:column:note"] is verdicts["exposes:pseudonym:customer"] is Verdict.HOLDS
    assert not (workspace.root / "output").exists()


def test_audit_release_with_symbols_of_words_holds(spark: Any, workspace: Workspace):
    """The blind bundle draws no symbols: its outputs have no such column."""
    mechanism = {**workspace.settings()["mechanism"], "name": "tree", "epsilon": 5.0, "clusters": [6], "least": 2}
    config = workspace.config(mechanism=mechanism, output={"symbols": True}, text={"profile": "readable"})
    found = audit_release(config, lambda: spark, copies=COPIES)
    assert list_refuted(list(found.findings)) == set()
    assert {finding.test: finding.verdict for finding in found.findings}["canary:columns"] is Verdict.HOLDS


@pytest.mark.long
def test_a_release_that_orders_rows_by_their_texts(spark: Any, workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    def arrange(rows: Any, *_: Any, **__: Any) -> Any:
        return rows.coalesce(1).sortWithinPartitions("privacy.tokens", "id")

    monkeypatch.setattr(job, "arrange_rows", arrange)
    config = config_of(workspace, text={"profile": "readable"})
    found = audit_release(config, lambda: spark, copies=COPIES)
    assert list_refuted(list(found.findings)) == {"canary:layout"}


def test_documents_that_cannot_be_made(workspace: Workspace):
    with pytest.raises(ConfigError, match="--copies = 9: fewer than 48"):
        audit_release(config_of(workspace), no_session, copies=9)
    config = config_of(workspace, text={"stop_words": "drop", "stop_word_list": words_of(workspace), "n_max": 8})
    with pytest.raises(InputError, match="the text policy hides no text"):
        audit_release(config, no_session)


def no_session() -> Any:
    """Nothing needs Spark before the documents are made."""
    pytest.fail("a session was started")


def words_of(workspace: Workspace) -> list[str]:
    """All words of the embedding."""
    from support.workspaces import WORDS

    assert (Path(workspace.root) / "embedding").exists()
    return WORDS


@pytest.mark.long
def test_the_layout_of_the_input_shows(spark: Any, workspace: Workspace):
    """Files are read by their sizes, and the documents' files have other sizes in each table."""
    config = config_of(workspace, output={"order": "input"}, text={"profile": "strict", "n_max": 4})
    sanitiser = BundleSanitiser(module.ready_bundle(config), config.policy)
    inputs = module._make_inputs(config.source, sanitiser, COPIES, 0)
    orders = []
    with module._open_directory(spark, config.output.path) as directory:
        pipeline = module._Pipeline(spark, config.record_settings(""), config.source, config.output, inputs, directory)
        for side in (False, True):
            rows = pipeline.read_input(pipeline.write_input(f"in-{side}", other=side))
            orders.append([row.id for row in rows.select("id").collect()])
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(inputs.ids)
    assert orders[0] != orders[1]


def test_a_gate_requires_the_audit_of_the_bundle_that_drew(spark: Any, released: States):
    config = released.restore("drawn").config(gate={"audited": ["bundle"]})
    refused = run_gate(config, lambda: spark).result
    assert [failure.name for failure in refused.failures] == ["audited"]
    bundle = find_bundle(config)
    assert bundle is not None
    keep_audit(config.bundle_store, audit_bundle(bundle))
    assert run_gate(config, lambda: spark).result.passed
