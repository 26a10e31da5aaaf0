"""The Python interface of the C runtime: arrays, packed functions, modules, devices."""

from tilewright.runtime import named_functions as _named_functions
from tilewright.runtime import profiling, vm
from tilewright.runtime.benchmark import BenchmarkResult
from tilewright.runtime.container import ShapeTuple
from tilewright.runtime.device import (
    Device,
    cpu,
    cuda,
    device,
    ext_dev,
    gpu,
    hexagon,
    metal,
    opencl,
    rocm,
    vpi,
    vulkan,
    webgpu,
)
from tilewright.runtime.device_module import DeviceModule
from tilewright.runtime.external import JSONGraph, JSONNode, JSONRuntime, register_json_runtime
from tilewright.runtime.graph_factory import GraphExecutorFactory
from tilewright.runtime.loading import enabled, load_module, register_module_loader, system_lib
from tilewright.runtime.module import JITModule, Module, SourceModule
from tilewright.runtime.ndarray import NDArray
from tilewright.runtime.packed_func import PackedFunc, convert_to_tvm_func
from tilewright.runtime.params import load_param_dict, save_param_dict
from tilewright.runtime.registry import (
    get_global_func,
    list_global_func_names,
    register_func,
    remove_global_func,
)
from tilewright.runtime.threads import config_threadpool, num_threads
from tilewright.support.dtype import DataType
from tilewright.support.node import Object

_ = _named_functions  # registers them

String = str

__all__ = [
    "BenchmarkResult",
    "DataType",
    "Device",
    "DeviceModule",
    "JITModule",
    "JSONGraph",
    "JSONNode",
    "JSONRuntime",
    "Module",
    "NDArray",
    "Object",
    "PackedFunc",
    "ShapeTuple",
    "SourceModule",
    "String",
    "config_threadpool",
    "convert_to_tvm_func",
    "cpu",
    "cuda",
    "device",
    "enabled",
    "ext_dev",
    "get_global_func",
    "gpu",
    "hexagon",
    "list_global_func_names",
    "load_module",
    "load_param_dict",
    "metal",
    "num_threads",
    "opencl",
    "register_func",
    "register_json_runtime",
    "register_module_loader",
    "remove_global_func",
    "rocm",
    "save_param_dict",
    "system_lib",
    "vpi",
    "vulkan",
    "webgpu",
]
