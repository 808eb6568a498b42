"""First passes of the exact search: approximate scores of all words, with a rigorous bound on their error.

A pass only decides which words are scored again in float64, never the answer, so that machines may use different
passes.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from llvmlite.binding import get_host_cpu_features

from wordveil.arrays import Float32, Float64, Int8
from wordveil.errors import PlatformError
from wordveil.neighbours.kernels import (
    Notes,
    float32_queries,
    int8_queries,
    int8_rows,
    lorentz_queries,
    scan_float32,
    scan_int8,
    scan_lorentz,
)

# Which pass to use: `auto`, `float32` or `int8`. It only changes the speed.
VARIABLE = "WORDVEIL_FIRST_PASS"
_UNIT = 2.0**-24
_SMALLEST = 2.0**-149
# Products of whole numbers up to 127 x 127 stay below 2^24, exact in float32, up to this many coordinates.
_INT8_COORDINATES = 2**24 // 127**2
# Vocabularies with fewer coordinates in all are not worth the half second that the product takes to compile.
_INT8_SIZE = 2**20
# Words and queries of a tile: measured best, by 1 to 25 percent, of tiles of 0.5 to 4 MiB at 20,000 x 100 and 54,000 x
# 300.
_FLOAT32_WORDS, _FLOAT32_QUERIES = 512, 768
_INT8_WORDS, _INT8_QUERIES = 2048, 256
_OPENVINO = {
    "INFERENCE_NUM_THREADS": 1,
    "NUM_STREAMS": 1,
    "ENABLE_CPU_PINNING": False,  # otherwise all workers of a machine run on its first core
    "INFERENCE_PRECISION_HINT": "f32",
    # On by default: it rounds its input once more, in groups, and is then wrong in the third digit.
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
}
_INT8_INSTRUCTIONS = ("avx512vnni", "avxvnni", "avxvnniint8")


class Int8Error(PlatformError):
    """The 8-bit pass cannot be used here. The message says why."""


class FirstPass(Protocol):
    """Scores of a block of queries, a tile of words at a time."""

    name: str
    queries: int
    """Queries of a block."""
    tiles: int
    tile_words: int

    def load(self, queries: Float64, notes: Notes) -> bool:
        """Take a block, float64 ``(count, n)``; False where a query is not finite or too long."""

    def multiply(self, tile: int) -> None:
        """Compute the scores of a tile of words for the block."""

    def scan(self, tile: int, start: int, notes: Notes) -> int:
        """Note the tile's words that may be nearest, from query ``start`` on. Returns the query at which the room ran
        out, or the number of queries.
        """


class _BlasPass(FirstPass):
    """A float32 matrix product by NumPy's BLAS, tile by tile."""

    name = "float32"

    def __init__(self, rows: Float32, bytes_allowed: int) -> None:
        self._rows = rows
        self.tile_words = min(len(rows), _FLOAT32_WORDS)
        self.queries = max(1, min(_FLOAT32_QUERIES, bytes_allowed // (4 * self.tile_words)))
        self.tiles = -(-len(rows) // self.tile_words)
        # Kept between calls: new pages for them would cost more than some of the steps. So an instance serves one
        # thread.
        self._loaded = np.empty((self.queries, rows.shape[1]), np.float32)
        self._scores = np.empty(self.queries * self.tile_words, np.float32)
        self._count = 0

    def multiply(self, tile: int) -> None:
        np.matmul(self._loaded[: self._count], self._rows[self._words(tile)].T, out=self._tile(tile))

    def _words(self, tile: int) -> slice:
        return slice(tile * self.tile_words, min((tile + 1) * self.tile_words, len(self._rows)))

    def _tile(self, tile: int) -> Float32:
        words = self._words(tile)
        return self._scores[: self._count * (words.stop - words.start)].reshape(self._count, -1)


class Float32Pass(_BlasPass):
    """The float32 matrix product by NumPy's BLAS.

    For any order of addition, with or without fused multiply-add, the error of a score is at most

        E(z) = gamma(K + 3) * (|z| * max|w| + max|w|^2/2),    gamma(m) = m u / (1 - m u),  u = 2^-24

    (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1; the three extra units cover rounding ``z`` and
    the bias to float32).
    """

    def __init__(self, rows: Float32, half: Float64, bytes_allowed: int) -> None:
        super().__init__(rows, bytes_allowed)
        self._longest = _longest(half)
        terms = rows.shape[1] + 3
        self._gamma = _gamma(terms)
        self._floor = terms * _SMALLEST

    def load(self, queries: Float64, notes: Notes) -> bool:
        self._count = len(queries)
        return float32_queries(queries, self._longest, self._gamma, self._floor, self._loaded, notes.slack, notes.scale)

    def scan(self, tile: int, start: int, notes: Notes) -> int:
        return scan_float32(self._tile(tile), start, tile * self.tile_words, notes)


class LorentzPass(_BlasPass):
    """The float32 product of Lorentz coordinates, with an individual bound on each word's error.

    ``|fl(z.w) - z.w| <= gamma(K + 8) |z| |w|``, as for :class:`Float32Pass`; the extra units cover rounding both sides
    and the bounds themselves. A word far from the origin has long coordinates and a large error, which must not
    apply to the others.
    """

    def __init__(self, rows: Float64, bytes_allowed: int) -> None:
        super().__init__(rows.astype(np.float32), bytes_allowed)
        self._gaps = np.empty(self.queries, np.float32)
        self._factor = _gamma(rows.shape[1] + 8)
        self._row_gap = (np.sqrt(np.einsum("ij,ij->i", rows, rows)) * (1 + 1e-6)).astype(np.float32)

    def load(self, queries: Float64, notes: Notes) -> bool:
        self._count = len(queries)
        return lorentz_queries(queries, self._factor, self._loaded, self._gaps, notes.slack, notes.scale)

    def scan(self, tile: int, start: int, notes: Notes) -> int:
        row_gap = self._row_gap[self._words(tile)]
        return scan_lorentz(self._tile(tile), start, tile * self.tile_words, self._gaps, row_gap, notes)


class Int8Pass(FirstPass):
    """The product of vectors rounded to 8 bits, on the processor's 8-bit instructions, by OpenVINO.

    With ``z = s q + e`` and ``w = t v + f`` for whole vectors ``q`` and ``v`` of entries -127 to 127, Cauchy-Schwarz
    gives

        |z.w - s t (q.v)| = |e.(t v) + z.f| <= |e| |t v| + |z| |f| <= (|e| + rho |z|) max(|t v|, |f| / rho)

    for any ``rho``: one number a query, ``gap``, times one a word, ``row_gap``. ``rho`` is the median of ``|f| / |t
    v|``, where the last step loses little. ``q.v`` is a whole number below 2^24, exact in float32; the float32
    operations that follow err by at most 16 units in the last place of the largest score, twice which is ``slack``.
    """

    name = "int8"

    def __init__(self, rows: Float32, half: Float64) -> None:
        self.queries = _INT8_QUERIES
        self.tiles = max(1, round(len(rows) / _INT8_WORDS))
        self.tile_words = -(-len(rows) // self.tiles)
        self._words = len(rows)
        self._longest = _longest(half)
        whole = np.empty((len(rows), rows.shape[1] - 1), np.int8)
        self._row_step = np.empty(len(rows), np.float32)
        length, gap = np.empty(len(rows)), np.empty(len(rows))
        int8_rows(rows[:, :-1], whole, self._row_step, length, gap)
        self._row_bias = np.ascontiguousarray(rows[:, -1])
        ratio = gap[length > 0] / length[length > 0]
        self._ratio = max(float(np.median(ratio)) if len(ratio) else 0.0, 1e-6)
        self._row_gap = (np.maximum(length, gap / self._ratio) * (1 + 1e-6)).astype(np.float32)
        self._largest_gap = float(self._row_gap.max())
        self._longest = max(self._longest, float(length.max()) * (1 + 1e-6))
        self._loaded = np.zeros((self.queries, rows.shape[1] - 1), np.float32)
        self._steps = np.empty((2, self.queries), np.float32)
        self._scores = np.empty(self.queries * self.tile_words, np.float32)
        tiles = [whole[first : first + self.tile_words] for first in range(0, len(rows), self.tile_words)]
        self._requests = [self._request(tile) for tile in tiles]
        self._count = 0
        self._check(tiles)

    def load(self, queries: Float64, notes: Notes) -> bool:
        self._count = len(queries)
        step, gaps = self._steps
        return int8_queries(
            queries, self._longest, self._largest_gap, self._ratio, self._loaded, step, gaps, notes.slack, notes.scale
        )

    def multiply(self, tile: int) -> None:
        self._requests[tile].infer()

    def scan(self, tile: int, start: int, notes: Notes) -> int:
        first = tile * self.tile_words
        words = slice(first, first + self.tile_words)
        return scan_int8(
            self._tile(min(self.tile_words, self._words - first))[: self._count],
            start,
            first,
            self._steps[0],
            self._steps[1],
            self._row_step[words],
            self._row_bias[words],
            self._row_gap[words],
            notes,
        )

    def _tile(self, words: int) -> Float32:
        return self._scores[: self.queries * words].reshape(self.queries, words)

    def _request(self, whole: Int8) -> Any:
        """OpenVINO's product of ``self._loaded`` and a tile of words, ready to run.

        The rounding step before the product changes nothing, since its input is whole. It tells OpenVINO that 8 bits
        are enough.
        """
        import openvino
        from openvino import opset13

        queries = opset13.parameter(list(self._loaded.shape), openvino.Type.f32)
        low, high = np.float32(-128), np.float32(127)
        narrow = opset13.fake_quantize(queries, low, high, low, high, 256)
        words = opset13.multiply(
            opset13.convert(opset13.constant(whole), "f32"), opset13.constant(np.ones((1, 1), np.float32))
        )
        model = openvino.Model([opset13.matmul(narrow, words, False, True)], [queries], "product")
        request = openvino.Core().compile_model(model, "CPU", _OPENVINO).create_infer_request()
        request.set_input_tensor(openvino.Tensor(self._loaded, shared_memory=True))
        request.set_output_tensor(openvino.Tensor(self._tile(len(whole)), shared_memory=True))
        return request

    def _check(self, tiles: list[Int8]) -> None:
        """Raise :class:`Int8Error` unless the products are those of whole numbers, the largest that can occur among
        them.

        On a processor without 8-bit products libraries may add pairs in 16 bits, which overflow.
        """
        spread = np.arange(self._loaded.size).reshape(self._loaded.shape) * 7919 % 255 - 127
        for number, whole in enumerate(tiles):
            chosen = whole[:: -(-len(whole) // (self.queries // 4))]
            self._loaded[:] = spread
            self._loaded[: len(chosen)] = np.where(chosen < 0, -127, 127)
            self._loaded[len(chosen) : 2 * len(chosen)] = chosen
            self.multiply(number)
            if not np.array_equal(self._tile(len(whole)), self._loaded @ whole.T.astype(np.float32)):
                raise Int8Error("OpenVINO's 8-bit products are not exact on this machine.")
        self._loaded[:] = 0


def choose_first_pass(rows: Float32, half: Float64, bytes_allowed: int, wanted: str | None = None) -> FirstPass:
    """Choose the fastest pass that this machine has, or the one that ``wanted``, or else the variable :data:`VARIABLE`,
    names.

    Raises :class:`PlatformError` for an unknown name, :class:`Int8Error` if ``int8`` is named and cannot be used.
    """
    wanted = wanted or os.environ.get(VARIABLE, "auto")
    if wanted not in ("auto", "float32", "int8"):
        raise PlatformError(f"{VARIABLE} = {wanted}: unknown first pass. Set it to auto, float32 or int8.")
    if wanted == "int8":
        _require_int8(rows, bytes_allowed)
        return Int8Pass(rows, half)
    if wanted == "auto" and rows.size >= _INT8_SIZE:
        # RuntimeError: what OpenVINO raises; ImportError: a library that OpenVINO needs is missing.
        with suppress(Int8Error, ImportError, RuntimeError):
            _require_int8(rows, bytes_allowed)
            return Int8Pass(rows, half)
    return Float32Pass(rows, half, bytes_allowed)


def _require_int8(rows: Float32, bytes_allowed: int) -> None:
    if rows.shape[1] - 1 > _INT8_COORDINATES:
        raise Int8Error(f"The 8-bit pass is exact up to {_INT8_COORDINATES} coordinates.")
    if bytes_allowed < 8 * _INT8_WORDS * _INT8_QUERIES:  # the last tile may be half as large again
        raise Int8Error("The scores of the 8-bit pass take more memory than allowed.")
    if find_spec("openvino") is None:
        raise Int8Error("OpenVINO is not installed. Install it with: pip install 'wordveil[fast]'")
    if not any(get_host_cpu_features().get(name) for name in _INT8_INSTRUCTIONS):
        raise Int8Error("This processor has no instruction for 8-bit products.")


def _longest(half: Float64) -> float:
    """Upper bound of the rows' lengths."""
    return float(np.sqrt(2.0 * half.max())) * (1 + 1e-6)


def _gamma(terms: int) -> float:
    """Upper bound of what ``terms`` roundings to float32 add to 1."""
    return 1.01 * terms * _UNIT / (1 - terms * _UNIT)
