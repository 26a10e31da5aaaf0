"""Data types, devices and the kinds of arguments, under the name of the module that TVM has them in."""

from __future__ import annotations

import ctypes

from tilewright.runtime.device import Device
from tilewright.runtime.library import DLTensor as TVMArray
from tilewright.support.dtype import BFLOAT, FLOAT, HANDLE, INT, UINT, DataType

__all__ = [
    "ArgTypeCode",
    "DataType",
    "DataTypeCode",
    "Device",
    "TVMArray",
    "TVMByteArray",
]


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
