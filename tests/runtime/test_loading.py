"""Loading and exporting: shared libraries, objects and archives, and what happens to damaged ones."""

import ctypes
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.runtime import (
    Module,
    SourceModule,
    enabled,
    export,
    load_module,
    register_func,
    remove_global_func,
    system_lib,
)
from tilewright.runtime.artefact import unpack_imports
from tilewright.runtime.graph_factory import GraphExecutorFactory
from tilewright.runtime.library import LIBRARY
from tilewright.runtime.loading import LibraryModule, ObjectModule, _stored_imports
from tilewright.runtime.ndarray import array
from tilewright.support import cbuild
from tilewright.support.errors import TilewrightError

FORMATS = ["kernels.so", "kernels.o", "kernels.tar"]


@pytest.mark.parametrize("name", FORMATS)
def test_exported_module_runs(kernels: Module, tmp_path: Path, name: str) -> None:
    """Every form that can be exported loads again and gives the same results, parallel loops and errors included."""
    path = tmp_path / name
    kernels.export_library(str(path))
    loaded = load_module(str(path))
    assert loaded.function_names == kernels.function_names
    a, b = np.arange(3, dtype="float32"), np.zeros(3, "float32")
    loaded(a, b)
    np.testing.assert_array_equal(b, [1, 2, 3])
    loaded["fill"](b)
    np.testing.assert_array_equal(b, [0, 1, 2])
    assert loaded["sum_workspace"](100) == 4950
    with pytest.raises(IndexError, match="asked to fail"):
        loaded["fail"]("IndexError")
    assert os.listdir(tmp_path) == [name]


def test_library_shares_the_registry(library_path: Path) -> None:
    """An artefact with its own runtime is bound to this process's: it calls Python functions registered here."""

    @register_func("test.runtime.callback")
    def callback(task: int, tensor: Any) -> None:
        np.from_dlpack(tensor)[task] = -task
        if tensor.shape[0] == 5:
            raise KeyError("five")

    try:
        values = np.ones(4, "float32")
        load_module(library_path)["call_back"](values)
        np.testing.assert_array_equal(values, [0, -1, -2, -3])
        with pytest.raises(KeyError, match="five"):
            load_module(library_path)["call_back"](np.ones(5, "float32"))
    finally:
        remove_global_func("test.runtime.callback")


def test_library_hides_its_runtime(library_path: Path) -> None:
    """Two artefacts in one process cannot collide: only the compiled functions and the binding are visible."""
    names = subprocess.run(
        ["nm", "-D", "--defined-only", library_path], capture_output=True, text=True, check=True
    )
    visible = [line.split()[-1] for line in names.stdout.splitlines()]
    assert visible and all(name.startswith(("__tvm_ffi_", "__tilewright_")) for name in visible)


def test_runtime_is_small(library_path: Path, tmp_path: Path) -> None:
    """The runtime inside an artefact, with the way to NVIDIA's driver, stays below 250 KB when stripped."""
    stripped = tmp_path / "stripped.so"
    subprocess.run(["strip", "-o", stripped, library_path], check=True)
    assert stripped.stat().st_size < 250_000
    assert load_module(stripped)["sum_workspace"](4) == 6


def test_imported_source_travels(kernels: Module, tmp_path: Path) -> None:
    """Imported modules come back with their tree, in a library and in an archive."""
    for name in ("with.so", "with.tar"):
        root = ObjectModule([kernels.object_code() or b""], "kernels")
        outer = SourceModule("outer source", type_key="opencl", format="cl", function_names=["k1"])
        outer.import_module(SourceModule("inner\nsource", function_names=["k2", "k3"]))
        root.import_module(outer)
        root.export_library(str(tmp_path / name))
        loaded = load_module(tmp_path / name)
        (found,) = loaded.imported_modules
        assert (found.type_key, found.get_source(), found.function_names) == (
            "opencl",
            "outer source",
            ("k1",),
        )
        (inner,) = found.imported_modules
        assert (inner.type_key, inner.get_source(), inner.function_names) == (
            "cuda",
            "inner\nsource",
            ("k2", "k3"),
        )
        assert loaded["sum_workspace"](4) == 6


def _resident(kind: str) -> int:
    """Bytes of this process that are in memory: RssAnon for its own, RssFile for those of mapped files."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{kind}:")[1].split()[0]) * 1024


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not say what is in memory"
)
def test_weights_are_in_memory_once(kernels: Module, tmp_path: Path) -> None:
    """The parameters of a loaded model are its tensors alone: the pages of the file that they came from are given
    back, and read the same when they are needed again."""
    values = np.arange(8 << 20, dtype="float32")
    root = ObjectModule([kernels.object_code() or b""], "kernels")
    root.import_module(GraphExecutorFactory("{}", {"weight": array(values)}))
    root.export_library(str(tmp_path / "model.so"))
    before = _resident("RssFile")
    loaded = load_module(tmp_path / "model.so")
    assert _resident("RssFile") - before < values.nbytes // 4
    (factory,) = loaded.imported_modules
    assert isinstance(factory, GraphExecutorFactory)
    np.testing.assert_array_equal(factory.params["weight"].numpy(), values)
    (stored,) = unpack_imports(_stored_imports(loaded), "it")
    again = GraphExecutorFactory.load_from_bytes(stored.type_key, stored.content)
    np.testing.assert_array_equal(again.params["weight"].numpy(), values)


def test_imports_do_not_fit_in_one_object(kernels: Module, tmp_path: Path) -> None:
    """A module with imports cannot be one object file; nothing is written."""
    kernels.import_module(SourceModule("text"))
    with pytest.raises(ValueError, match=r"needs a \.so or \.tar"):
        kernels.export_library(str(tmp_path / "kernels.o"))
    assert os.listdir(tmp_path) == []
    with pytest.raises(ValueError, match="cuda module cannot be exported"):
        SourceModule("text").export_library(str(tmp_path / "x.so"))


def test_export_options(kernels: Module, tmp_path: Path) -> None:
    """fcompile links in its own way, addons are linked in, linker options are passed on, others are refused."""
    seen: dict[str, Any] = {}

    def link(output: str, objects: list[str], **kwargs: Any) -> None:
        seen.update(kwargs, objects=objects)
        subprocess.run(["cc", "-shared", "-o", output, *objects], check=True)

    kernels.export_library(str(tmp_path / "own.so"), fcompile=link, options=["-lm"])
    assert seen["options"] == ["-lm"] and load_module(tmp_path / "own.so")["sum_workspace"](3) == 3
    (tmp_path / "extra.c").write_text("int tilewright_test_extra(void) { return 11; }")
    cbuild.find_compiler().run(["-fPIC", "-c", tmp_path / "extra.c", "-o", tmp_path / "extra.o"])
    kernels.export_library(
        str(tmp_path / "more.so"), addons=[str(tmp_path / "extra.o")], options=["-Wl,-soname,more.so"]
    )
    assert ctypes.CDLL(str(tmp_path / "more.so")).tilewright_test_extra() == 11
    with pytest.raises(TypeError, match="does not know the option wrong"):
        kernels.export_library(str(tmp_path / "wrong.so"), wrong=1)
    with pytest.raises(cbuild.CompilerError, match="no-such-option"):
        kernels.export_library(str(tmp_path / "wrong.so"), options=["--no-such-option"])
    assert not (tmp_path / "wrong.so").exists()


def test_failed_export_keeps_the_old_file(kernels: Module, tmp_path: Path) -> None:
    """A file of the same name stays as it was when an export fails."""
    path = tmp_path / "kernels.so"
    path.write_bytes(b"precious")
    with pytest.raises(cbuild.CompilerError):
        kernels.export_library(str(path), options=["--no-such-option"])
    assert path.read_bytes() == b"precious"
    assert os.listdir(tmp_path) == ["kernels.so"]


def test_no_compiler_names_both(kernels: Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without cc, without ziglang, and for a machine that is not linked for here, a library cannot be linked, and the
    error names both; an archive still can."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(cbuild, "zig_command", lambda: None)
    monkeypatch.setattr(export, "links", lambda machine, system: False)
    with pytest.raises(TilewrightError, match=r"neither cc on the PATH nor the ziglang package"):
        kernels.export_library(str(tmp_path / "kernels.so"))
    kernels.export_library(str(tmp_path / "kernels.tar"))
    assert load_module(tmp_path / "kernels.tar")["sum_workspace"](3) == 3


@pytest.mark.parametrize("name", FORMATS)
def test_missing_cpu_feature_is_named(compile_kernels: Any, tmp_path: Path, name: str) -> None:
    """An artefact that needs a feature this machine lacks says so when it is loaded."""
    module = ObjectModule([compile_kernels('-DFEATURES="sse2,fma4"')], "kernels")
    path = tmp_path / name
    module.export_library(str(path))
    with pytest.raises(TilewrightError, match=rf"{name} needs CPU features that this machine lacks: fma4"):
        load_module(path)


def test_cut_files_are_refused(
    library_path: Path, kernel_code: bytes, kernels: Module, tmp_path: Path
) -> None:
    """A file cut short anywhere is an error, never a crash."""
    archive = tmp_path / "whole.tar"
    kernels.export_library(str(archive))
    for suffix, content in (
        (".so", library_path.read_bytes()),
        (".o", kernel_code),
        (".tar", archive.read_bytes()),
    ):
        meaningful = len(content.rstrip(b"\0"))  # an archive ends with padding
        for part in (0.0, 0.01, 0.1, 0.5, 0.8, 0.97):
            path = tmp_path / f"cut{suffix}"
            path.write_bytes(content[: int(meaningful * part)])
            with pytest.raises(TilewrightError, match="cut"):
                load_module(path)


def test_changed_bits_are_refused(library_path: Path, kernels: Module, tmp_path: Path) -> None:
    """A library or archive with one bit changed is an error, or the change was outside of what it means."""
    archive = tmp_path / "whole.tar"
    kernels.export_library(str(archive))
    random = np.random.default_rng(0)
    for source in (library_path, archive):
        content = bytearray(source.read_bytes())
        path = tmp_path / f"changed{source.suffix}"
        refused = 0
        for position in random.integers(0, len(content), 60):
            changed = bytearray(content)
            changed[position] ^= 1 << int(random.integers(8))
            path.write_bytes(changed)
            try:
                loaded = load_module(path)
            except TilewrightError:
                refused += 1
            else:
                assert loaded["sum_workspace"](10) == 45
        assert refused > 30 if source.suffix == ".so" else refused > 20


def test_other_machines_and_kinds(tmp_path: Path, kernel_code: bytes) -> None:
    """Code for another processor, unknown suffixes and missing files are errors that say what is wrong."""
    foreign = bytearray(kernel_code)
    foreign[18:20] = (243).to_bytes(2, "little")
    (tmp_path / "foreign.o").write_bytes(foreign)
    with pytest.raises(ValueError, match="is code for RISC-V; this machine is"):
        load_module(tmp_path / "foreign.o")
    (tmp_path / "text.so").write_text("not a library at all")
    with pytest.raises(OSError, match="cannot load"):
        load_module(tmp_path / "text.so")
    (tmp_path / "text.txt").write_text("")
    with pytest.raises(ValueError, match=r"its kind is '\.txt'"):
        load_module(tmp_path / "text.txt")
    with pytest.raises(ValueError, match="no such file"):
        load_module(tmp_path / "absent.so")
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    with pytest.raises(ValueError, match="has no object code"):
        load_module(tmp_path / "empty.tar")


def test_plain_archive_of_objects(tmp_path: Path, kernel_code: bytes) -> None:
    """A tar of object files made by any tool loads too, and format names override suffixes."""
    (tmp_path / "any.o").write_bytes(kernel_code)
    with tarfile.open(tmp_path / "plain.archive", "w") as archive:
        archive.add(tmp_path / "any.o", "any.o")
    assert load_module(tmp_path / "plain.archive", "tar")["sum_workspace"](5) == 10


@pytest.mark.parametrize("suffix", ["ll", "bc"])
def test_intermediate_code(tmp_path: Path, suffix: str) -> None:
    """LLVM's intermediate code is compiled when it is loaded; what is not such code is refused."""
    path = tmp_path / f"one.{suffix}"
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    tvm.build(te.create_schedule(B.op), [A, B], "llvm", name="plus").save(str(path))
    a, b = tvm.nd.array(np.arange(4, dtype="float32")), tvm.nd.array(np.zeros(4, "float32"))
    module = load_module(path)
    module["plus"](a, b)
    np.testing.assert_array_equal(b.numpy(), [1, 2, 3, 4])
    assert module.type_key == "library"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="cannot load"):
        load_module(path)


def test_linked_without_llvm(tmp_path: Path, kernel_code: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where llvmlite is not installed, objects are linked by the machine's compiler."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "code.o").write_bytes(kernel_code)
    module = load_module(tmp_path / "code.o")
    assert isinstance(module, LibraryModule)
    assert module["sum_workspace"](5) == 10


def test_system_library(kernels: Module) -> None:
    """Functions linked into the program are found by name."""
    name = b"__tvm_ffi_test_system"
    test_system_library.name = name  # type: ignore[attr-defined]  # the runtime keeps the pointer
    LIBRARY.tilewright_register_system_symbol(name, kernels._address_of("__tvm_ffi_sum_workspace"))
    assert system_lib()["test_system"](5) == 10
    with pytest.raises(AttributeError, match="no function 'other'"):
        system_lib()["other"]


def test_enabled() -> None:
    """What can run here: the host always, LLVM where it is installed, devices where they exist."""
    assert enabled("cpu") and enabled("llvm -mcpu=native") and enabled("c")
    assert not enabled("metal") and not enabled("nonsense") and not enabled("")


def test_library_runs_under_tvm_ffi(library_path: Path) -> None:
    """The apache-tvm-ffi package loads an artefact and runs it on PyTorch tensors, without Tilewright."""
    pytest.importorskip("tvm_ffi")
    pytest.importorskip("torch")
    program = f"""
import sys, torch, tvm_ffi
module = tvm_ffi.load_module({str(library_path)!r})
a, b = torch.arange(4, dtype=torch.float32), torch.zeros(4)
module.add_one(a, b)
assert b.tolist() == [1, 2, 3, 4]
module.fill(b)
assert b.tolist() == [0, 1, 2, 3]
assert module.sum_workspace(10) == 45
for call, kind, text in (
    (lambda: module.add_one(a), TypeError, "two tensors"),
    (lambda: module.add_one(a, torch.zeros(5)), ValueError, "of one length"),
    (lambda: module.call_back(b), ValueError, "no function of that name"),
):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError("no error")
seen = []
tvm_ffi.register_global_func("test.runtime.callback", lambda task, tensor: seen.append((task, tuple(tensor.shape))))
module.call_back(b)
assert sorted(seen) == [(0, (4,)), (1, (4,)), (2, (4,)), (3, (4,))]
def fail(task, tensor):
    raise KeyError("inside the host")
tvm_ffi.register_global_func("test.runtime.callback", fail, override=True)
try:
    module.call_back(b)
except KeyError as error:
    assert "inside the host" in str(error)
else:
    raise AssertionError("no error")
assert "tilewright" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
