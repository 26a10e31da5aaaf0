"""Packed functions: one way to call compiled code, C functions and Python callables, in every direction.

Arguments may be arrays (NDArray, NumPy, anything with ``__dlpack__``: no copy), numbers, strings, bytes, None, devices,
data types, ctypes pointers and packed functions. Any other Python object passes through unchanged to a function that
is written in Python. A Python function may keep an NDArray that it receives. For any other tensor it receives a view
of the caller's memory, which is valid until it returns.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
import types
import weakref
from collections.abc import Callable
from contextlib import suppress
from ctypes import c_int64, c_void_p
from typing import Any

import numpy as np

from tilewright.runtime.device import Device
from tilewright.runtime.dlpack import borrowed_tensor, is_read_only, request_capsule, unversioned_tensor
from tilewright.runtime.failure import check, failure, keep_exception, take_failure
from tilewright.runtime.library import (
    FUNCTION_TYPE,
    LIBRARY,
    QUICK,
    RELEASE_TYPE,
    ByteArray,
    DLTensor,
    address_of,
)
from tilewright.runtime.ndarray import (
    READ_ONLY_FLAG,
    NDArray,
    data_type_of,
    dtype_of_numpy,
    from_dlpack,
    numpyasarray,
)
from tilewright.runtime.reference import HoldsReference
from tilewright.support.dtype import DataType

# Type indices of values; see tilewright.h. A value is two words: the index, then its content.
_NONE, _INT, _BOOL, _FLOAT, _POINTER, _DATA_TYPE, _DEVICE, _DLTENSOR, _C_STRING, _BYTE_ARRAY = range(10)
_SMALL_STRING, _SMALL_BYTES = 11, 12
_FIRST_OBJECT, _STRING, _BYTES, _FUNCTION, _TENSOR, _PYTHON = 64, 65, 66, 68, 70, 74

_PACKERS = [struct.Struct(f"<{2 * count}q").pack for count in range(33)]
_TWO_WORDS = c_int64 * 2

# Twice as quick as one with argument types, and what is passed needs none: c_void_p, bytes, a small int, an array.
_QUICK_CALL = ctypes.CFUNCTYPE(ctypes.c_int32)
_pack_double = struct.Struct("<d").pack
_unpack_double = struct.Struct("<d").unpack
_pack_word = struct.Struct("<q").pack
_unpack_word = struct.Struct("<q").unpack
_FUNCTION_CALL = address_of("tilewright_function_call")

Kept = list[object]
"""What must stay alive until a call has returned."""


def _nothing() -> None:
    """For functions that run no Python callable."""


class PackedFunc(HoldsReference):
    """A function with the common calling convention."""

    __slots__ = (
        "__weakref__",
        "_address",
        "_call",
        "_handle",
        "_keep",
        "_self",
        "_self_pointer",
        "is_global",
        "is_python",
        "name",
        "wraps",
    )

    def __init__(
        self,
        address: int,
        self_address: int = 0,
        *,
        name: str = "",
        keep_alive: object = None,
        handle: int = 0,
    ) -> None:
        """A C function at ``address``, called with ``self_address``; takes over the reference ``handle``, if any."""
        self._address = address
        self._self = self_address
        self._call = _QUICK_CALL(address)
        self._self_pointer = c_void_p(self_address)
        self._keep = keep_alive
        self._handle = handle
        self.name = name
        self.is_global = False
        self.is_python = False
        #: The Python callable that it runs, while that is alive.
        self.wraps: Callable[[], Any] = _nothing

    @classmethod
    def from_handle(cls, handle: int, name: str = "") -> PackedFunc:
        """A function object of the C runtime; takes over one reference."""
        return cls(_FUNCTION_CALL, handle, name=name, handle=handle)

    @property
    def handle(self) -> int:
        """The function object, made when first used: C code refers to it."""
        if not self._handle:
            self._handle = _make_function(self._address, self._self, self._keep)
        return self._handle

    @property
    def address(self) -> int:
        """The C function."""
        return self._address

    @property
    def self_address(self) -> int:
        """What the C function is called with as its ``self``."""
        return self._self

    def __call__(self, *args: Any) -> Any:
        packed, kept = pack_arguments(args)
        result = _TWO_WORDS()
        status = self._call(self._self_pointer, packed, len(args), result)
        kept.clear()  # and not before: the arguments live here
        if status:
            raise take_failure()
        return None if result[0] == _NONE else decode_owned(result)

    def __del__(self) -> None:
        if QUICK is not None and getattr(self, "_handle", None):
            QUICK.tilewright_object_release(self._handle)

    def __repr__(self) -> str:
        return f"PackedFunc({self.name or hex(self._address)})"


# ---- Python values to words ----


def pack_arguments(args: tuple[Any, ...]) -> tuple[bytes, Kept]:
    """The arguments as C sees them, and what must stay alive meanwhile."""
    words: list[int] = []
    kept: Kept = []
    for value in args:
        if type(value) is NDArray:
            words += (value._tag, value._handle)
        else:
            words += _encode(value, kept)
    count = len(args)
    pack = _PACKERS[count] if count < len(_PACKERS) else struct.Struct(f"<{2 * count}q").pack
    return pack(*words), kept


def _encode(value: Any, kept: Kept) -> tuple[int, int]:
    """The two words of an argument."""
    encoder = _ENCODERS.get(type(value))
    if encoder is not None:
        return encoder(value, kept)
    for kind, encoder in _ENCODERS.items():
        if isinstance(value, kind):
            return encoder(value, kept)
    if hasattr(value, "__dlpack__"):
        return _encode_dlpack(value, kept)
    if hasattr(value, "__index__"):
        return _encode_int(value.__index__(), kept)
    return _encode_python(value, kept)


def _encode_ndarray(value: NDArray, kept: Kept) -> tuple[int, int]:
    return value._tag, value._handle


def _encode_int(value: Any, kept: Kept) -> tuple[int, int]:
    number = int(value)
    if not -(1 << 63) <= number < 1 << 63:
        raise failure("OverflowError", f"the integer argument {number} does not fit in 64 bits")
    return _INT, number


def _encode_bool(value: Any, kept: Kept) -> tuple[int, int]:
    return _BOOL, int(value)


def _encode_float(value: Any, kept: Kept) -> tuple[int, int]:
    return _FLOAT, _unpack_word(_pack_double(value))[0]


def _encode_none(value: None, kept: Kept) -> tuple[int, int]:
    return _NONE, 0


def _encode_text(value: str, kept: Kept) -> tuple[int, int]:
    if "\0" in value:  # a C string would end there
        return _borrow_result(value, kept)
    text = ctypes.c_char_p(value.encode())
    kept.append(text)
    return _C_STRING, ctypes.cast(text, c_void_p).value or 0


def _encode_bytes(value: bytes | bytearray, kept: Kept) -> tuple[int, int]:
    content = (ctypes.c_char * max(1, len(value))).from_buffer_copy(bytes(value) or b"\0")
    described = ByteArray(ctypes.addressof(content), len(value))
    kept += (content, described)
    return _BYTE_ARRAY, ctypes.addressof(described)


def _encode_device(value: Device, kept: Kept) -> tuple[int, int]:
    return _DEVICE, value.device_type | value.device_id << 32


def _encode_dtype(value: DataType, kept: Kept) -> tuple[int, int]:
    return _DATA_TYPE, value.type_code | value.bits << 8 | value.lanes << 16


def _encode_numpy_dtype(value: np.dtype[Any], kept: Kept) -> tuple[int, int]:
    return _encode_dtype(dtype_of_numpy(value), kept)


def _encode_numpy(value: np.ndarray[Any, Any], kept: Kept) -> tuple[int, int]:
    if value.dtype.kind not in "iufb":  # NumPy exchanges its own types only
        described = numpyasarray(value)
        kept += (value, described)
        kind = _DLTENSOR if value.flags.writeable else _DLTENSOR | READ_ONLY_FLAG
        return kind, ctypes.addressof(described)
    if not value.flags.writeable or not value.dtype.isnative:
        return _encode_dlpack(value, kept)
    capsule = value.__dlpack__()
    kept.append(capsule)
    return _DLTENSOR, unversioned_tensor(capsule)


def _encode_dlpack(value: Any, kept: Kept) -> tuple[int, int]:
    capsule = request_capsule(value)
    kept.append(capsule)
    kind = _DLTENSOR | READ_ONLY_FLAG if is_read_only(capsule) else _DLTENSOR
    return kind, borrowed_tensor(capsule)


def _encode_pointer(value: Any, kept: Kept) -> tuple[int, int]:
    kept.append(value)
    address = ctypes.cast(value, c_void_p).value or 0
    return _POINTER, address - (1 << 64) if address >= 1 << 63 else address


def _encode_function(value: PackedFunc, kept: Kept) -> tuple[int, int]:
    kept.append(value)
    return _FUNCTION, value.handle


def _encode_callable(value: Callable[..., Any], kept: Kept) -> tuple[int, int]:
    return _encode_function(convert_to_tvm_func(value), kept)


def _encode_python(value: Any, kept: Kept) -> tuple[int, int]:
    return _borrow_result(value, kept)


class _Owned(HoldsReference):
    """A value that holds a reference to an object."""

    __slots__ = ("words",)

    def __init__(self, words: Any) -> None:
        self.words = words

    def __del__(self) -> None:
        if QUICK is not None:
            QUICK.tilewright_any_release(self.words)


def _borrow_result(value: Any, kept: Kept) -> tuple[int, int]:
    """Words of a value that needs an object of its own during a call."""
    words = _TWO_WORDS()
    _encode_result(value, words)
    kept.append(_Owned(words))
    return words[0], words[1]


# Exact types first; subclasses are tried in this order, bool before int.
_ENCODERS: dict[type, Callable[[Any, Kept], tuple[int, int]]] = {
    NDArray: _encode_ndarray,
    bool: _encode_bool,
    np.bool_: _encode_bool,
    int: _encode_int,
    np.integer: _encode_int,
    float: _encode_float,
    np.floating: _encode_float,
    type(None): _encode_none,
    DataType: _encode_dtype,
    str: _encode_text,
    bytes: _encode_bytes,
    bytearray: _encode_bytes,
    np.ndarray: _encode_numpy,
    Device: _encode_device,
    np.dtype: _encode_numpy_dtype,
    PackedFunc: _encode_function,
    c_void_p: _encode_pointer,
    ctypes._Pointer: _encode_pointer,
    type(LIBRARY.tilewright_host).__mro__[1]: _encode_pointer,  # any function pointer of ctypes
    types.FunctionType: _encode_callable,
    types.BuiltinFunctionType: _encode_callable,
    types.MethodType: _encode_callable,
}


# ---- Words to Python values ----


def _view(words: Any, address: int) -> NDArray:
    """An array over a DLTensor of the caller, valid during the call."""
    handle = c_void_p()
    check(
        LIBRARY.tilewright_tensor_wrap(
            ctypes.cast(address, ctypes.POINTER(DLTensor)), None, None, ctypes.byref(handle)
        )
    )
    view = NDArray(handle.value or 0, bool(words[0] & READ_ONLY_FLAG))
    view.borrowed = True
    return view


def _characters(words: Any) -> bytes:
    data, size = c_void_p(), ctypes.c_size_t()
    check(QUICK.tilewright_get_bytes(words, ctypes.byref(data), ctypes.byref(size)))
    return ctypes.string_at(data.value, size.value) if data.value and size.value else b""


def _decode(words: Any) -> Any:
    """The Python value of two words. A reference in them is neither taken nor dropped."""
    kind, content = words[0] & 0xFFFFFFFF, words[1]
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise failure("TypeError", f"a value of type index {kind} has no Python equivalent")
    return decoder(words, content)


def _retained(make: Callable[[int], Any]) -> Callable[[Any, int], Any]:
    def decode(words: Any, content: int) -> Any:
        QUICK.tilewright_object_retain(content)
        return make(content)

    return decode


def _tensor(words: Any, content: int) -> NDArray:
    QUICK.tilewright_object_retain(content)
    return NDArray(content, bool(words[0] & READ_ONLY_FLAG))


_DECODERS: dict[int, Callable[[Any, int], Any]] = {
    _NONE: lambda words, content: None,
    _INT: lambda words, content: content,
    _BOOL: lambda words, content: content != 0,
    _FLOAT: lambda words, content: _unpack_double(_pack_word(content))[0],
    _POINTER: lambda words, content: c_void_p(content),
    _DATA_TYPE: lambda words, content: data_type_of(
        content & 0xFF, content >> 8 & 0xFF, content >> 16 & 0xFFFF
    ),
    _DEVICE: lambda words, content: Device(content & 0xFFFFFFFF, content >> 32),
    _DLTENSOR: _view,
    _C_STRING: lambda words, content: _characters(words).decode(),
    _SMALL_STRING: lambda words, content: _characters(words).decode(),
    _STRING: lambda words, content: _characters(words).decode(),
    _BYTE_ARRAY: lambda words, content: _characters(words),
    _SMALL_BYTES: lambda words, content: _characters(words),
    _BYTES: lambda words, content: _characters(words),
    _TENSOR: _tensor,
    _FUNCTION: _retained(PackedFunc.from_handle),
    _PYTHON: lambda words, content: _objects[QUICK.tilewright_opaque_handle(content)],
}


def decode_owned(words: Any) -> Any:
    """The Python value of a result, whose reference is dropped."""
    if words[0] < _FIRST_OBJECT:
        return _decode(words)
    try:
        return _decode(words)
    finally:
        QUICK.tilewright_any_release(words)


def register_object_type(
    type_index: int, kind: type, make: Callable[[int], Any], handle_of: Callable[[Any], int]
) -> None:
    """Make objects of the C runtime with a type index appear as values of a class: ``make`` takes over a reference,
    ``handle_of`` gives the object of a value."""
    _DECODERS[type_index] = _retained(make)
    _ENCODERS[kind] = lambda value, kept: (type_index, handle_of(value))
    OBJECT_TYPES[kind] = (type_index, handle_of)


_HANDLE_KINDS: dict[int, int] = {3: _POINTER, 7: _DLTENSOR}
"""From TVM's numbers of the kinds of arguments that are an address (``ArgTypeCode``) to those of this convention."""

_FIRST_OWN_KIND = 15
"""From this number on (``ArgTypeCode.EXT_BEGIN``) users number kinds of their own."""


def register_extension(cls: type, fcreate: Callable[..., Any] | None = None) -> type:
    """Let values of a class be passed to packed functions: the attribute ``_tvm_handle`` of a value is the address that
    is passed, and ``_tvm_tcode`` of the class says what is there, a tensor (``DLTENSOR_HANDLE``) or anything
    (``HANDLE``, or a code of one's own). ``fcreate`` is not used: no function returns such a value."""
    code: Any = getattr(cls, "_tvm_tcode", None)
    own = isinstance(code, int) and code >= _FIRST_OWN_KIND
    if code not in _HANDLE_KINDS and not own:
        raise failure(
            "ValueError",
            f"{cls.__name__}._tvm_tcode is {code!r}: an extension type is passed as a DLTENSOR_HANDLE (7) or a "
            f"HANDLE (3), or has a code of its own from {_FIRST_OWN_KIND} on",
        )
    kind = _POINTER if own else _HANDLE_KINDS[int(code)]

    def encode(value: Any, kept: Kept) -> tuple[int, int]:
        kept.append(value)
        return kind, _encode_pointer(c_void_p(value._tvm_handle), kept)[1]

    _ENCODERS[cls] = encode
    return cls


OBJECT_TYPES: dict[type, tuple[int, Callable[[Any], int]]] = {}
"""The classes that ``register_object_type`` was called with."""


# ---- Python callables as function objects ----

_objects: dict[int, Any] = {}
"""What C code refers to: callables, kept-alive owners and opaque values, by number."""

_numbers = itertools.count(1)


def _forget(number: int) -> None:
    _objects.pop(number, None)


_forget_callback = RELEASE_TYPE(_forget)
_FORGET = ctypes.cast(_forget_callback, c_void_p).value


def _hold(value: Any) -> int:
    number = next(_numbers)
    _objects[number] = value
    return number


def _make_function(address: int, self_address: int, owner: object) -> int:
    """A function object around a C function; the owner lives as long as the object."""
    handle = c_void_p()
    check(
        LIBRARY.tilewright_function_create(address, self_address, _hold(owner), _FORGET, ctypes.byref(handle))
    )
    return handle.value or 0


def _encode_result(value: Any, words: Any) -> None:
    """Writes an owned value: objects in it carry a reference of their own."""
    if isinstance(value, DataType):
        words[0], words[1] = _encode_dtype(value, [])
    elif isinstance(value, str):
        text = value.encode()
        check(QUICK.tilewright_make_string(text, len(text), words))
    elif isinstance(value, (bytes, bytearray)):
        check(QUICK.tilewright_make_bytes(bytes(value), len(value), words))
    elif isinstance(value, (NDArray, np.ndarray)) or hasattr(value, "__dlpack__"):
        tensor = value if isinstance(value, NDArray) else from_dlpack(value)
        if tensor.borrowed:  # the memory may be freed before the caller reads the result
            tensor = tensor.copyto(tensor.device)
        QUICK.tilewright_object_retain(tensor._handle)
        words[0], words[1] = tensor._tag, tensor._handle
    elif isinstance(value, PackedFunc) or type(value) in _CALLABLE_TYPES:
        function = convert_to_tvm_func(value)
        QUICK.tilewright_object_retain(function.handle)
        words[0], words[1] = _FUNCTION, function.handle
    elif value is None or isinstance(value, _PLAIN_TYPES):
        words[0], words[1] = _encode(value, [])
    elif type(value) in OBJECT_TYPES:
        words[0], handle_of = OBJECT_TYPES[type(value)]
        words[1] = handle_of(value)
        QUICK.tilewright_object_retain(words[1])
    else:
        check(QUICK.tilewright_make_opaque(_hold(value), _forget_callback, words))


_PLAIN_TYPES = (bool, int, float, np.bool_, np.integer, np.floating, Device, np.dtype, c_void_p)
_CALLABLE_TYPES = tuple(kind for kind, encoder in _ENCODERS.items() if encoder is _encode_callable)


def _trampoline(number: int, args: int, count: int, result: int) -> int:
    """Runs a Python callable for C code."""
    try:
        values = (_TWO_WORDS * count).from_address(args) if count else ()
        _encode_result(
            _objects[number](*[_decode(words) for words in values]), _TWO_WORDS.from_address(result)
        )
    except BaseException as error:  # noqa: BLE001 - it continues on the other side of the C code
        keep_exception(error)
        return -1
    return 0


_trampoline_callback = FUNCTION_TYPE(_trampoline)
_TRAMPOLINE = ctypes.cast(_trampoline_callback, c_void_p).value or 0


def convert_to_tvm_func(pyfunc: Callable[..., Any]) -> PackedFunc:
    """A packed function that runs a Python callable; one that is packed already is returned as it is."""
    if isinstance(pyfunc, PackedFunc):
        return pyfunc
    number = _hold(pyfunc)
    handle = c_void_p()
    check(LIBRARY.tilewright_function_create(_TRAMPOLINE, number, number, _FORGET, ctypes.byref(handle)))
    made = PackedFunc.from_handle(handle.value or 0, getattr(pyfunc, "__name__", ""))
    made.is_python = True
    with suppress(TypeError):  # what cannot be referred to weakly is not looked at
        made.wraps = weakref.ref(pyfunc)
    return made
