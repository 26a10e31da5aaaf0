"""The build backend: setuptools, and the C runtime compiled into the wheel.

A wheel contains the runtime as a plain shared library next to its sources, so it is for one platform and for every
Python from 3.11 on. If the machine has no C compiler, the build requires the ``ziglang`` package and uses ``zig cc``.
With ``TILEWRIGHT_WHEEL_PLATFORM``, a name of ``wheel_platforms``, it is for that platform, whatever this machine is:
``build_wheels.py`` builds all of them. An editable install builds nothing: the package compiles its runtime on first
use, as it does in a source tree.
"""

from __future__ import annotations

import atexit
import importlib
import os
import shutil
import sys
import tempfile
import types
from pathlib import Path
from typing import Any, ClassVar

from setuptools import build_meta
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build
from setuptools.command.build_py import build_py

from wheel_platforms import PLATFORMS, Platform

SOURCE = Path(__file__).resolve().parent.parent / "src"

build_sdist = build_meta.build_sdist
build_wheel = build_meta.build_wheel
build_editable = build_meta.build_editable
get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist
get_requires_for_build_editable = build_meta.get_requires_for_build_editable
prepare_metadata_for_build_wheel = build_meta.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """The requirements of setuptools, and a C compiler from the package index if this machine has none."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *compiler_requirements()]


def wanted_platform() -> Platform | None:
    """The platform that the wheel is for; None for that of this machine."""
    name = os.environ.get("TILEWRIGHT_WHEEL_PLATFORM", "")
    if not name:
        return None
    if name not in PLATFORMS:
        raise SystemExit(f"TILEWRIGHT_WHEEL_PLATFORM is {name!r}; the platforms are {', '.join(PLATFORMS)}")
    return PLATFORMS[name]


def compiler_requirements() -> list[str]:
    """The package that has a C compiler, where this machine has none or the wheel is for another."""
    if wanted_platform() is not None:
        return ["ziglang>=0.13"]
    cbuild = load_cbuild()
    try:
        cbuild.find_compiler()
    except cbuild.CompilerError:
        return ["ziglang>=0.13"]
    return []


def load_cbuild() -> Any:
    """``tilewright.support.cbuild`` from the source tree.

    The package's own ``__init__`` needs NumPy, which a build environment does not have. So a bare package of the
    same name and folder stands in for it while this module and what it imports are loaded.
    """
    stand_in = types.ModuleType("tilewright")
    stand_in.__path__ = [str(SOURCE / "tilewright")]
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "tilewright"}
    for name in before:
        del sys.modules[name]
    sys.modules["tilewright"] = stand_in
    try:
        return importlib.import_module("tilewright.support.cbuild")
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "tilewright"]:
            del sys.modules[name]
        sys.modules.update(before)


def build_library(folder: Path) -> Path:
    """Compile the runtime into ``folder`` for any CPU of this machine's family, or of the wanted platform's."""
    cbuild = load_cbuild()
    platform = wanted_platform()
    if platform is not None:
        return _cross_build(cbuild, platform, folder)
    compiler = cbuild.find_compiler()
    if compiler.command[-1] == "cc" and len(compiler.command) > 1:
        # Unlike other compilers, zig generates code for this machine's CPU unless told otherwise.
        compiler = cbuild.Compiler((*compiler.command, "-mcpu=baseline"))
    output = folder / cbuild.library_name(cbuild.host_triple().system)
    cbuild.build_runtime(output, compiler)
    return Path(output)


def _cross_build(cbuild: Any, platform: Platform, folder: Path) -> Path:
    """Compile the runtime for another platform, without its debug information."""
    zig = cbuild.zig_command()
    if zig is None:
        raise SystemExit("a wheel for another platform is compiled by zig: pip install ziglang")
    compiler = cbuild.Compiler((*zig, "-target", platform.zig_target, "-mcpu=baseline"))
    output = folder / platform.library
    flags = [*cbuild.link_flags(platform.triple), "-s"]
    if platform.system == "macos":
        flags.append(f"-Wl,-install_name,@rpath/{platform.library}")
    # In a folder of its own: what a linker puts beside the library does not belong into the wheel.
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / platform.library
        compiler.run([*cbuild.FLAGS, *cbuild.runtime_sources(), "-o", made, *flags])
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, output)
    output.chmod(0o755)
    return output


class FreshBuild(build):
    """Builds in a separate folder, so that a file removed from the sources is not in the next wheel."""

    def initialize_options(self) -> None:
        """Choose the folder, which is removed when the process ends."""
        super().initialize_options()
        self.build_base = tempfile.mkdtemp(prefix="tilewright-build-")
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)


class BuildWithRuntime(build_py):
    """Copies the Python files, then compiles the runtime next to them."""

    editable_mode: ClassVar[bool]

    def run(self) -> None:
        """Build everything; an editable install has nothing to compile."""
        super().run()
        if not self.editable_mode:
            build_library(Path(self.build_lib) / "tilewright" / "runtime")


class PlatformWheel(bdist_wheel):
    """A wheel for one platform and every Python: ``py3-none-<platform>``."""

    def finalize_options(self) -> None:
        """Mark the distribution as one that holds machine code, though it has no extension modules of setuptools."""
        self.distribution.has_ext_modules = lambda: True
        super().finalize_options()

    def get_tag(self) -> tuple[str, str, str]:
        """The library is loaded through ctypes, so no Python version or ABI is named."""
        _, _, platform = super().get_tag()
        wanted = wanted_platform()
        return "py3", "none", platform if wanted is None else wanted.wheel_tag
