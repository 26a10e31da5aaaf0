"""Names of TVM's ``_ffi`` and ``runtime.object_generic`` that nothing here needs: numbers, decorators and C structures
that scripts import."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, PrimExpr
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.registry import get_global_func, list_global_func_names
from tilewright.support.dtype import BFLOAT, FLOAT, HANDLE, INT, UINT
from tilewright.support.node import Object
from tilewright.support.span import Span

string_types = (str,)
integer_types = (int, np.int32)
numeric_types = (float, int, np.float16, np.float32, np.int32)


def py_str(x: Any) -> str:
    """The text of bytes."""
    return str(x.decode("utf-8"))


def c_str(string: str) -> Any:
    """Bytes that C reads as a string."""
    return string.encode("utf-8")


def register_object(type_key: Any = None) -> Any:
    """A decorator for classes of objects. Classes are plain Python here, so nothing needs to be registered."""
    if isinstance(type_key, type):
        return type_key
    return lambda cls: cls


def _init_api(namespace: str, target_module_name: str | None = None) -> None:
    """Puts the functions that are registered below a namespace into a module, under the rest of their names."""
    module = sys.modules[target_module_name or namespace]
    prefix = f"{namespace.removeprefix('tvm.')}."
    for name in list_global_func_names():
        rest = name.removeprefix(prefix)
        if name.startswith(prefix) and rest.isidentifier():
            setattr(module, rest, get_global_func(name))


def cast(src: ExprLike, dtype: str, span: Span | None = None) -> PrimExpr:
    """``tir.generic.cast``: the value as another type."""
    return operators.cast(dtype, src, span)


class ObjectGeneric:
    """A value whose ``asobject`` returns its object in a program; ``convert`` calls it."""

    __slots__ = ()

    def asobject(self) -> Any:
        """The object for this value."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it becomes an object")


ObjectTypes = (ObjectGeneric, Object, NDArray, Module)
"""What packed functions take beside numbers, texts and functions."""


class ObjectRValueRef:
    """An object that its owner gives away: a function that is called with it may write it in place."""

    __slots__ = ("obj",)

    def __init__(self, obj: Any) -> None:
        self.obj = obj


def extract_ext_funcs(finit: Callable[[Any], int]) -> dict[str, Any]:
    """The functions that a library declares: ``finit`` is called with a function that it calls with each name and
    function, and returns 0."""
    found: dict[str, Any] = {}

    def declare(name: str, function: Any) -> None:
        found[name] = function

    if finit(declare) != 0:
        raise RuntimeError(f"cannot initialize with {finit}")
    return found


class DataTypeCode:
    """DLPack's numbers for the kinds of data types."""

    INT = INT
    UINT = UINT
    FLOAT = FLOAT
    HANDLE = HANDLE
    BFLOAT = BFLOAT


class ArgTypeCode:
    """TVM's numbers for the kinds of arguments of packed functions."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    NULL = 4
    TVM_TYPE = 5
    DLDEVICE = 6
    DLTENSOR_HANDLE = 7
    OBJECT_HANDLE = 8
    MODULE_HANDLE = 9
    PACKED_FUNC_HANDLE = 10
    STR = 11
    BYTES = 12
    NDARRAY_HANDLE = 13
    OBJECT_RVALUE_REF_ARG = 14
    EXT_BEGIN = 15


class TVMByteArray(ctypes.Structure):
    """Bytes by address and length."""

    _fields_ = (("data", ctypes.POINTER(ctypes.c_byte)), ("size", ctypes.c_size_t))
