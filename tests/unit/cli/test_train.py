"""What ``wordveil train`` shows while it runs."""

from __future__ import annotations

import pytest

from wordveil.cli.train import show_training


def test_a_training_without_a_terminal_tells_each_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    place = {"epoch": 1, "rewarded": True, "seconds": 150.0}
    with show_training() as (_, observe):
        observe({**place, "step": 480, "loss": 2.25}, 2000)
        observe({**place, "step": 500, "validation_loss": 1.5, "validation_accuracy": 0.75}, 2000)
    shown = capsys.readouterr().err.splitlines()
    assert shown == ["step 500 of at most 2,000, with the reward: validation loss 1.500, accuracy 75.0%; 2.5 minutes"]
