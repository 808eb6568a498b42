"""Digest of draws for public symbols under a public key, which detects changed code of a mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from wordveil.crypto.keys import MasterKey
from wordveil.errors import BundleError
from wordveil.mechanisms.base import Mechanism, MechanismArtifact, TokenBatch

_RECORDS, _TOKENS = 64, 4
_KEYS = MasterKey(bytes(range(32))).for_release("draws")  # no secret: nothing private is drawn


def digest_built(
    mechanism: type[Mechanism[Any]], content: Mapping[str, Any], built: MechanismArtifact, directory: Path
) -> str:
    """Digest the draws of a ``built`` mechanism, with its files in ``directory``. ``content``: that of the bundle's
    manifest.
    """
    files = {name: directory / name for name in built.files}
    return _digest_draws(mechanism.load(content["size"], built.parameters, built.arrays, files), content)


def check_draws(mechanism: Mechanism[Any], manifest: Mapping[str, Any], path: Path) -> None:
    """Raise :class:`BundleError` if another package's mechanism draws differently than when its bundle was built.
    wordveil's own have golden outputs, which its tests compare.
    """
    wanted, content = manifest.get("draws"), manifest["content"]
    if wanted and wanted != _digest_draws(mechanism, content):
        raise BundleError(
            f"{path}: {manifest['package']} no longer draws what it drew when this bundle was built, though "
            f"sampler_version is {content['sampler_version']} as before. Install the version of that time here and on "
            "every executor; or let the package raise sampler_version, and build in another store."
        )


def _digest_draws(mechanism: Mechanism[Any], content: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of what ``mechanism`` draws and writes for 256 symbols. It is empty for a mechanism that
    reads a text as a whole, which may draw texts of some lengths alone.
    """
    if mechanism.reads_context:
        return ""
    size = content["size"]
    width = min(_TOKENS, mechanism.max_tokens)
    symbols = np.linspace(0, size - 1, _RECORDS * width).astype(np.int32)
    symbols[:: 2 * width] = size + 1
    if content["padding"]:
        symbols[width :: 2 * width] = size
    numbers = np.arange(_RECORDS, dtype="<u8")
    contexts = np.zeros((_RECORDS, 12), np.uint8)
    contexts[:, :8] = numbers[:, None].view(np.uint8)
    drawn = mechanism.draw(TokenBatch(symbols, width * np.arange(_RECORDS + 1), contexts), _KEYS)
    digest = sha256()
    for batch in (drawn, mechanism.render(drawn)):
        digest.update(np.ascontiguousarray(batch.ids, "<i4").tobytes())
    return digest.hexdigest()
