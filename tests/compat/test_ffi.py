"""The registry under its other name."""

import ctypes
import sys
import types

import numpy as np

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


def test_structures_of_c() -> None:
    """Bytes and tensors as C functions take them: fields of the names, the order and the sizes of DLPack's."""
    content = (ctypes.c_byte * 3)(1, 2, 3)
    given = _ffi.runtime_ctypes.TVMByteArray(ctypes.cast(content, ctypes.POINTER(ctypes.c_byte)), 3)
    assert given.size == 3 and given.data[:3] == [1, 2, 3]
    assert ctypes.sizeof(given) == 2 * ctypes.sizeof(ctypes.c_void_p)
    described = _ffi.runtime_ctypes.TVMArray(ndim=2)
    assert described.ndim == 2 and not described.data and described.byte_offset == 0
    array = tvm.nd.array(np.arange(6, dtype="int16").reshape(2, 3))
    seen = _ffi.runtime_ctypes.TVMArray.from_address(array.handle)
    assert (seen.ndim, seen.shape[0], seen.shape[1]) == (2, 2, 3)
    assert (seen.dtype.code, seen.dtype.bits, seen.dtype.lanes) == (
        _ffi.runtime_ctypes.DataTypeCode.INT,
        16,
        1,
    )
    assert seen.device.device_type == 1
    values = ctypes.cast(seen.data + seen.byte_offset, ctypes.POINTER(ctypes.c_int16))
    assert values[:6] == [0, 1, 2, 3, 4, 5]
