"""The C runtime, loaded, with the prototypes of what Python calls.

``LIBRARY`` releases the interpreter lock around calls, so that compiled code runs while other Python threads do.
``QUICK`` is the same library without that, for calls that only read or set a few words.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from functools import cache

from tilewright.support.cbuild import runtime_library


class DLDevice(ctypes.Structure):
    """DLPack's device: a kind and an index."""

    _fields_ = (("device_type", c_int32), ("device_id", c_int32))


class DLDataType(ctypes.Structure):
    """DLPack's data type."""

    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLTensor(ctypes.Structure):
    """DLPack's tensor description, as compiled functions receive it."""

    _fields_ = (
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class Size(ctypes.Structure):
    """A factor and the arguments of a kernel that it is multiplied with; ``TilewrightSize`` of tilewright.h."""

    _fields_ = (("factor", c_int64), ("arguments", c_int32 * 4))


class TensorDescription(ctypes.Structure):
    """A tensor as described to a copy engine; ``TilewrightTensor`` of tilewright.h."""

    _fields_ = (
        ("base", c_void_p),
        ("dtype", DLDataType),
        ("rank", c_int32),
        ("dims", c_uint64 * 5),
        ("strides", c_uint64 * 5),
        ("box", ctypes.c_uint32 * 5),
        ("element_strides", ctypes.c_uint32 * 5),
        ("interleave", c_int32),
        ("swizzle", c_int32),
        ("promotion", c_int32),
        ("fills_nan", c_int32),
    )


class TensorMapDescription(ctypes.Structure):
    """A tensor map among the parameters of a kernel; ``TilewrightTensorMap`` of tilewright.h."""

    _fields_ = (
        ("position", c_int32),
        ("base", c_int32),
        ("offset", c_int64),
        ("dims", Size * 5),
        ("strides", Size * 5),
        ("tensor", TensorDescription),
    )


class KernelDescription(ctypes.Structure):
    """How a kernel of a device module is called; ``TilewrightKernel`` of tilewright.h."""

    _fields_ = (
        ("name", c_char_p),
        ("arg_types", POINTER(DLDataType)),
        ("num_args", c_int32),
        ("num_axes", c_int32),
        ("axes", POINTER(c_char_p)),
        ("has_shared_bytes", c_int32),
        ("launch_flags", ctypes.c_uint32),
        ("num_tensor_maps", c_int32),
        ("tensor_maps", POINTER(TensorMapDescription)),
    )


class KernelNeeds(ctypes.Structure):
    """The resources that a kernel needs on a device; ``TilewrightKernelNeeds`` of tilewright.h."""

    _fields_ = (
        ("registers", c_int32),
        ("local_bytes", c_int32),
        ("shared_bytes", c_int32),
        ("max_threads", c_int32),
        ("blocks_per_multi_processor", c_int32),
    )


class ByteArray(ctypes.Structure):
    """Bytes with a length, as a function argument."""

    _fields_ = (("data", c_void_p), ("size", c_size_t))


OBJECT_HEADER_BYTES = 24
"""The DLTensor of a tensor object begins this far into it."""

FUNCTION_TYPE = ctypes.CFUNCTYPE(c_int32, c_void_p, c_void_p, c_int32, c_void_p)
"""A packed function: self, arguments, their number, result; 0 for success."""

RELEASE_TYPE = ctypes.CFUNCTYPE(None, c_void_p)
"""Called with a handle that is no longer referenced."""

_PROTOTYPES: dict[str, tuple[object, tuple[object, ...]]] = {
    "tilewright_object_retain": (None, (c_void_p,)),
    "tilewright_object_release": (None, (c_void_p,)),
    "tilewright_any_release": (None, (c_void_p,)),
    "tilewright_make_string": (c_int32, (c_char_p, c_size_t, c_void_p)),
    "tilewright_make_bytes": (c_int32, (c_char_p, c_size_t, c_void_p)),
    "tilewright_get_bytes": (c_int32, (c_void_p, POINTER(c_void_p), POINTER(c_size_t))),
    "tilewright_make_opaque": (c_int32, (c_void_p, RELEASE_TYPE, c_void_p)),
    "tilewright_opaque_handle": (c_void_p, (c_void_p,)),
    "tilewright_set_error": (None, (c_char_p, c_char_p)),
    "tilewright_set_error_format": (None, (c_char_p, c_char_p, POINTER(c_int64), c_int32)),
    "tilewright_check_tensors": (c_int32, (c_void_p, c_int32, POINTER(c_int64), c_char_p)),
    "tilewright_set_error_payload": (None, (c_uint64,)),
    "tilewright_error_kind": (c_char_p, ()),
    "tilewright_error_message": (c_char_p, ()),
    "tilewright_error_payload": (c_uint64, ()),
    "tilewright_clear_error": (None, ()),
    "tilewright_function_create": (c_int32, (c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_void_p))),
    "tilewright_function_call": (c_int32, (c_void_p, c_void_p, c_int32, c_void_p)),
    "tilewright_register_function": (c_int32, (c_char_p, c_void_p, c_int32)),
    "tilewright_get_function": (c_void_p, (c_char_p,)),
    "tilewright_remove_function": (c_int32, (c_char_p,)),
    "tilewright_list_functions": (c_void_p, ()),
    "tilewright_free_text": (None, (c_void_p,)),
    "tilewright_call_packed": (c_int32, (c_char_p, c_void_p, c_void_p, c_int32, c_void_p)),
    "tilewright_bind_function": (c_int32, (c_void_p, c_void_p)),
    "tilewright_register_system_symbol": (c_int32, (c_char_p, c_void_p)),
    "tilewright_system_symbol": (c_void_p, (c_char_p,)),
    "tilewright_device_register": (c_int32, (c_int32, c_void_p)),
    "tilewright_device_flags": (ctypes.c_uint32, (c_int32,)),
    "tilewright_device_table": (c_void_p, (c_int32,)),
    "tilewright_device_attribute": (c_int32, (DLDevice, c_int32, c_void_p)),
    "tilewright_stream_create": (c_int32, (DLDevice, POINTER(c_void_p))),
    "tilewright_stream_free": (c_int32, (DLDevice, c_void_p)),
    "tilewright_stream_set": (c_int32, (DLDevice, c_void_p)),
    "tilewright_stream_sync": (c_int32, (DLDevice, c_void_p)),
    "tilewright_stream_current": (c_int32, (DLDevice, POINTER(c_void_p))),
    "tilewright_stream_wait": (c_int32, (DLDevice, c_void_p, c_void_p)),
    "tilewright_module_load": (c_int32, (DLDevice, c_void_p, c_size_t, POINTER(c_void_p))),
    "tilewright_module_unload": (c_int32, (DLDevice, c_void_p)),
    "tilewright_module_function": (c_int32, (DLDevice, c_void_p, c_char_p, POINTER(c_void_p))),
    "tilewright_launch": (
        c_int32,
        (
            DLDevice,
            c_void_p,
            POINTER(c_void_p),
            c_int32,
            POINTER(c_int32),
            POINTER(c_int32),
            ctypes.c_uint32,
            c_void_p,
        ),
    ),
    "tilewright_set_device": (c_int32, (DLDevice,)),
    "tilewright_current_device": (c_int32, (c_int32,)),
    "tilewright_device_module_create": (
        c_int32,
        (c_int32, c_char_p, c_size_t, POINTER(KernelDescription), c_int32, POINTER(c_void_p)),
    ),
    "tilewright_device_module_release": (None, (c_void_p,)),
    "tilewright_device_module_needs": (
        c_int32,
        (c_void_p, c_char_p, c_int32, ctypes.c_uint32, POINTER(KernelNeeds)),
    ),
    "tilewright_device_module_function": (c_int32, (c_void_p, c_char_p, POINTER(c_void_p))),
    "tilewright_tensor_create": (
        c_int32,
        (POINTER(c_int64), c_int32, DLDataType, DLDevice, POINTER(c_void_p)),
    ),
    "tilewright_tensor_wrap": (c_int32, (POINTER(DLTensor), c_void_p, c_void_p, POINTER(c_void_p))),
    "tilewright_tensor_from_dlpack": (c_int32, (c_void_p, POINTER(c_void_p))),
    "tilewright_tensor_from_dlpack_versioned": (c_int32, (c_void_p, POINTER(c_void_p))),
    "tilewright_tensor_to_dlpack": (c_void_p, (c_void_p,)),
    "tilewright_tensor_to_dlpack_versioned": (c_void_p, (c_void_p,)),
    "tilewright_capsule_destructor": (c_void_p, (c_void_p, c_void_p)),
    "tilewright_tensor_copy": (c_int32, (c_void_p, c_void_p)),
    "tilewright_tensor_read": (c_int32, (c_void_p, c_void_p)),
    "tilewright_tensor_write": (c_int32, (c_void_p, c_void_p)),
    "tilewright_workspace_alloc": (c_void_p, (c_int32, c_int32, c_uint64)),
    "tilewright_workspace_free": (c_int32, (c_int32, c_int32, c_void_p)),
    "tilewright_parallel_launch": (c_int32, (c_void_p, c_void_p, c_int32)),
    "tilewright_num_threads": (c_int32, ()),
    "tilewright_config_threads": (c_int32, (c_int32, c_int32)),
    "tilewright_cpu_has_feature": (c_int32, (c_char_p,)),
    "tilewright_time_function": (
        c_int32,
        (c_void_p, c_void_p, c_void_p, c_int32, c_int32, c_int32, c_int32, c_void_p, POINTER(c_double)),
    ),
    "tilewright_time_function_on": (
        c_int32,
        (
            DLDevice,
            c_void_p,
            c_void_p,
            c_void_p,
            c_int32,
            c_int32,
            c_int32,
            c_int32,
            c_void_p,
            POINTER(c_double),
        ),
    ),
    "tilewright_call_log_create": (c_int32, (POINTER(c_void_p),)),
    "tilewright_call_log_release": (None, (c_void_p,)),
    "tilewright_call_log_watch": (c_int32, (c_void_p, c_void_p, c_int64, POINTER(c_void_p))),
    "tilewright_call_log_clear": (None, (c_void_p,)),
    "tilewright_call_log_words": (POINTER(c_int64), (c_void_p, POINTER(c_size_t))),
    "tilewright_host": (c_void_p, ()),
    "tilewright_graph_create": (c_int32, (c_char_p, c_size_t, c_void_p, c_void_p, POINTER(c_void_p))),
    "tilewright_graph_create_on": (
        c_int32,
        (c_char_p, c_size_t, c_void_p, c_void_p, POINTER(DLDevice), c_int32, POINTER(c_void_p)),
    ),
    "tilewright_graph_release": (None, (c_void_p,)),
    "tilewright_graph_num_inputs": (c_int32, (c_void_p,)),
    "tilewright_graph_num_outputs": (c_int32, (c_void_p,)),
    "tilewright_graph_num_nodes": (c_int32, (c_void_p,)),
    "tilewright_graph_arena_bytes": (c_uint64, (c_void_p,)),
    "tilewright_graph_input_index": (c_int32, (c_void_p, c_char_p)),
    "tilewright_graph_input_name": (c_char_p, (c_void_p, c_int32)),
    "tilewright_graph_output_index": (c_int32, (c_void_p, c_char_p)),
    "tilewright_graph_output_name": (c_char_p, (c_void_p, c_int32)),
    "tilewright_graph_input_device": (c_int32, (c_void_p, c_int32, POINTER(DLDevice))),
    "tilewright_graph_node_index": (c_int32, (c_void_p, c_char_p)),
    "tilewright_graph_node_name": (c_char_p, (c_void_p, c_int32)),
    "tilewright_graph_input": (c_int32, (c_void_p, c_int32, POINTER(c_void_p))),
    "tilewright_graph_output": (c_int32, (c_void_p, c_int32, POINTER(c_void_p))),
    "tilewright_graph_node_output": (c_int32, (c_void_p, c_int32, c_int32, POINTER(c_void_p))),
    "tilewright_graph_set_input": (c_int32, (c_void_p, c_int32, c_void_p)),
    "tilewright_graph_set_input_zero_copy": (c_int32, (c_void_p, c_int32, c_void_p)),
    "tilewright_graph_share_input": (c_int32, (c_void_p, c_int32, c_void_p)),
    "tilewright_graph_load_params": (c_int32, (c_void_p, c_char_p, c_size_t)),
    "tilewright_graph_share_params": (c_int32, (c_void_p, c_void_p, c_char_p, c_size_t)),
    "tilewright_graph_run": (c_int32, (c_void_p,)),
    "tilewright_graph_call": (c_int32, (c_void_p, c_int32, c_void_p, c_void_p, c_int32, c_void_p)),
    "tilewright_graph_input_storage": (c_int32, (c_void_p, c_int32)),
    "tilewright_graph_updates_input": (c_int32, (c_void_p, c_int32)),
    "tilewright_graph_input_is_linked": (c_int32, (c_void_p, c_int32)),
    "tilewright_graph_output_storage": (c_int32, (c_void_p, c_int32)),
    "tilewright_graph_run_in_place": (c_int32, (c_void_p, c_int32, c_void_p, c_void_p)),
    "tilewright_graph_run_until": (c_int32, (c_void_p, c_int32)),
    "tilewright_graph_run_node": (c_int32, (c_void_p, c_int32)),
    "tilewright_graph_set_recording": (None, (c_void_p, c_int32)),
    "tilewright_graph_record": (c_int32, (c_void_p,)),
    "tilewright_graph_is_recorded": (c_int32, (c_void_p,)),
    "tilewright_time_some": (
        c_int32,
        (
            DLDevice,
            c_void_p,
            c_void_p,
            c_void_p,
            c_int32,
            c_int64,
            c_int64,
            POINTER(c_int64),
            POINTER(c_int64),
            POINTER(c_int64),
        ),
    ),
    "tilewright_graph_time_runs": (c_int32, (c_void_p, c_int32, c_void_p, c_void_p)),
    "tilewright_graph_run_timed": (
        c_int32,
        (c_void_p, c_int32, POINTER(c_double), POINTER(c_double)),
    ),
    "tilewright_graph_time_node": (
        c_int32,
        (c_void_p, c_int32, c_int32, c_int32, c_int32, POINTER(c_double)),
    ),
    "tilewright_vm_create_on": (
        c_int32,
        (
            c_char_p,
            c_size_t,
            POINTER(c_void_p),
            c_int32,
            c_void_p,
            c_void_p,
            c_int32,
            POINTER(DLDevice),
            c_int32,
            POINTER(c_void_p),
        ),
    ),
    "tilewright_vm_release": (None, (c_void_p,)),
    "tilewright_vm_function_index": (c_int32, (c_void_p, c_char_p)),
    "tilewright_vm_function": (c_int32, (c_void_p, c_int32, POINTER(c_void_p))),
    "tilewright_set_interrupt_check": (None, (c_void_p,)),
    "tilewright_vm_set_call_log": (None, (c_void_p, c_void_p)),
    "tilewright_vm_set_limits": (None, (c_void_p, c_int64, c_int64, c_uint64)),
    "tilewright_data_create": (c_int32, (c_int64, c_char_p, c_int64, POINTER(c_void_p))),
    "tilewright_data_tag": (c_int64, (c_void_p,)),
    "tilewright_data_size": (c_int64, (c_void_p,)),
    "tilewright_data_field": (c_int32, (c_void_p, c_int64, c_void_p)),
    "tilewright_reference_create": (c_int32, (c_char_p, POINTER(c_void_p))),
    "tilewright_reference_read": (None, (c_void_p, c_void_p)),
}

# What generated code may call; see tilewright.h.
_FOR_GENERATED_CODE = (
    "tilewright_parallel_launch",
    "tilewright_workspace_alloc",
    "tilewright_workspace_free",
    "tilewright_call_packed",
    "tilewright_set_error",
    "tilewright_set_error_format",
    "tilewright_check_tensors",
    "tilewright_any_release",
    "tilewright_register_system_symbol",
)


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


_PATH = str(runtime_library())
LIBRARY = _declare(ctypes.CDLL(_PATH))
QUICK = _declare(ctypes.PyDLL(_PATH))


def address_of(name: str) -> int:
    """The address of one of the runtime's functions."""
    return ctypes.cast(getattr(LIBRARY, name), c_void_p).value or 0


@cache
def runtime_symbols() -> dict[str, int]:
    """The runtime functions that generated code may refer to, with their addresses in this process."""
    return {name: address_of(name) for name in _FOR_GENERATED_CODE}
