"""What names a computation in records: the same in every process, whatever its tensors are called."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.compile.lower import schedule_to_module
from tilewright.ir.structural_hash import structural_hash
from tilewright.te.schedule import create_schedule
from tilewright.te.tensor import Tensor


def fingerprint(arguments: Sequence[Tensor], outputs: Sequence[Tensor]) -> str:
    """A digest of the loops that compute the outputs without any schedule. Computations that differ in the names of
    their tensors only have the same."""
    plain = create_schedule([tensor.op for tensor in outputs])
    function = schedule_to_module(plain, arguments, "main")["main"]
    return f"{structural_hash(function) & ((1 << 64) - 1):016x}"
