"""The registry under its other name."""

import tilewright as tvm
from tilewright import _ffi


def test_functions_are_the_same() -> None:
    """What is registered by one name is found by the other; classes pass through."""

    @_ffi.register_func("tests.ffi.twice", override=True)
    def twice(x: int) -> int:
        return 2 * x

    assert tvm.get_global_func("tests.ffi.twice")(4) == 8
    assert "tests.ffi.twice" in _ffi.registry.list_global_func_names()
    _ffi.remove_global_func("tests.ffi.twice")
    assert _ffi.get_global_func("tests.ffi.twice", allow_missing=True) is None
    assert _ffi.base.TVMError is tvm.TVMError and _ffi.runtime_ctypes.Device is tvm.Device

    @_ffi.register_object("tests.Thing")
    class Thing:
        pass

    assert _ffi.register_object(Thing) is Thing
