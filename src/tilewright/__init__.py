"""Tilewright: an end-to-end deep-learning compiler, with the public interface of TVM 0.8.

    import tilewright as tvm
    from tilewright import te

Everything loads on first use, so that ``import tilewright`` costs nothing and a program pays for the layers it touches.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright.compat import finder as _finder
from tilewright.support import slot as _slot

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tilewright import (
        arith,
        auto_scheduler,
        contrib,
        driver,
        ir,
        micro,
        relay,
        rpc,
        runtime,
        script,
        target,
        te,
        testing,
        tir,
        topi,
    )
    from tilewright.compat.ffi import DataTypeCode, register_object
    from tilewright.compile import OperatorModule, build, lower
    from tilewright.ir import instrument, transform
    from tilewright.ir.convert import convert
    from tilewright.ir.module import IRModule
    from tilewright.runtime import ndarray as nd
    from tilewright.runtime.device import Device, cpu, cuda, device, gpu
    from tilewright.runtime.registry import get_global_func, register_func
    from tilewright.support import errors as error
    from tilewright.support.dtype import DataType
    from tilewright.support.errors import TilewrightError
    from tilewright.support.node import Object

_MODULES = (
    "arith",
    "auto_scheduler",
    "codegen",
    "compile",
    "contrib",
    "driver",
    "ir",
    "micro",
    "relay",
    "rpc",
    "runtime",
    "schedule",
    "script",
    "strategy",
    "support",
    "target",
    "te",
    "testing",
    "tir",
    "topi",
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
    **{name: "tilewright.compile" for name in ("build", "lower", "OperatorModule")},
    **{
        name: "tilewright.runtime.registry"
        for name in ("register_func", "get_global_func", "list_global_func_names", "remove_global_func")
    },
    "convert": "tilewright.ir.convert",
    "IRModule": "tilewright.ir.module",
    "DataType": "tilewright.support.dtype",
    "DataTypeCode": "tilewright.compat.ffi",
    "Object": "tilewright.support.node",
    "register_object": "tilewright.compat.ffi",
    "register_extension": "tilewright.runtime.packed_func",
    "TilewrightError": "tilewright.support.errors",
}
_RENAMED = {
    "TVMError": ("tilewright.support.errors", "TilewrightError"),
    "cl": ("tilewright.runtime.device", "opencl"),
    "mtl": ("tilewright.runtime.device", "metal"),
}


def _late(module: str, name: str) -> Callable[..., Any]:
    """A function of a layer, which is loaded when the function is first called."""
    return lambda *arguments: getattr(importlib.import_module(module), name)(*arguments)


_slot.ALL_LEVELS.fill(lambda: importlib.import_module("tilewright.relay"))
_slot.GRAPH_CALL.fill(_late("tilewright.relay.expr", "Call"))
_slot.GRAPH_FUNCTION.fill(_late("tilewright.relay.analysis.variables", "function_of"))
_slot.GRAPH_FILE.fill(_late("tilewright.relay.parser", "import_file"))
_slot.MODULE_TEXT.fill(_late("tilewright.relay.printer", "astext"))
_slot.MODULE_LOOK.fill(_late("tilewright.relay.printer", "pretty_print"))
_slot.MODULE_SCRIPT.fill(_late("tilewright.tir.text", "script"))
_slot.BUFFER_STORE.fill(_late("tilewright.tir.stmt", "BufferStore"))

_finder.install()


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
        found = _finder.attribute(__name__, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_ELSEWHERE, *_NAMES, *_RENAMED, *_finder.names(__name__)})
