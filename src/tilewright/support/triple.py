"""Target triples: the many ways people write them, and the one that LLVM, zig and the linkers understand.

LLVM reads the words of a triple by position. Given ``x86_64-windows-gnu`` or ``x86_64-w64-mingw32`` it finds no system
at all and writes an ELF object; given ``arm-linux-gnueabihf`` it does not see that floats are passed in registers. So a
triple is read here word by word, whatever their order, and written with all its parts.
"""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import dataclass
from typing import Final

_MACHINES: Final = {
    "amd64": "x86_64",
    "x64": "x86_64",
    "x86-64": "x86_64",
    "arm64": "aarch64",
    "i386": "i686",
    "x86": "i686",
}
_VENDORS: Final = (
    *(
        "unknown",
        "pc",
        "apple",
        "w64",
        "none",
        "suse",
        "redhat",
        "alpine",
        "buildroot",
        "nvidia",
        "amd",
        "oe",
        "poky",
    ),
)
# What a word of a triple starts with, and the system and the environment that it stands for.
_SYSTEMS: Final = (
    ("windows", "windows", ""),
    ("win32", "windows", ""),
    ("mingw", "windows", "gnu"),
    ("darwin", "macos", ""),
    ("macos", "macos", ""),
    ("ios", "ios", ""),
    ("linux", "linux", ""),
    ("wasip", "wasi", ""),
    ("wasi", "wasi", ""),
    ("emscripten", "emscripten", ""),
    ("freebsd", "freebsd", ""),
)
_ENVIRONMENTS: Final = ("gnu", "musl", "eabi", "android", "msvc", "elf", "simulator", "macabi")
_SUFFIXES: Final = {
    "windows": ".dll",
    "macos": ".dylib",
    "ios": ".dylib",
    "wasi": ".wasm",
    "emscripten": ".wasm",
}


@dataclass(frozen=True)
class Triple:
    """The parts of a target triple that decide how to compile and link."""

    machine: str
    system: str
    environment: str
    system_word: str = ""
    """The system with its version, as it was written: ``darwin20.0``, ``macosx11``."""
    vendor: str = ""

    @classmethod
    def parse(cls, text: str) -> Triple:
        """Reads ``aarch64-unknown-linux-gnu`` and its shorter and older forms; an unknown system is ``none``."""
        first, *words = re.sub(r"^x86-64\b", "x86_64", text.strip()).split("-")
        machine = _MACHINES.get(first.lower(), first)
        system, system_word, environment, vendor = "", "", "", ""
        for word in words:
            found = next((row for row in _SYSTEMS if word.lower().startswith(row[0])), None)
            if found is not None and not system:
                system, system_word = found[1], word
                environment = environment or found[2]
            elif word.lower().startswith(_ENVIRONMENTS):
                environment = word
            elif not vendor and not system and word.lower() in _VENDORS:
                vendor = word
        if not system:
            system = "wasi" if machine.startswith("wasm") else "none"
        return cls(machine, system, environment, system_word, vendor)

    @property
    def zig_target(self) -> str:
        """The name of the target for ``zig cc -target``."""
        machine = "arm" if self.machine.startswith("arm") else self.machine
        machine = "thumb" if machine.startswith("thumb") else machine
        machine = "x86" if re.fullmatch(r"i\d86", machine) else machine
        if self.system == "windows":
            return f"{machine}-windows-gnu"
        if self.system in ("macos", "ios", "wasi", "emscripten", "freebsd"):
            return f"{machine}-{self.system}"
        if self.system == "none":
            return f"{machine}-freestanding"
        return f"{machine}-linux-{self.environment or 'gnu'}"

    @property
    def zig_has_libraries(self) -> bool:
        """True if zig brings what libraries of this system link with; Android's and iOS' come from their makers."""
        return self.system != "ios" and not self.environment.lower().startswith("android")

    @property
    def llvm(self) -> str:
        """The triple with all its parts, in the order that LLVM reads."""
        machine = self.machine
        if self.system == "windows":
            # On 32-bit x86, names begin with an underscore, which GNU's way of naming exports leaves to the linker.
            environment = "gnu" if re.fullmatch(r"i\d86", machine) else self.environment or "msvc"
            return f"{machine}-{_or(self.vendor, 'pc', 'w64')}-windows-{environment}"
        if self.system in ("macos", "ios"):
            name = "arm64" if machine == "aarch64" else machine
            word = self.system_word if self.system_word.lower() != "macos" else "macosx"
            return "-".join(filter(None, (name, "apple", word, self.environment)))
        if self.system == "none":
            return "-".join(filter(None, (machine, "unknown", "unknown", self.environment)))
        word = "linux" if self.system == "linux" else self.system_word or "unknown"
        return "-".join(filter(None, (machine, self.vendor or "unknown", word, self.environment)))

    @property
    def library_suffix(self) -> str:
        """What the name of a shared library ends with on this system."""
        return _SUFFIXES.get(self.system, ".so")


def _or(given: str, default: str, *hidden: str) -> str:
    return default if not given or given in hidden else given


def host_triple() -> Triple:
    """The machine this process runs on."""
    machine = platform.machine().lower()
    system = {"linux": "linux", "darwin": "macos", "win32": "windows"}.get(sys.platform, "none")
    return Triple(_MACHINES.get(machine, machine), system, "")


def is_host(triple: str) -> bool:
    """True for an empty triple and for triples of this machine's CPU and system."""
    if not triple:
        return True
    parsed, host = Triple.parse(triple), host_triple()
    return (parsed.machine, parsed.system) == (host.machine, host.system) and _has_c_library(parsed)


def _has_c_library(triple: Triple) -> bool:
    """True if the C library that a triple of this system names is this machine's."""
    environment = triple.environment.lower()
    if environment.startswith("android"):
        return hasattr(sys, "getandroidapilevel")
    return not environment.startswith("musl") or platform.libc_ver()[0] != "glibc"
