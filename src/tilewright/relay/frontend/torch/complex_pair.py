"""Complex tensors as two tensors: Relay has no complex element types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright.relay.expr import Constant, TupleWrapper
from tilewright.relay.frontend.torch.node import Expr, Operand
from tilewright.runtime import ndarray

COMPLEX_TYPES: Final = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
"""PyTorch's complex element types, and those of their parts."""


@dataclass(frozen=True, eq=False)
class ComplexPair:
    """A complex tensor, or number, by its real and its imaginary part, which have one shape and type."""

    real: Operand
    imag: Operand

    @property
    def parts(self) -> tuple[Operand, Operand]:
        """The real part, then the imaginary one."""
        return self.real, self.imag

    @property
    def tensors(self) -> tuple[Expr, Expr]:
        """The parts of a tensor."""
        real, imag = self.parts
        assert isinstance(real, Expr) and isinstance(imag, Expr)
        return real, imag

    def each(self, function: Callable[[Operand], Operand]) -> ComplexPair:
        """A function of both parts."""
        return ComplexPair(function(self.real), function(self.imag))


def is_complex_type(dtype: Any) -> bool:
    """True for a complex element type, by its name or as PyTorch has it."""
    return str(dtype).removeprefix("torch.") in COMPLEX_TYPES


def has_complex(given: Any) -> bool:
    """True if a value, or an item of a nested one, is a complex tensor or a complex element type."""
    if isinstance(given, (list, tuple)):
        return any(has_complex(item) for item in given)
    if isinstance(given, Mapping):
        return any(has_complex(item) for item in given.values())
    return isinstance(given, ComplexPair) or (isinstance(given, str) and given in COMPLEX_TYPES)


def constant_pair(tensor: Any) -> ComplexPair:
    """A complex tensor of PyTorch's as a constant."""
    found: np.ndarray[Any, Any] = tensor.detach().cpu().resolve_conj().resolve_neg().numpy()
    parts = (np.ascontiguousarray(part) for part in (found.real, found.imag))
    real, imag = (Constant(ndarray.array(part)) for part in parts)
    return ComplexPair(real, imag)


def paired(real: Any, imag: Any) -> Any:
    """Complex tensors from results for each part: a tensor, or as many as the results have."""
    if isinstance(real, TupleWrapper):
        real, imag = ([one[place] for place in range(one.size)] for one in (real, imag))
    if isinstance(real, (list, tuple)):
        return [paired(one, other) for one, other in zip(real, imag, strict=True)]
    return ComplexPair(real, imag)
