"""Checks a wheel: its tags, its files, and that the library in it loads on every system that the tags promise."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import zipfile
from pathlib import Path

from binary_formats import Binary, read_binary
from wheel_platforms import Platform

SOURCE = Path(__file__).resolve().parent.parent / "src" / "tilewright"
DATA = ("py.typed", "*.c", "*.h", "*.hpp", "*.rly", "digits.*", "template/*")

# What every system of a kind has. For Linux, the libraries that the manylinux standard lets a wheel load.
_SYSTEM_LIBRARIES = {
    "linux": re.compile(r"(libc|libm|libpthread|libdl|librt)\.so\.\d+|ld-linux-(x86-64|aarch64)\.so\.\d"),
    "macos": re.compile(r"/usr/lib/libSystem\.B\.dylib"),
    "windows": re.compile(r"(KERNEL32|ntdll|ADVAPI32|api-ms-win-crt-[a-z]+-l1-1-0)\.dll", re.IGNORECASE),
}
_FORMATS = {"linux": "ELF", "macos": "Mach-O", "windows": "PE"}


class WheelError(Exception):
    """A wheel is wrong, or could not be built."""


def check_wheel(path: Path, platform: Platform) -> str:
    """Check a wheel; ``WheelError`` for the first thing that is wrong, otherwise what it needs in a few words."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    _check_tags(path, content, platform)
    _check_record(content)
    library = f"tilewright/runtime/{platform.library}"
    _check_files(content, library)
    binary = read_binary(content[library])
    check_binary(binary, platform)
    versions = f", {newest_version(binary)} at most" if binary.versions else ""
    system = f", system {'.'.join(map(str, binary.oldest_system))}" if binary.oldest_system else ""
    needed = f"loads {len(binary.needed)} system libraries{versions}{system}"
    return f"{len(content)} files, {binary.format} {binary.machine}, {needed}"


def _check_tags(path: Path, content: dict[str, bytes], platform: Platform) -> None:
    if not path.name.endswith(f"-py3-none-{platform.wheel_tag}.whl"):
        raise WheelError(f"{path.name} is not named after the tags {platform.wheel_tag}")
    metadata = next(text.decode() for name, text in content.items() if name.endswith(".dist-info/WHEEL"))
    found = sorted(re.findall(r"^Tag: (.*)$", metadata, re.MULTILINE))
    wanted = sorted(f"py3-none-{tag}" for tag in platform.tags)
    if found != wanted or "Root-Is-Purelib: false" not in metadata:
        raise WheelError(f"its tags are {found}, not {wanted}, or it claims to be for every platform")


def _check_record(content: dict[str, bytes]) -> None:
    """Every file is listed with its hash."""
    name = next(one for one in content if one.endswith(".dist-info/RECORD"))
    listed = {row[0]: row[1] for row in csv.reader(io.StringIO(content[name].decode()))}
    if listed.keys() != content.keys():
        raise WheelError(f"RECORD and contents differ: {sorted(listed.keys() ^ content.keys())[:5]}")
    for one, text in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        if one != name and listed[one] != f"sha256={digest}":
            raise WheelError(f"the hash of {one} in RECORD is wrong")


def _check_files(content: dict[str, bytes], library: str) -> None:
    """The package's files as they are in the sources, the library, and nothing else."""
    wanted = {
        f"tilewright/{file.relative_to(SOURCE).as_posix()}"
        for pattern in ("*.py", *DATA)
        for file in SOURCE.rglob(pattern)
        if file.is_file()
    }
    found = {name for name in content if ".dist-info/" not in name}
    if found != wanted | {library}:
        differ = sorted(found ^ (wanted | {library}))
        raise WheelError(f"its files are not those of the sources and {library}: {differ[:8]}")


def check_binary(binary: Binary, platform: Platform) -> None:
    """The library is for the platform, exports the runtime's functions, and needs only what every system there has."""
    system = platform.system
    machine = platform.name.partition("-")[2]
    if (binary.format, binary.machine) != (_FORMATS[system], machine):
        raise WheelError(
            f"the library is {binary.format} for {binary.machine}, not {_FORMATS[system]} for {machine}"
        )
    strange = [one for one in binary.needed if not _SYSTEM_LIBRARIES[system].fullmatch(one)]
    if strange:
        raise WheelError(f"the library loads {', '.join(strange)}, which a system may not have")
    if "tilewright_graph_create" not in binary.exports:
        raise WheelError("the library does not export the runtime's functions")
    foreign = [one for one in binary.exports if not one.startswith("tilewright_")]
    if foreign:
        raise WheelError(f"the library exports names that are not its own: {', '.join(foreign[:5])}")
    if system == "linux":
        allowed = next(
            (int(major), int(minor))
            for major, minor in re.findall(r"manylinux_(\d+)_(\d+)_", platform.wheel_tag)
        )
        if newest_glibc(binary) > allowed:
            raise WheelError(
                f"the library needs {newest_version(binary)}, more than {platform.wheel_tag} says"
            )
    elif system == "macos":
        major, minor = map(int, re.findall(r"macosx_(\d+)_(\d+)_", platform.wheel_tag)[0])
        if binary.oldest_system is None or binary.oldest_system > (major, minor):
            raise WheelError(f"the library is for macOS {binary.oldest_system}, the tag says {major}.{minor}")
        if machine == "arm64" and not binary.is_signed:
            raise WheelError("the library is not signed: macOS on arm64 does not load it")


def newest_glibc(binary: Binary) -> tuple[int, int]:
    """The newest version of the C library that a symbol asks for; an unknown family of versions counts as newest."""
    newest = (0, 0)
    for version in binary.versions:
        found = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
        newest = max(newest, (int(found[1]), int(found[2])) if found else (999, 0))
    return newest


def newest_version(binary: Binary) -> str:
    """The same in words."""
    return "glibc {}.{}".format(*newest_glibc(binary))
