"""Short names of array types, and read-only views."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Bool = NDArray[np.bool_]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt8 = NDArray[np.uint8]
UInt32 = NDArray[np.uint32]
UInt64 = NDArray[np.uint64]

_Array = TypeVar("_Array", bound=NDArray[Any])


def freeze(array: _Array) -> _Array:
    """Return a read-only view, as of a bundle's arrays: Numba compiles a loop again for writable ones."""
    view = array.view()
    view.flags.writeable = False
    return view
