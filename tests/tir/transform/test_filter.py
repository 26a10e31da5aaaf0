"""Functions are kept by a condition."""

from tilewright import tir
from tilewright.ir.module import IRModule
from tilewright.tir.transform.filter import Filter


def test_keeps_what_fits():
    """The rest leave the module; the given module stays as it was."""
    module = IRModule(
        {name: tir.PrimFunc([], tir.Evaluate(0), attrs={"keep": name == "b"}) for name in "abc"}
    )
    kept = Filter(lambda function: function.attrs["keep"])(module)
    assert [variable.name_hint for variable in kept.functions] == ["b"]
    assert len(module.functions) == 3
