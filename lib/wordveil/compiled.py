"""Loops compiled to machine code with Numba, where NumPy would read the same array several times.

Numba caches the code beside the module or in the user's cache directory, so that only the first process on a machine
compiles. If neither is writable, each process compiles for itself, which takes a few seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.cpython.unsafe import numbers
from numba.extending import intrinsic

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Compile with IEEE arithmetic in the order written: results are the same on every machine."""
    return _njit(function, fastmath=False)


def compiled_part(function: _Function) -> _Function:
    """Compile like :func:`compiled`, without the Python wrapper; saves 20% of compile time."""
    return _njit(function, fastmath=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def inlined(function: _Function) -> _Function:
    """Compile as a part of each caller: a call counts references to arrays, which costs more than reading a word."""
    return _njit(function, fastmath=False, inline="always")


def compiled_bounds(function: _Function) -> _Function:
    """Compile with additions in any order and fused multiply-add: for sums that serve as bounds with room to spare."""
    return _njit(function, fastmath={"reassoc", "contract"})


def _njit(function: _Function, **options: Any) -> _Function:
    try:
        return cast(_Function, njit(cache=True, nogil=True, **options)(function))
    except RuntimeError:  # no place for a cache
        return cast(_Function, njit(nogil=True, **options)(function))


def _larger(context: Any, x: Any, y: Any) -> Any:  # noqa: ARG001 - Numba's signature
    name, kind = {types.float32: ("f32", ir.FloatType()), types.float64: ("f64", ir.DoubleType())}[x]

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        signature = ir.FunctionType(kind, [kind, kind])
        maximum = cgutils.get_or_insert_function(builder.module, signature, f"llvm.maxnum.{name}")  # type: ignore[no-untyped-call]
        return builder.call(maximum, arguments, fastmath=("nnan", "nsz"))

    return x(x, x), generate


larger: Any = intrinsic(_larger)
"""``larger(x, y)`` in compiled code, for two floats but not NaN. Unlike ``max`` it allows vector instructions."""


def _read_eight(_: Any, data: Any, offset: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_point(context, builder, signature, arguments), align=1)

    return types.uint64(data, offset), generate


def _write_eight(_: Any, data: Any, offset: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _point(context, builder, signature, arguments), align=1)

    return types.void(data, offset, word), generate


def _point(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind, width = signature.args[:2]
    array = context.make_array(kind)(context, builder, arguments[0])
    offset = context.cast(builder, arguments[1], width, types.intp)  # Numba 0.62 adds 64 bits to 64 alone
    return cgutils.pointer_add(builder, array.data, offset, ir.IntType(64).as_pointer())  # type: ignore[no-untyped-call]


read_eight: Any = intrinsic(_read_eight)
"""``read_eight(data, offset)`` in compiled code: eight bytes of a contiguous uint8 array as a uint64, the first lowest.
The offset is not checked, here and below.
"""
write_eight: Any = intrinsic(_write_eight)
"""``write_eight(data, offset, word)``: the inverse."""


trailing_zeros: Any = numbers.trailing_zeros
"""``trailing_zeros(word)`` in compiled code: the number of lowest bits that are 0; all for 0."""


@compiled_part
def find_first_from(value: Any, low: Any, high: Any, rising: Any) -> Any:
    """Find the first entry of a rising array from ``low`` to ``high`` that is at least ``value``, or ``high``."""
    while low < high:
        middle = (low + high) // 2
        if rising[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
