"""Modules: functions by name, entry, imports, source."""

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

from tilewright.runtime import JITModule, Module, SourceModule, system_lib
from tilewright.support.errors import TilewrightError


class Code:
    """Stands for the owner of machine code."""


def make_jit(kernels: Module, **options: object) -> JITModule:
    """A module as a code generator makes it, over the machine code of the kernels."""
    settings: dict[str, object] = {
        "function_names": ["add_one", "describe"],
        "keep_alive": kernels,
        "sources": {"ll": lambda: "define i32 @f()", "asm": lambda: "ret"},
    }
    return JITModule(kernels._address_of, **{**settings, **options})  # type: ignore[arg-type]


def test_functions_by_name(kernels: Module) -> None:
    """A function is found by its name, in square brackets or by call; the same one each time."""
    module = make_jit(kernels)
    a, b = np.ones(3, "float32"), np.zeros(3, "float32")
    module["add_one"](a, b)
    assert b.tolist() == [2, 2, 2]
    assert module.get_function("describe")(5) == 1
    assert module["describe"] is module["describe"]
    assert module.implements_function("add_one") and not module.implements_function("nothing")
    assert module.type_key == "llvm"


def test_entry_function(kernels: Module) -> None:
    """Calling a module runs its entry: the one named so, else main, else the first."""
    assert make_jit(kernels, entry_name="describe")(True) == 2
    module = make_jit(kernels)
    assert module.entry_func.name == "add_one"
    assert module["__tvm_main__"].name == "add_one"


def test_missing_function_names_what_there_is(kernels: Module) -> None:
    """A wrong name is an AttributeError that lists the right ones."""
    with pytest.raises(
        AttributeError, match="llvm module has no function 'sub_one'; it has add_one, describe"
    ):
        make_jit(kernels)["sub_one"]
    with pytest.raises(ValueError, match="by its name, not by a int"):
        make_jit(kernels)[0]  # type: ignore[index]


def test_source_formats(kernels: Module) -> None:
    """Source comes in the format asked for, or the first; other formats are an error that lists them."""
    module = make_jit(kernels)
    assert module.get_source() == module.get_source("ll") == "define i32 @f()"
    assert module.get_source("asm") == module.get_source("s") == "ret"
    with pytest.raises(ValueError, match="format 'cu'; it has ll, asm"):
        module.get_source("cu")


def test_save(kernels: Module, kernel_code: bytes, tmp_path: Path) -> None:
    """A module's code is saved in the form that the suffix or the format names."""
    module = make_jit(kernels, object_code=lambda: kernel_code)
    module.save(str(tmp_path / "code.o"))
    assert (tmp_path / "code.o").read_bytes() == kernel_code
    module.save(str(tmp_path / "code.ll"))
    assert (tmp_path / "code.ll").read_text() == "define i32 @f()"
    module.save(str(tmp_path / "anything"), "asm")
    assert (tmp_path / "anything").read_text() == "ret"
    assert module.format == "o" and make_jit(kernels).format == ""
    with pytest.raises(ValueError, match="no object code"):
        make_jit(kernels).save(str(tmp_path / "other.o"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["anything", "code.ll", "code.o"]


def test_imports(kernels: Module) -> None:
    """Imported modules are searched when asked; a module cannot import itself, not even through others."""
    device = SourceModule("__global__ void k() {}", function_names=["k"])
    module = make_jit(kernels, function_names=["add_one"])
    outer = SourceModule("", type_key="outer")
    outer.import_module(module)
    module.import_module(device)
    assert outer.imported_modules == [module]
    assert outer.get_function("add_one", query_imports=True).name == "add_one"
    with pytest.raises(AttributeError):
        outer.get_function("add_one")
    assert outer.implements_function("k", query_imports=True) and not outer.implements_function("k")
    with pytest.raises(ValueError, match="cannot import itself"):
        device.import_module(outer)
    assert device.imported_modules == []


def test_a_module_without_source() -> None:
    """It says so, whatever the format."""
    for wanted in ("", "ll"):
        with pytest.raises(ValueError, match=f"the system_lib module has no source in the format '{wanted}'"):
            system_lib().get_source(wanted)


def test_source_module() -> None:
    """Source for a device without a driver can be read; running it is an error that says why."""
    module = SourceModule("__global__ void k() {}", function_names=["k"])
    assert (
        module.get_source()
        == module.get_source("cu")
        == module.get_source("cuda")
        == "__global__ void k() {}"
    )
    assert (module.type_key, module.format) == ("cuda", "cu")
    with pytest.raises(
        TilewrightError, match=r"cannot run 'k': this is cuda source, and this process has no driver"
    ):
        module["k"]
    with pytest.raises(AttributeError, match="no function 'j'"):
        module["j"]
    with pytest.raises(ValueError, match="format 'ptx'"):
        module.get_source("ptx")
    again = SourceModule.load_from_bytes("cuda", module.save_to_bytes())
    assert again.get_source() == module.get_source() and again.function_names == ("k",)
    with pytest.raises(ValueError, match="damaged"):
        SourceModule.load_from_bytes("cuda", b"cu")


def test_module_for_another_machine(kernels: Module) -> None:
    """A cross-compiled module has source and object code; calling it is an error that names its machine."""
    module = make_jit(kernels, runnable=False, target_triple="aarch64-unknown-linux-gnu")
    assert module.get_source() == "define i32 @f()"
    with pytest.raises(TilewrightError, match="compiled for aarch64-unknown-linux-gnu"):
        module["add_one"]


def test_features_are_checked(kernels: Module) -> None:
    """A module that needs what this CPU lacks is refused with the names; unknown names are not judged."""
    make_jit(kernels, features=["tuning-flag-of-llvm"])
    with pytest.raises(TilewrightError, match="needs CPU features that this machine lacks: fma4"):
        make_jit(kernels, features=["sse2", "fma4"])
    make_jit(kernels, features=["fma4"], runnable=False)


def test_functions_keep_the_code_alive(kernels: Module) -> None:
    """Machine code lives as long as a function of it, and no longer."""
    code = Code()
    watch = weakref.ref(code)
    module = make_jit(kernels, keep_alive=code)
    function = module["describe"]
    del module, code
    gc.collect()
    assert watch() is not None
    assert function("text") == 8
    del function
    gc.collect()
    assert watch() is None
