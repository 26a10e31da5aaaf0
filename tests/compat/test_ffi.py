"""The registry under its other name."""

import sys
import types

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


def test_a_module_gets_the_functions_of_its_namespace() -> None:
    """``_init_api`` puts registered functions into a module, under what follows the namespace."""
    module = types.ModuleType("tests_ffi_api")
    sys.modules[module.__name__] = module
    tvm.register_func("tests.ffi.api.thrice", lambda x: 3 * x, override=True)
    _ffi._init_api("tests.ffi.api", module.__name__)
    assert module.thrice(5) == 15


def test_kinds_by_number() -> None:
    """The numbers of data types are DLPack's, under TVM's names."""
    code = _ffi.runtime_ctypes.DataTypeCode
    assert (code.INT, code.UINT, code.FLOAT, code.HANDLE, code.BFLOAT) == (0, 1, 2, 3, 4)
    assert tvm.DataType("uint8x4").type_code == code.UINT
    assert _ffi.runtime_ctypes.ArgTypeCode.STR == 11
    assert isinstance("x", _ffi.base.string_types) and isinstance(1, _ffi.base.numeric_types)
    assert _ffi.base.py_str(_ffi.base.c_str("text")) == "text"
