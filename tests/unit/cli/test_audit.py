"""`wordveil audit` on the command line: its exit codes, what it prints, keeps and writes."""

from __future__ import annotations

import json

import pytest

from support import toys
from support.repository import ROOT
from support.workspaces import Command
from wordveil.assembly.audits import find_audits, identify_release
from wordveil.assembly.bundles import build_bundle
from wordveil.audit import bundle as bundles
from wordveil.audit.findings import Audit, Finding, Verdict
from wordveil.cli import audit as commands
from wordveil.cli.release_tables import find_gate_failure
from wordveil.config.load import load_config
from wordveil.errors import ConfigError
from wordveil.release.rules import GateRules, Measured, evaluate
from wordveil.report.audit import describe_power, render_audit, verdict_of
from wordveil.spark.release.gate import GateDecision

EXAMPLES = ROOT / "examples"
NAMES = {"--metric": "audited_function:distance", "--words": "audited_function:WORDS", "--seed": "1"}
CALL = ["audit", "callable", "audited_function:replace", *(part for option in NAMES.items() for part in option)]


@pytest.mark.parametrize(("epsilon", "code"), [("1.61", 0), ("1.2", 3)])
def test_the_example_of_the_docs(epsilon, code, monkeypatch, run: Command, tmp_path):
    monkeypatch.chdir(EXAMPLES)
    page, report = tmp_path / "page.html", tmp_path / "report.json"
    told, out, err = run(*CALL, "--epsilon", epsilon, "--json", "--html", page, "--report", report)
    assert (told, "two-phase:nearest" in err) == (code, code == 3)
    found = json.loads(out)
    assert found["passed"] == (code == 0)
    written = json.loads(report.read_text())
    assert (written["exit_code"], written["result"]) == (code, found)
    assert ("Refuted" in page.read_text()) == (code == 3)


def test_mistakes_of_the_command_line_are_told(run: Command):
    words = ("--metric", "operator:ne", "--words", "keyword:kwlist")
    code, _, err = run("audit", "callable", "nowhere:f", *words, "--epsilon", "1")
    assert (code, "there is no module nowhere" in err) == (2, True)
    with pytest.raises(ConfigError, match="--alpha = 1"):
        commands.check_alpha(1.0)


def test_defaults_are_those_of_the_audit():
    assert (commands.ALPHA, commands.DRAWS, commands.SEED) == (bundles.ALPHA, bundles.DRAWS, bundles.SEED)


def test_a_bundle_is_audited_and_the_audit_is_kept(tmp_path, run: Command):
    toys.random_embedding(60, 4).save(tmp_path / "words")
    section = {"name": "tree", "epsilon": 4.0, "sizes": [3], "embedding": str(tmp_path / "words"), "public": True}
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(toys.toy_settings(section, key={"env": "NO_KEY"})), "utf-8")
    assert run("audit", "bundle", "--config", file)[0] == 4  # there is no bundle yet
    config = load_config(file)
    bundle = build_bundle(config)
    assert find_audits(config, bundle.fingerprint) == ()
    code, out, _ = run("audit", "bundle", "--config", file, "--draws", "1000", "--json")
    found = json.loads(out)
    assert (code, found["identity"]) == (0, bundle.fingerprint)
    assert {"supremum", "law", "plumbing"} <= {one["test"] for one in found["findings"]}
    assert find_audits(config, bundle.fingerprint) == ("bundle",)
    assert find_audits(config, "another") == ()
    # What decides an output decides the identity of its audit; where it is read and written does not.
    identity = identify_release(config, "a")
    assert identify_release(config, "another") != identity
    for changes, is_same in ((["input.keep=[day]"], False), (["text.n_max=9"], False), (["release=b"], True)):
        assert (identify_release(load_config(file, ["output.path=b", *changes]), "a") == identity) == is_same


@pytest.mark.parametrize(
    ("passed", "commands_named"), [((), ["bundle", "release"]), (("bundle",), ["release"]), (("release",), ["bundle"])]
)
def test_a_gate_names_the_audits_that_are_missing(passed, commands_named):
    rules = GateRules(audited=("bundle", "release"))
    result = evaluate(rules, Measured(audited=passed))
    decision = GateDecision("news", 3, 4, result, rules.digest, [], {})
    failure = str(find_gate_failure(decision))
    assert "did not pass: audited" in failure
    assert [kind for kind in ("bundle", "release") if f"`wordveil audit {kind}`" in failure] == commands_named
    passed = evaluate(rules, Measured(audited=("release", "bundle")))
    assert find_gate_failure(GateDecision("news", 3, 4, passed, "", [], {})) is None


def made(*findings: Finding) -> Audit:
    return Audit("bundle", "<b>", "ab", {"mechanism": "tree"}, 0.01, findings, ("a <note>",))


def test_a_page_is_escaped_and_says_the_verdict_first():
    weak = Finding("two-phase:random", Verdict.NO_POWER, "claim", "evidence", 9.0, 2.0, 0.5, float("inf"), 10)
    strong = Finding("two-phase:nearest", Verdict.NOT_REFUTED, "claim", "evidence", 1.0, 0.9, 0.5, 1.25, 10)
    false = Finding("supremum", Verdict.REFUTED, "claim", "'<w>' never", 1.0, float("inf"))
    untested = Finding("metric", Verdict.NOT_TESTED, "claim", "evidence")
    page = render_audit(made(false, weak, untested))
    assert page.index("Refuted") < page.index("Findings")
    assert "<b>" not in page.partition("<h1>")[2].partition("</h1>")[0]
    assert "&lt;w&gt;" in page
    assert "infinite" in page
    assert "Not tested: metric" in page
    assert "✓ Not refuted" in render_audit(made(strong))
    assert "Nothing was tested" in render_audit(made(untested))
    verdicts = {"refuted": false, "not refuted": strong, "no power": weak, "nothing was tested": untested}
    assert [verdict_of(made(one)) for one in verdicts.values()] == list(verdicts)
    assert describe_power(strong) == "A loss 1.25 times the claim would have been refuted."
    assert "too large" in describe_power(weak)
    assert describe_power(false) == ""


def test_an_audit_without_power_ends_with_exit_code_3(monkeypatch, run: Command):
    monkeypatch.chdir(EXAMPLES)
    code, out, err = run(*CALL, "--epsilon", "1.61", "--draws", "4", "--json")
    assert (code, json.loads(out)["verdict"]) == (3, "no power")
    assert "so nothing follows" in " ".join(err.split())
