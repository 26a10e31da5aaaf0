"""Functions are kept by the side on which they run."""

import pytest

from tilewright import tir
from tilewright.ir.function import CallingConv
from tilewright.ir.module import IRModule
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.keep_functions import KeepFunctions


@pytest.mark.parametrize(("side", "kept"), [("host", ["main", "helper"]), ("device", ["kernel"])])
def test_keeps_one_side(side, kept):
    """Kernels are the device's, everything else is the host's."""
    conventions = {
        "main": {"calling_conv": CallingConv.C_PACKED_FUNC},
        "helper": {},
        "kernel": {"calling_conv": CallingConv.DEVICE_KERNEL_LAUNCH},
    }
    module = IRModule(
        {name: tir.PrimFunc([], tir.Evaluate(0), attrs=attrs) for name, attrs in conventions.items()}
    )
    assert [variable.name_hint for variable in KeepFunctions(side)(module).functions] == kept


def test_there_are_two_sides():
    """Another word is an error."""
    with pytest.raises(LoweringError, match="'host' or 'device', not 'gpu'"):
        KeepFunctions("gpu")
