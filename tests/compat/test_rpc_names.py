"""Devices of a session by their names, and modules that a server links."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tilewright as tvm
from tilewright import rpc, te
from tilewright.support.cbuild import has_compiler


@pytest.fixture(scope="module")
def session() -> Iterator[rpc.RPCSession]:
    """A session with this process."""
    with rpc.LocalSession() as made:
        yield made


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("cl", "opencl"),
        ("vulkan", "vulkan"),
        ("metal", "metal"),
        ("rocm", "rocm"),
        ("ext_dev", "ext_dev"),
        ("hexagon", "hexagon"),
        ("webgpu", "webgpu"),
    ],
)
def test_devices_by_their_names(session: rpc.RPCSession, method: str, kind: str) -> None:
    """A method gives the device of that kind of the server, the first one by default; it is there where the server has
    one, and using one that is not there fails. As in TVM, its number is the device's and 128 for each session."""
    local = tvm.device(kind, 0)
    first, second = getattr(session, method)(), getattr(session, method)(1)
    assert first == session.device(kind, 0) and second == session.device(kind, 1) != first
    assert first.device_type % 128 == local.device_type
    assert (first.device_id, second.device_id) == (0, 1)
    assert first.exist == local.exist
    if not local.exist:
        with pytest.raises(ValueError, match=f"this machine has no {kind}"):
            tvm.nd.empty((2,), device=first)


@pytest.mark.parametrize("suffix", ["o", "tar"])
def test_a_module_that_the_server_links(session: rpc.RPCSession, suffix: str, tmp_path: Path) -> None:
    """An object or an archive of objects comes back as a shared library, which this machine loads; one that is linked
    already comes back as it is."""
    if not has_compiler():
        pytest.skip("there is no compiler that links")
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] * 3.0)
    built = tvm.build(te.create_schedule(y.op), [x, y], "llvm", name="thrice")
    path = tmp_path / f"thrice.{suffix}"
    if suffix == "o":
        built.save(str(path))
    else:
        built.export_library(str(path))
    session.upload(path)
    linked = session.download_linked_module(path.name)
    assert isinstance(linked, bytearray)
    library = tmp_path / f"linked_{suffix}.so"
    library.write_bytes(linked)
    data, out = tvm.nd.array(np.arange(4, dtype="float32")), tvm.nd.empty((4,))
    tvm.runtime.load_module(str(library))["thrice"](data, out)
    np.testing.assert_array_equal(out.numpy(), [0, 3, 6, 9])
    session.upload(library)
    assert session.download_linked_module(library.name) == linked
    assert sorted(session.listdir()) == sorted([path.name, library.name])
    session.remove(path.name)
    session.remove(library.name)


def test_a_file_that_is_no_module(session: rpc.RPCSession) -> None:
    """Is refused with the kinds that are known, and one that is not there is named."""
    session.upload(b"text", "notes.txt")
    with pytest.raises(ValueError, match=r"its kind is '.txt'"):
        session.download_linked_module("notes.txt")
    with pytest.raises(FileNotFoundError, match=r"nothere\.so"):
        session.download_linked_module("nothere.so")
