"""What ``wordveil calibrate`` refuses before anything is read, and what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from support.calibrations import EPSILONS, make_calibration
from wordveil.assembly.calibration import Request, Target
from wordveil.cli.app import app
from wordveil.cli.calibrate import FIGURES_NOTE, print_calibration
from wordveil.errors import ConfigError, OutputExistsError, WordveilError

SETTINGS: dict[str, Any] = {
    "format_version": 2,
    "release": "support",
    "input": {"path": "in", "id": "id", "text": "body"},
    "mechanism": {"name": "tree", "sizes": [20], "embedding": "demo", "public": True},
    "bundle_store": "bundles",
    "text": {"n_max": 64},
    "key": {"env": "NO_SUCH_KEY"},
    "output": {"path": "out"},
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(SETTINGS))
    return path


def run(*arguments: object) -> BaseException | None:
    return CliRunner().invoke(app, ["calibrate", *map(str, arguments)]).exception


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, r"--epsilon: is required, or --target or --match: there is no default"),
        ({"epsilon": "1,two"}, r"--epsilon = two: is no number above 0\. Write e\.g\. --epsilon 1,2,5"),
        ({"epsilon": "0"}, r"--epsilon = 0: is no number above 0"),
        ({"epsilon": "1,-2"}, r"--epsilon = -2: is no number above 0"),
        ({"epsilon": "inf"}, r"--epsilon = inf: is no number above 0"),
        ({"epsilon": "nan"}, r"--epsilon = nan: is no number above 0"),
        ({"epsilon": ""}, r"--epsilon: is no number above 0"),
        ({"target": ["kept=0.3"]}, r"--target = kept=0\.3: should be NAME=VALUE.* of share_kept, pure_epsilon"),
        ({"target": ["share_kept"]}, r"--target = share_kept: should be NAME=VALUE.*a share between 0 and 1"),
        ({"target": ["share_kept=30"]}, r"share_kept=30 to be a share between 0 and 1"),
        ({"target": ["bayes_recovery=0"]}, r"bayes_recovery=0 to be a share between 0 and 1"),
        ({"target": ["pure_epsilon=-1"]}, r"to be a positive loss in nats"),
        ({"target": ["pure_epsilon=inf"]}, r"to be a positive loss in nats"),
        ({"epsilon": "1", "threshold": 1.0}, r"--threshold = 1: should be a probability from 0 to less than 1"),
        ({"epsilon": "1", "by": "average"}, r"--by = average: should be one of worst_n_w, bayes_recovery"),
    ],
)
def test_what_cannot_be_asked_for_is_said_at_once(given: dict[str, Any], said: str):
    with pytest.raises(ConfigError, match=said):
        Request(Path("no-such-file.yaml"), **given).check()


def test_all_faults_are_said_together():
    with pytest.raises(ConfigError) as raised:
        Request(Path("job.yaml"), epsilon="x,1", target=["y"], by="z").check()
    assert [fault.where for fault in raised.value.faults] == ["--epsilon", "--target", "--by"]


def test_what_can_be_asked_for_is_read():
    request = Request(Path("job.yaml"), (), "5, 1,2,5", ["share_kept = 0.3", "pure_epsilon=50"], Path("a/b.yaml"))
    request.check()
    assert request.epsilons == (1.0, 2.0, 5.0)
    assert request.targets == (Target("share_kept", 0.3), Target("pure_epsilon", 50.0))
    assert request.by == "worst_n_w"


def test_the_configuration_needs_no_epsilon_and_no_key(config: Path):
    assert Request(config, epsilon="6,8").load().mechanism.nominal_epsilon == 6.0
    assert Request(config, target=["share_kept=0.3"]).load().mechanism.nominal_epsilon > 0
    with pytest.raises(ConfigError, match=r"mechanism\.epsilon = 2000"):
        Request(config, epsilon="6,2000").load()


def test_a_vocabulary_that_is_not_public_is_refused(config: Path):
    settings = {**SETTINGS, "mechanism": {**SETTINGS["mechanism"], "public": False, "frequencies": "counts.csv"}}
    config.write_text(yaml.safe_dump(settings))
    with pytest.raises(ConfigError, match="made from the private corpus break the guarantee"):
        Request(config, epsilon="1").load()


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["--epsilon", "1", "--html", "{config}"], OutputExistsError),
        (["--epsilon", "1", "--match", "none.yaml"], ConfigError),
        (["--epsilon", "1", "--threshold", "1"], ConfigError),
    ],
)
def test_the_command_refuses_before_it_measures(
    config: Path, arguments: list[str], kind: type[WordveilError], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wordveil.assembly.bundles.read_files", lambda *_: pytest.fail("public files were read"))
    assert isinstance(run("-c", config, *(one.format(config=config) for one in arguments)), kind)


def test_a_table_has_a_line_for_each_epsilon(capsys: pytest.CaptureFixture[str]):
    print_calibration(make_calibration())
    printed = capsys.readouterr()
    assert "share_kept=0.3 needs epsilon 2.85 (2.81 to 2.9" in printed.out
    rows = [line.split("│")[1].strip() for line in printed.out.splitlines() if line.startswith("│")]
    for epsilon in EPSILONS:
        assert rows.count(f"{epsilon:g}") == 3, "a line in each table, and no line is broken"
    assert "≥19.5%" in printed.out
    assert "11.8%" in printed.out
    assert FIGURES_NOTE in printed.err
    assert "K_w is defined by this package." in printed.err
