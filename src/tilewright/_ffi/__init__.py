"""Functions that are known by name, under the name of the package that TVM has them in."""

from tilewright._ffi import base, registry, runtime_ctypes
from tilewright._ffi.base import register_error
from tilewright._ffi.registry import (
    _init_api,
    get_global_func,
    list_global_func_names,
    register_func,
    register_object,
    remove_global_func,
)
from tilewright._ffi.runtime_ctypes import DataType, DataTypeCode, Device
