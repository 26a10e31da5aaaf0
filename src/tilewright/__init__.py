"""Tilewright: an end-to-end deep-learning compiler, with the public interface of TVM 0.8.

    import tilewright as tvm
    from tilewright import te

Everything loads on first use, so that ``import tilewright`` costs nothing and a program pays for the layers it touches.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright import not_yet
from tilewright.support import slot

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tilewright import (
        arith,
        contrib,
        driver,
        error,
        instrument,
        ir,
        micro,
        parser,
        relay,
        runtime,
        script,
        target,
        te,
        testing,
        tir,
        topi,
        transform,
    )
    from tilewright._ffi.registry import register_object
    from tilewright._ffi.runtime_ctypes import DataTypeCode
    from tilewright.driver.build_module import OperatorModule, build, lower
    from tilewright.ir.convert import convert
    from tilewright.ir.module import IRModule
    from tilewright.runtime import ndarray as nd
    from tilewright.runtime.device import Device, cpu, cuda, device, gpu
    from tilewright.runtime.registry import get_global_func, register_func
    from tilewright.support.dtype import DataType
    from tilewright.support.errors import TilewrightError
    from tilewright.support.node import Object

_MODULES = (
    "_ffi",
    "arith",
    "codegen",
    "contrib",
    "driver",
    "error",
    "instrument",
    "ir",
    "micro",
    "parser",
    "relay",
    "runtime",
    "script",
    "support",
    "target",
    "te",
    "testing",
    "tir",
    "topi",
    "transform",
)
_ELSEWHERE = {"nd": "tilewright.runtime.ndarray"}

_DEVICES = (
    "cpu",
    "cuda",
    "gpu",
    "rocm",
    "opencl",
    "metal",
    "vpi",
    "vulkan",
    "ext_dev",
    "hexagon",
    "webgpu",
    "device",
    "Device",
)
_NAMES = {
    **{name: "tilewright.runtime.device" for name in _DEVICES},
    **{name: "tilewright.driver.build_module" for name in ("build", "lower", "OperatorModule")},
    **{
        name: "tilewright.runtime.registry"
        for name in ("register_func", "get_global_func", "list_global_func_names", "remove_global_func")
    },
    "convert": "tilewright.ir.convert",
    "IRModule": "tilewright.ir.module",
    "DataType": "tilewright.support.dtype",
    "DataTypeCode": "tilewright._ffi.runtime_ctypes",
    "Object": "tilewright.support.node",
    "register_object": "tilewright._ffi.registry",
    "TilewrightError": "tilewright.support.errors",
}
_RENAMED = {"TVMError": ("tilewright.support.errors", "TilewrightError")}


def _late(module: str, name: str) -> Callable[..., Any]:
    """A function of a layer, which is loaded when the function is first called."""
    return lambda *arguments: getattr(importlib.import_module(module), name)(*arguments)


slot.GRAPH_CALL.fill(_late("tilewright.relay.expr", "Call"))
slot.GRAPH_FUNCTION.fill(_late("tilewright.relay.analysis.variables", "function_of"))
slot.GRAPH_FILE.fill(_late("tilewright.relay.parser", "import_file"))
slot.MODULE_TEXT.fill(_late("tilewright.relay.printer", "astext"))
slot.MODULE_LOOK.fill(_late("tilewright.relay.printer", "pretty_print"))
slot.MODULE_SCRIPT.fill(_late("tilewright.tir.text", "script"))
slot.BUFFER_STORE.fill(_late("tilewright.tir.stmt", "BufferStore"))

not_yet.install()


def __getattr__(name: str) -> Any:
    """Load a part of the package when it is first named."""
    if name in _MODULES:
        found: Any = importlib.import_module(f"tilewright.{name}")
    elif name in _ELSEWHERE:
        found = importlib.import_module(_ELSEWHERE[name])
    elif name in _NAMES:
        found = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _RENAMED:
        module, renamed = _RENAMED[name]
        found = getattr(importlib.import_module(module), renamed)
    else:
        found = not_yet.attribute_not_there(__name__, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_ELSEWHERE, *_NAMES, *_RENAMED})
