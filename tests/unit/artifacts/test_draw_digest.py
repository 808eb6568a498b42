"""A mechanism of another package that draws something else than when its bundle was built is noticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.toys import laplace_bundle, random_embedding
from wordveil.artifacts.bundle import open_bundle
from wordveil.errors import BundleError
from wordveil.mechanisms.additive.laplace import Laplace
from wordveil.mechanisms.base import TokenBatch
from wordveil.plugins import Registry

EMBEDDING = random_embedding(40, 3)


@pytest.fixture(params=[False, True], ids=["as-is", "padded"])
def foreign(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle whose mechanism is another package's."""
    monkeypatch.setattr(Registry, "package_of", lambda _, name: f"{name}-package 1.0")
    return laplace_bundle(tmp_path, EMBEDDING, 2.0, padding=request.param).path


def shift(batch: TokenBatch) -> TokenBatch:
    """The same batch with one word another."""
    return replace(batch, ids=np.where(np.arange(len(batch.ids)) == 7, 3 - batch.ids % 2, batch.ids).astype(np.int32))


@pytest.mark.parametrize("method", ["draw", "render"])
def test_a_bundle_whose_draws_differ_is_refused(foreign: Path, monkeypatch: pytest.MonkeyPatch, method: str):
    assert open_bundle(foreign).manifest["package"] == "laplace-package 1.0"
    unchanged = getattr(Laplace, method)

    def changed(self: Laplace, batch: TokenBatch, *keys: Any) -> TokenBatch:
        return shift(unchanged(self, batch, *keys))

    monkeypatch.setattr(Laplace, method, changed)
    with pytest.raises(BundleError, match=r"laplace-package 1\.0 no longer draws what it drew.*sampler_version is 2"):
        open_bundle(foreign)


def test_wordveils_own_bundles_have_no_digest(tmp_path: Path):
    assert "draws" not in laplace_bundle(tmp_path, EMBEDDING, 2.0, padding=False).manifest
