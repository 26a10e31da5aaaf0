"""The target kinds, and the options that each one takes.

A kind is the first part of a target string. Its options are typed: ``Bool``, ``Integer``, ``String``, ``Array<String>``
and, where targets contain targets, ``Target`` and ``Array<Target>``.

What passes and tools need to know about a kind is a field of ``TargetKind``; none of them has a list of kinds. A new
kind registers itself and its code generator from one file: ``register_kind(TargetKind("mine", 12, ("gpu",)))``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tilewright.runtime.device import name_device
from tilewright.support.errors import TargetError
from tilewright.support.suggestions import did_you_mean
from tilewright.target.cuda_arch import detect_arch

BOOL: Final = "Bool"
INTEGER: Final = "Integer"
STRING: Final = "String"
STRINGS: Final = "Array<String>"
TARGET: Final = "Target"
TARGETS: Final = "Array<Target>"

# What every kind takes. ``keys``, ``tag`` and ``host`` are parts of the target; the others become attributes.
COMMON_OPTIONS: Final[dict[str, str]] = {
    "keys": STRINGS,
    "tag": STRING,
    "device": STRING,
    "model": STRING,
    "libs": STRINGS,
    "host": TARGET,
}


@dataclass(frozen=True, eq=False)
class TargetKind:
    """A kind of target: its name, the DLPack device type it runs on, default keys, options and their defaults."""

    name: str
    device_type: int
    default_keys: tuple[str, ...]
    own_options: dict[str, str] = field(default_factory=dict, repr=False)
    defaults: dict[str, Any] = field(default_factory=dict, repr=False)
    own_memory: bool = False
    """The device has memory that host code cannot touch: only kernels may use it, and the driver is told which device
    of the kind they run on."""
    warp_shuffle: bool = False
    """The threads of a warp can read one another's registers."""

    relay_to_tir: Callable[[Any], Any] | None = field(default=None, repr=False)
    """The hook that lowers functions for the kind: from a module of the graph level to one with loops."""

    tir_to_runtime: Callable[[Any, Any], Any] | None = field(default=None, repr=False)
    """The hook that compiles such loops: from their module and the target to a runtime module."""

    detect: Callable[[Mapping[str, Any]], dict[str, Any]] | None = field(default=None, repr=False)
    """From the options that are given, others that this machine decides; they stand in the target's text."""

    @property
    def options(self) -> dict[str, str]:
        """Every option that the kind takes, with the name of its type."""
        return {**self.own_options, **COMMON_OPTIONS}

    def option_type(self, name: str) -> str:
        """The type of one option; an unknown one raises ``TargetError`` naming the nearest that exists."""
        found = self.own_options.get(name) or COMMON_OPTIONS.get(name)
        if found is None:
            raise TargetError(
                f"target kind {self.name!r} has no option {name!r}{nearest(name, self.options)}; "
                f"its options are {', '.join(sorted(self.options))}"
            )
        return found

    def __str__(self) -> str:
        return self.name


def nearest(word: str, known: Iterable[str]) -> str:
    """A clause that proposes the known word most like ``word``, or nothing."""
    return did_you_mean(word, known)


def _options(names: str, kind: str) -> dict[str, str]:
    """A table that gives each of the names the same type."""
    return dict.fromkeys(names.split(), kind)


_CPU, _CUDA, _OPENCL, _VULKAN, _METAL, _ROCM, _EXT_DEV, _HEXAGON, _WEBGPU = 1, 2, 4, 7, 8, 10, 12, 16, 15
_SYSTEM_LIB = {"system-lib": BOOL}
_THREADS = {"max_num_threads": INTEGER, "thread_warp_size": INTEGER}

_ALL_KINDS: Final = (
    TargetKind(
        "llvm",
        _CPU,
        ("cpu",),
        {
            "mattr": STRINGS,
            **_options("mcpu mtriple mabi executor interface-api", STRING),
            **_options("system-lib unpacked-api link-params", BOOL),
            **_options("fast-math fast-math-nnan fast-math-ninf fast-math-nsz", BOOL),
            **_options("fast-math-arcp fast-math-contract fast-math-reassoc", BOOL),
            **_options("opt-level num-cores", INTEGER),
        },
    ),
    TargetKind(
        "c",
        _CPU,
        ("cpu",),
        {
            **_options("system-lib unpacked-api link-params", BOOL),
            **_options("mcpu executor interface-api", STRING),
        },
    ),
    TargetKind(
        "cuda",
        _CUDA,
        ("cuda", "gpu"),
        {
            **_options("mcpu arch codegen", STRING),
            **_options("fast-math fast-math-nnan fast-math-ninf fast-math-nsz", BOOL),
            **_options("fast-math-arcp fast-math-contract fast-math-reassoc", BOOL),
            "opt-level": INTEGER,
            **_SYSTEM_LIB,
            **_THREADS,
            **_options("shared_memory_per_block registers_per_block max_threads_per_block", INTEGER),
        },
        {"max_num_threads": 1024, "thread_warp_size": 32},
        own_memory=True,
        warp_shuffle=True,
        detect=detect_arch,
    ),
    TargetKind(
        "nvptx",
        _CUDA,
        ("cuda", "gpu"),
        {**_options("mcpu mtriple", STRING), **_SYSTEM_LIB, **_THREADS},
        {"max_num_threads": 1024, "thread_warp_size": 32},
        own_memory=True,
    ),
    TargetKind(
        "rocm",
        _ROCM,
        ("rocm", "gpu"),
        {**_options("mcpu mtriple", STRING), **_SYSTEM_LIB, **_THREADS},
        {"max_num_threads": 256, "thread_warp_size": 64},
        own_memory=True,
        warp_shuffle=True,
    ),
    TargetKind(
        "opencl",
        _OPENCL,
        ("opencl", "gpu"),
        {**_SYSTEM_LIB, **_THREADS},
        {"max_num_threads": 256, "thread_warp_size": 1},
        own_memory=True,
    ),
    TargetKind(
        "metal",
        _METAL,
        ("metal", "gpu"),
        {**_SYSTEM_LIB, **_THREADS, "max_function_args": INTEGER},
        {"max_num_threads": 256, "thread_warp_size": 16, "max_function_args": 31},
        own_memory=True,
    ),
    TargetKind(
        "vulkan",
        _VULKAN,
        ("vulkan", "gpu"),
        {
            **_SYSTEM_LIB,
            **_THREADS,
            "max_shared_memory_per_block": INTEGER,
        },
        {"max_num_threads": 256, "thread_warp_size": 1},
        own_memory=True,
    ),
    TargetKind(
        "webgpu",
        _WEBGPU,
        ("webgpu", "gpu"),
        {**_SYSTEM_LIB, "max_num_threads": INTEGER},
        {"max_num_threads": 256},
        own_memory=True,
    ),
    TargetKind("sdaccel", _OPENCL, ("sdaccel", "hls"), _SYSTEM_LIB, own_memory=True),
    TargetKind("aocl", _OPENCL, ("aocl", "hls"), _SYSTEM_LIB, own_memory=True),
    TargetKind("aocl_sw_emu", _OPENCL, ("aocl", "hls"), _SYSTEM_LIB, own_memory=True),
    TargetKind(
        "hexagon",
        _HEXAGON,
        ("hexagon",),
        {
            "mattr": STRINGS,
            **_options("mcpu mtriple", STRING),
            **_options("system-lib link-params", BOOL),
        },
    ),
    TargetKind("stackvm", _CPU, (), _SYSTEM_LIB),
    TargetKind("ext_dev", _EXT_DEV, (), _SYSTEM_LIB),
    TargetKind("hybrid", _CPU, (), _SYSTEM_LIB),
    TargetKind("composite", _CPU, (), {"devices": TARGETS}),
)

KINDS: Final[dict[str, TargetKind]] = {kind.name: kind for kind in _ALL_KINDS}


def register_kind(kind: TargetKind) -> TargetKind:
    """Make a kind known. Its name is also one of its device's: ``tvm.device(kind.name)`` and, in dictionaries of
    targets, ``{kind.name: target}``."""
    if kind.name in KINDS:
        raise TargetError(
            f"there is a kind of target {kind.name!r} already, for device type {KINDS[kind.name].device_type}; "
            "kinds cannot be replaced"
        )
    name_device(kind.name, kind.device_type)
    KINDS[kind.name] = kind
    return kind


def get_kind(name: str) -> TargetKind:
    """The kind of this name; an unknown one raises ``TargetError`` naming the nearest that exists."""
    kind = KINDS.get(name)
    if kind is None:
        raise TargetError(
            f"{name!r} is not a kind of target{nearest(name, KINDS)}; the kinds are {', '.join(KINDS)}"
        )
    return kind
