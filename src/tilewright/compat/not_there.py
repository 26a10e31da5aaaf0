"""What TVM 0.8 has and this version does not: one table, and modules whose names are errors.

Importing a module of the table gives a module in which every name is an error that says what is missing and what to use
instead. The error of an attribute is an ``AttributeError`` (``hasattr`` works), that of an import an ``ImportError``.
A module that exists is found before this table is searched.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, Final

from tilewright.support.errors import TilewrightError


class NotInThisVersion(TilewrightError, AttributeError):
    """A name of TVM's that this version does not have."""


class ModuleNotInThisVersion(TilewrightError, ImportError):
    """A name of TVM's that is imported from a module that this version does not have."""


_EXPORT = "export the model to ONNX and use relay.frontend.from_onnx"
_COMPILED = "operators are compiled"
_TOPI = (
    "topi.x86 and topi.arm_cpu are for CPUs, topi.cuda for NVIDIA's GPUs; "
    "for another device, write it: te.create_schedule and bind"
)
_PARTITION = (
    "operators are compiled; a library of your own takes parts of a graph: a pattern table and relay.ext.NAME"
)

_DEVICES = ("gpu", "rocm", "mali", "bifrost", "intel_graphics", "hls", "hexagon")
"""Folders of ``topi`` for other devices. Tables name their functions beside those for processors, so that a name is
a function, which raises the error when it is called."""

_MODULES: Final[dict[str, str]] = {
    **{f"topi.{name}": _TOPI for name in _DEVICES},
    **{
        f"relay.op.contrib.{name}": _PARTITION
        for name in (
            "cmsisnn",
            "coreml",
            "ethosn",
            "ethosu",
            "tensorrt",
            "vitis_ai",
        )
    },
    "micro.project": "export a model library (micro.export_model_library_format) and build it with your project",
    "micro.session": "export a model library (micro.export_model_library_format) and build it with your project",
    **{f"contrib.{name}": _COMPILED for name in ("miopen", "mps", "nnpack", "rocblas")},
    "contrib.binutil": "compiled code is linked in this process; readelf and objdump show what an artefact has",
    "contrib.edgetpu_runtime": _EXPORT,
    "contrib.ethosu": _PARTITION,
    "contrib.hexagon": "use the target llvm -mtriple=hexagon, and link with Hexagon's own tools",
    "contrib.mxnet": "hand arrays over through DLPack: tvm.nd.from_dlpack",
    "contrib.peak": "tilewright profile measures this machine's peak, and compares each kernel with it",
    "contrib.rocm": "code for AMD's GPUs is the source that the target opencl gives",
    "contrib.rpc": "use tvm.rpc",
    "contrib.sdaccel": "export the loops as C (target c) for high-level synthesis",
    "contrib.spirv_utils": "use the targets opencl and webgpu",
    "contrib.tf_op": "hand arrays over through DLPack: tvm.nd.from_dlpack",
    "contrib.tvmjs": "use the target llvm -mtriple=wasm32",
    "contrib.vitis_ai": _PARTITION,
    "contrib.tflite_runtime": _EXPORT,
    "contrib.coreml_runtime": _EXPORT,
}
"""What is missing, and what to use instead."""

_PACKAGE = "tilewright"


def advice_on(name: str) -> str | None:
    """What to use instead of a module, of what is inside it, or of a name; None where the tables do not know it."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in _MODULES:
            return _MODULES[".".join(parts[:length])]
    return None


def is_module(name: str) -> bool:
    """True if this is a module of the table, so that importing it is not an error yet."""
    return name in _MODULES


def message_about(name: str, advice: str) -> str:
    return f"{_PACKAGE}.{name} is not in this version of Tilewright: {advice}"


def incomplete_modules() -> set[str]:
    """The modules of which a part is in the tables."""
    return {name.rpartition(".")[0] for name in _MODULES}


class _MissingFunction:
    """A missing function: the error is raised when it is called."""

    def __init__(self, name: str, advice: str) -> None:
        self.__name__, self._message = name.rpartition(".")[2], message_about(name, advice)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotInThisVersion(self._message)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotInThisVersion(self._message)


class MissingModule(ModuleType):
    """A module that this version lacks."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        whole = f"{self.__name__.removeprefix(f'{_PACKAGE}.')}.{name}"
        if is_module(whole):
            return importlib.import_module(f"{_PACKAGE}.{whole}")
        if whole.startswith("topi.") and whole.split(".")[1] in _DEVICES:
            return _MissingFunction(whole, _TOPI)
        raise NotInThisVersion(message_about(whole, advice_on(whole) or ""))
