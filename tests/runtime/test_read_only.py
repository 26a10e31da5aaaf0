"""Memory that was lent to be read is never written: not by compiled functions, not by copies into arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te
from tilewright.runtime import Module, convert_to_tvm_func, load_module
from tilewright.runtime import ndarray as nd


def _add_one(target: str = "llvm") -> Module:
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1, name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], target)


def _frozen(values: Any) -> np.ndarray[Any, Any]:
    made = np.array(values, "float32")
    made.flags.writeable = False
    return made


_REFUSED = r"argument 1 \(b\) is written by the function, but its memory is read-only"


@pytest.fixture(scope="module")
def add_one() -> Module:
    return _add_one()


def test_a_compiled_function_reads_and_does_not_write(add_one: Module) -> None:
    source, target = _frozen([0, 1, 2, 3]), _frozen([0, 0, 0, 0])
    out = np.zeros(4, "float32")
    add_one(source, out)
    np.testing.assert_array_equal(out, [1, 2, 3, 4])
    for given in (target, nd.from_dlpack(target)):
        with pytest.raises(ValueError, match=_REFUSED):
            add_one(source, given)
    assert not target.any()


def test_bytes_and_mapped_files(add_one: Module, tmp_path: Path) -> None:
    """A write would change an immutable object, and end the process, respectively."""
    content = bytes(16)
    with pytest.raises(ValueError, match=_REFUSED):
        add_one(np.ones(4, "float32"), np.frombuffer(content, "float32"))
    assert content == bytes(16)
    path = tmp_path / "values"
    path.write_bytes(content)
    mapped = np.memmap(path, "float32", mode="r")
    with pytest.raises(ValueError, match=_REFUSED):
        add_one(np.ones(4, "float32"), mapped)
    with pytest.raises(ValueError, match="read-only"):
        nd.from_dlpack(mapped).copyfrom(np.ones(4, "float32"))


def test_the_flag_is_checked_by_exported_code(tmp_path: Path) -> None:
    for target, suffix in (("llvm", "so"), ("llvm", "tar"), ("c", "so")):
        path = tmp_path / f"{target}.{suffix}"
        _add_one(target).export_library(str(path))
        with pytest.raises(ValueError, match=_REFUSED):
            load_module(path)["default_function"](np.ones(4, "float32"), _frozen([0, 0, 0, 0]))


def test_a_function_that_updates_its_argument() -> None:
    @tvm.script.ir_module
    class Module:
        @tvm.script.tir.prim_func
        def main(a: tvm.script.tir.handle) -> None:
            tvm.script.tir.func_attr({"global_symbol": "main"})
            A = tvm.script.tir.match_buffer(a, (4,), "float32")
            for i in tvm.script.tir.serial(0, 4):
                A[i] = A[i] * 2.0

    with pytest.raises(ValueError, match=r"argument 0 \(A\) is written by the function"):
        tvm.build(Module, target="llvm")(_frozen([1, 2, 3, 4]))


def test_arrays_refuse_to_be_written() -> None:
    values = _frozen([1, 2, 3, 4])
    shared = nd.from_dlpack(values)
    assert shared.read_only
    assert not nd.array(values).read_only
    assert not shared.copyto(tvm.cpu()).read_only
    for write in (
        lambda: shared.copyfrom(np.zeros(4, "float32")),
        lambda: nd.array(np.zeros(4, "float32")).copyto(shared),
        lambda: shared.__setitem__(slice(None), 0),
        lambda: shared.__setitem__(slice(None), nd.empty((4,))),
    ):
        with pytest.raises(ValueError, match="memory is read-only and cannot be written"):
            write()
    np.testing.assert_array_equal(values, [1, 2, 3, 4])


def test_the_flag_travels() -> None:
    """Through capsules, through functions, and back."""
    values = _frozen([1, 2, 3, 4])
    shared = nd.from_dlpack(values)
    assert not np.from_dlpack(shared).flags.writeable
    assert np.from_dlpack(nd.array(values)).flags.writeable
    assert nd.from_dlpack(shared).read_only
    with pytest.raises(BufferError, match="read-only array can be lent only through DLPack 1.0"):
        shared.to_dlpack()
    seen: list[bool] = []
    echo = convert_to_tvm_func(lambda array: (seen.append(array.read_only), array)[1])
    assert echo(shared).read_only
    echo(values)
    assert not echo(nd.array(values)).read_only
    assert seen == [True, True, False]
