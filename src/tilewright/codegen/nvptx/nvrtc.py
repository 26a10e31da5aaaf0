"""CUDA C++ to PTX by NVIDIA's run-time compiler, where a target asks for it (``-codegen=nvrtc``).

The library is opened when it is first used; nothing else depends on it. It comes with the toolkit, or with the package
``nvidia-cuda-nvrtc``.
"""

from __future__ import annotations

import ctypes
import sysconfig
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, Final

from tilewright.support.errors import CodegenError, TargetError

_NAMES: Final = ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "nvrtc64_130_0.dll", "nvrtc64_120_0.dll")
_HEADERS: Final = ("/usr/local/cuda/include",)


def _packages() -> Path:
    return Path(sysconfig.get_paths()["purelib"]) / "nvidia"


@cache
def _library() -> Any:
    places = [str(path) for path in sorted(_packages().glob("*/lib/libnvrtc.so.*"))]
    for name in (*places, *_NAMES):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise TargetError(
        "-codegen=nvrtc needs the library NVRTC, which was not found: pip install nvidia-cuda-nvrtc, or leave the "
        "option out (LLVM then makes the code)"
    )


def compile_source(source: str, arch: str) -> str:
    """The PTX of CUDA source, for an architecture such as "sm_90a"."""
    library = _library()
    program = c_void_p()
    _check(library, library.nvrtcCreateProgram(byref(program), source.encode(), b"kernels.cu", 0, None, None))
    try:
        folders = [*_packages().glob("*/include"), *(Path(one) for one in _HEADERS)]
        options = [f"--gpu-architecture={arch.replace('sm_', 'compute_')}", "--std=c++17"]
        options += [f"--include-path={folder}" for folder in folders if folder.is_dir()]
        texts = (c_char_p * len(options))(*[option.encode() for option in options])
        status = library.nvrtcCompileProgram(program, c_int(len(options)), texts)
        if status:
            log = _text(library, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
            raise CodegenError(f"NVRTC refuses the CUDA source: {log.strip()}")
        return _text(library, program, "nvrtcGetPTXSize", "nvrtcGetPTX")
    finally:
        library.nvrtcDestroyProgram(byref(program))


def _text(library: Any, program: c_void_p, size_name: str, text_name: str) -> str:
    size = c_size_t()
    _check(library, getattr(library, size_name)(program, byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check(library, getattr(library, text_name)(program, text))
    return text.value.decode(errors="replace")


def _check(library: Any, status: int) -> None:
    if status:
        library.nvrtcGetErrorString.restype = c_char_p
        raise CodegenError(f"NVRTC: {library.nvrtcGetErrorString(status).decode()}")
