"""Commands that need no Java: their results, and the errors that come before Spark starts, with their exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.workspaces import EMBEDDING, KEY, Command, Workspace, corpus
from wordveil.errors import GateError


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java is out of reach."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("JAVA_HOME", "")


def test_build_reports_what_it_built(workspace: Workspace, run: Command):
    config = workspace.write_config()
    code, out, err = run("build", "--config", config, "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["words"] == 300
    assert facts["epsilon"] == facts["nominal_epsilon"] == 4.0
    assert facts["epsilon_pure_per_token"] == pytest.approx(4.0 * facts["diameter"])
    assert (workspace.root / "bundles" / facts["fingerprint"] / "manifest.json").exists()
    code, out, _ = run("build", "--config", config)
    assert code == 0
    assert facts["fingerprint"][:8] in out
    assert "words recovered" in out
    assert f"{100 * facts['recovery']['frequency']['after'][0]['at_least']:.3g}%" in out


def test_plan_reads_the_schema_and_prices_the_public_length(workspace: Workspace, run: Command):
    """The files hold a footer and damaged data: a plan that read a row would fail."""
    path = workspace.write_corpus(corpus(2000)) / "part-0.parquet"
    raw = bytearray(path.read_bytes())
    raw[4:2000] = b"\0" * 1996
    path.write_bytes(raw)
    config = workspace.write_config()
    code, out, err = run("plan", "--config", config, "--json")
    assert code == 0, err
    assert json.loads(out)["epsilon_bound"] is None
    built = json.loads(run("build", "--config", config, "--json")[1])
    plan = json.loads(run("plan", "--config", config, "--json")[1])
    assert plan["columns"] == {"id": "string", "body": "string", "day": "string"}
    assert plan["tokens"] == 24
    assert plan["epsilon_pure"] == plan["epsilon_bound"] == pytest.approx(24 * built["epsilon_pure_per_token"])
    assert plan["recovery"] == built["recovery"]
    assert plan["recovery"]["frequency"]["after"][0]["at_most"] is None  # laplace: only a bound is known
    assert (plan["relation"], plan["exposes"]) == ("any_text", ["presence", "column:day"])


def test_a_sentence_is_compared_without_key_or_bundle(workspace: Workspace, run: Command):
    workspace.write_corpus(corpus(5))
    mechanism = {"name": "exponential", "epsilon": 4.0, "gamma": 2.0, "neighbours": 5}
    file = workspace.write_config(mechanism=mechanism, key={"file": "/none"})
    sentence = " ".join(EMBEDDING.words[:6].to_pylist())
    code, out, err = run("plan", "--config", file, "--text", sentence, "--compare", "--json")
    assert code == 0, err
    comparison = json.loads(out)["comparison"]
    assert comparison["configured"]["mechanism"] == "exponential, gamma 2, neighbours 5"
    shown = {line["mechanism"].split(",")[0] for line in comparison["equal_pure"]}
    assert shown >= {"tree", "staircase", "exponential", "laplace"}
    assert all(len(line["text"].split()) == 6 for line in comparison["equal_kept"])
    code, out, _ = run("plan", "--config", file, "--compare", "--json")
    assert code == 2
    assert json.loads(out)["faults"][0]["where"] == "--compare"
    code, out, _ = run("plan", "--config", file, "--text", sentence, "--json")
    assert code == 4
    assert "wordveil build" in json.loads(out)["message"]


def test_two_texts_are_measured_against_each_other(workspace: Workspace, run: Command):
    workspace.write_corpus(corpus(5))
    config = workspace.write_config()
    first, second = (" ".join(EMBEDDING.words[part].to_pylist()) for part in (slice(0, 3), slice(2, 5)))
    asked = ("plan", "--config", config, "--text", first, "--against", second)
    code, out, _ = run(*asked, "--json")
    assert code == 4
    assert "Run `wordveil build` first" in json.loads(out)["message"]
    assert run("build", "--config", config)[0] == 0
    code, out, err = run(*asked, "--json")
    assert code == 0, err
    found = json.loads(out)["text_distance"]
    assert (found["texts"], found["tokens"]) == ([first, second], [24, 24])
    assert 0 < found["bag_bound"] <= found["epsilon_bound"] <= json.loads(out)["epsilon_bound"]
    page = workspace.root / "plan.html"
    code, out, err = run(*asked, "--html", page)
    assert code == 0, err
    assert "Which word goes to which" in out
    assert "times as likely for one of the texts as for the other" in page.read_text()
    signed = workspace.root / "sign-off.html"
    code, _, err = run("plan", "--config", config, "--sign-off", signed)
    assert code == 0
    assert f"{signed}: to print and sign" in err
    assert "4 for each unit of distance" in signed.read_text()
    assert run("plan", "--config", config, "--sign-off", signed)[0] == 6
    code, out, _ = run("plan", "--config", config, "--against", second, "--json")
    assert code == 2
    assert json.loads(out)["faults"][0]["where"] == "--against"


def test_keys_are_made_and_identified(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "release.key"
    made = json.loads(run("key", "new", file, "--json")[1])
    digits = file.read_text().strip()
    told = run("key", "fingerprint", "--file", file, "--json")
    assert json.loads(told[1])["fingerprint"] == made["fingerprint"]
    monkeypatch.setenv("SOME_KEY", digits)
    by_name = run("key", "fingerprint", "--env", "SOME_KEY", "--json")
    assert json.loads(by_name[1])["fingerprint"] == made["fingerprint"]
    again = run("key", "new", file, "--json")
    assert again[0] == 5
    assert "never overwritten" in json.loads(again[1])["message"]
    assert run("key", "fingerprint")[0] == 5
    for _, out, err in (told, by_name, again):
        assert digits not in out + err


def test_errors_come_before_spark_with_their_codes(workspace: Workspace, run: Command):
    workspace.write_corpus(corpus(3))
    config = workspace.write_config(build_missing=False)

    def code(*overrides: str) -> int:
        arguments = [part for override in overrides for part in ("--set", override)]
        return run("sanitise", "--config", config, *arguments)[0]

    assert code("mechanism.epsilon=0") == code("nonsense") == 2
    assert run("sanitise", "--config", config, "--run-id", "../x")[0] == 2
    assert code("key.file=/none") == code("key={env: NO_SUCH_KEY}") == 5
    assert "NO_SUCH_KEY" in run("sanitise", "--config", config, "--set", "key={env: NO_SUCH_KEY}")[2]
    assert code() == 4  # no bundle
    assert code("build_missing=true", "mechanism.embedding=/none") == 4
    assert code("build_missing=true", "mechanism.frequencies=/none") == 4
    assert run("sanitise", "--config", "/none.yaml")[0] == run("sanitize")[0] == 2


def test_without_java_spark_is_not_started_and_nothing_written(workspace: Workspace, tmp_path: Path):
    """In a process of its own: a session that other tests have started would serve the command."""
    workspace.write_corpus(corpus(3))
    home = tmp_path / "home"
    home.mkdir()
    for command in (("quickstart",), ("sanitise", "--config", str(workspace.write_config()))):
        done = subprocess.run(
            [sys.executable, "-m", "wordveil", *command], cwd=home, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (7, "")
        assert "Spark needs Java, and no java was found on the PATH" in done.stderr
        assert "Traceback" not in done.stderr
        assert KEY not in done.stderr
        assert list(home.iterdir()) == []


@pytest.mark.parametrize("submitted", [False, True])
def test_failing_gate_under_spark_submit_leaves_one_document(
    run: Command, submitted: bool, monkeypatch: pytest.MonkeyPatch
):
    """spark-submit writes both streams to its standard output: what reads JSON there must find nothing else."""

    def gate(**_: object) -> None:
        print('{"passed": false}')
        raise GateError("gate: it did not pass.")

    monkeypatch.setattr("wordveil.cli.app.app", gate)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    if submitted:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    code, out, err = run("release", "gate", "--json")
    assert code == 3
    assert json.loads(out) == {"passed": False}
    assert ("did not pass" in err) is not submitted


def test_a_missing_pyspark_is_named(workspace: Workspace):
    """Where it is missing the package cannot be imported, as if it were hidden."""
    workspace.write_corpus(corpus(3))
    arguments = ["sanitise", "--config", str(workspace.write_config())]
    code = f"import sys; sys.modules['pyspark'] = None; from wordveil.cli.app import main; main({arguments!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "")
    assert done.stderr.startswith("wordveil: PySpark is not installed. Install it with: pip install")
