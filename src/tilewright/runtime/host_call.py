"""A call of a graph with NumPy arrays at the cost of one C call, which is most of what calling a small model takes."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.runtime.failure import check, failure
from tilewright.runtime.library import LIBRARY, DLTensor
from tilewright.runtime.ndarray import NDArray, numpy_dtype, numpyasarray


class HostCall:
    """Calls a graph with arrays that have the types and the shapes of its inputs.

    The arrays are described to C once; a call only writes down where they are.
    """

    def __init__(
        self,
        graph: int,
        owner: object,
        inputs: Mapping[str, tuple[int, NDArray]],
        outputs: Mapping[str, NDArray],
    ) -> None:
        """``graph`` is an address in the C runtime, good as long as its owner lives. An input has a position, and a
        tensor of its type and shape; outputs are in the graph's order. ``TypeError`` where NumPy does not have one of
        the types."""
        self._graph = graph
        self._owner = owner
        self._positions = (ctypes.c_int32 * len(inputs))(*[position for position, _ in inputs.values()])
        self._inputs = _Arrays({name: tensor for name, (_, tensor) in inputs.items()})
        self._outputs = _Arrays(outputs)
        self._idle = threading.Lock()

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]] | None:
        """The outputs by name, as new arrays; None, and nothing has happened, where an input is anything but a
        contiguous array of exactly the model's type and shape, or another call is going on."""
        if not self._idle.acquire(blocking=False):
            return None  # it has the descriptions
        try:
            return self._call(inputs)
        finally:
            self._idle.release()

    def _call(self, inputs: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]] | None:
        kept = []  # another thread may take arrays out of the dictionary while C reads them
        for name, shape, dtype, described in self._inputs.each:
            value = inputs[name]
            if type(value) is not np.ndarray or value.dtype != dtype or value.shape != shape:
                return None
            if not value.flags.c_contiguous:
                return None
            described.data = value.ctypes.data
            kept.append(value)
        made: dict[str, npt.NDArray[Any]] = {}
        for name, shape, dtype, described in self._outputs.each:
            made[name] = result = np.empty(shape, dtype)
            described.data = result.ctypes.data
        check(
            LIBRARY.tilewright_graph_call(
                self._graph,
                len(self._positions),
                self._positions,
                self._inputs.described,
                len(made),
                self._outputs.described,
            )
        )
        return made


class _Arrays:
    """Descriptions of NumPy arrays that are like some tensors, without memory so far: all as one array of C's, and each
    with its name, its shape and its type."""

    def __init__(self, tensors: Mapping[str, NDArray]) -> None:
        kinds = [(name, tensor.shape, _dtype_of(tensor)) for name, tensor in tensors.items()]
        self._models = [numpyasarray(np.empty(shape, dtype)) for _, shape, dtype in kinds]  # keep the extents
        self.described = (DLTensor * len(kinds))(*self._models)
        self.each = [(*kind, one) for kind, one in zip(kinds, self.described, strict=True)]


def _dtype_of(tensor: NDArray) -> np.dtype[Any]:
    """NumPy's type of a tensor's elements; an error for vectors, and for what is packed more tightly than in NumPy."""
    element = tensor.dtype
    found = numpy_dtype(element)
    if element.lanes > 1 or element.is_handle or (8 * found.itemsize != element.bits and not element.is_bool):
        raise failure("TypeError", f"NumPy has no type for {element}")
    return found
