"""What a session can do, over every kind of connection."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import nd, rpc, te
from tilewright.rpc.array_bytes import Part
from tilewright.rpc.remote_array import RemoteArray
from tilewright.support.errors import RPCError


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A function that adds one."""
    x = te.placeholder((te.var("n"),), name="x")
    y = te.compute(x.shape, lambda i: x[i] + 1.0)
    path = tmp_path_factory.mktemp("library") / "addone.tar"
    tvm.build(te.create_schedule(y.op), [x, y], "llvm", name="addone").export_library(str(path))
    return path


def test_functions(session):
    assert session.get_function("rpc.test.addone")(10) == 11
    assert session.get_function("rpc.test.strcat")("ab", 11) == "ab:11"
    values = [1, 2.5, "text", b"\0bytes", None, True, [1, ["nested"]]]
    assert session.get_function("testing.echo")(values) == values
    add = session.get_function("rpc.test.add_to_lhs")(3)
    assert add(4) == 7
    with pytest.raises(AttributeError, match="no function 'nonsense'"):
        session.get_function("nonsense")


def test_large_arguments_and_results(session):
    content = bytes(range(256)) * 4096
    assert session.get_function("testing.echo")(content) == content
    text = "x" * 200_000
    assert session.get_function("testing.echo")(text) == text


def test_errors_have_their_kind_and_message(session):
    with pytest.raises(ValueError, match="on the remote machine: wrong here") as caught:
        session.get_function("rpc.test.except")("wrong here")
    assert isinstance(caught.value, RPCError)
    assert session.get_function("rpc.test.addone")(1) == 2  # the session goes on


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "bool", "float16"])
def test_arrays_travel(session, dtype):
    values = np.random.default_rng(0).integers(0, 2, (3, 4, 5)).astype(dtype)
    remote = nd.array(values, session.cpu())
    assert remote.shape == (3, 4, 5) and remote.dtype == dtype and remote.device == session.cpu()
    assert np.array_equal(remote.numpy(), values)
    again = remote.copyto(session.cpu())
    assert np.array_equal(again.copyto(tvm.cpu()).numpy(), values)
    local = nd.empty((3, 4, 5), dtype)
    local.copyfrom(again)
    assert np.array_equal(local.numpy(), values)
    assert np.array_equal(nd.array(local, session.cpu()).numpy(), values)


def test_odd_arrays(session):
    for shape in ((), (0,), (3, 0, 2)):
        values = np.full(shape, 7, "int32")
        assert np.array_equal(nd.array(values, session.cpu()).numpy(), values)
    turned = np.arange(12, dtype="float32").reshape(3, 4).T
    assert np.array_equal(nd.array(turned, session.cpu()).numpy(), turned)
    session.get_function("rpc.test.remote_array_func")(nd.array(np.ones(8, "float32"), session.cpu()))


def test_the_server_counts_what_it_has_lent(session):
    """An array that a client holds is one object on the server, with a reference more until the client frees it."""
    arrays = session.get_function("rpc.test.remote_return_nd")
    count = arrays("ref_count")
    before = count()
    lent = arrays("get_arr")()
    assert lent.shape == (10,) and count() == before + 1
    assert arrays("get_elem")(0) == arrays("get_arr_elem")(lent, 0) == 0
    del lent
    session.get_function("rpc.test.addone")(1)
    assert count() == before


@pytest.mark.parametrize("dtype", ["int24", "int4x8", "boolx8", "handle"])
def test_elements_without_a_layout_are_refused(dtype):
    """Their memory is smaller than what NumPy would make of it; nothing is read or written beyond it."""
    with rpc.LocalSession() as session, pytest.raises(ValueError, match="cannot be sent"):
        nd.empty((100,), dtype, session.cpu())
    packed = nd.empty((100,), "int24")
    assert packed._memory() is None
    with pytest.raises(ValueError, match="cannot be sent"):
        Part(packed, 0, 300, write=True)


def test_arrays_stay_with_their_session(session):
    remote = nd.array(np.ones(3, "float32"), session.cpu())
    add = tvm.runtime.convert_to_tvm_func(lambda array: None)
    with pytest.raises(TypeError, match="pass it to functions of its session"):
        add(remote)
    echo = session.get_function("testing.echo")
    for wrong, why in (
        (nd.array(np.ones(3)), "an array of this machine"),
        (tvm.cpu(), "of this machine"),
        (lambda: None, "cannot be passed to a remote one"),
        (object(), "a object cannot be passed"),
    ):
        with pytest.raises(TypeError, match=why):
            echo(wrong)
    assert not session.cuda(7).exist
    with pytest.raises(RPCError, match="has no"):
        nd.empty((3,), "float32", session.cuda(7))
    with pytest.raises((RPCError, MemoryError)):
        nd.empty((1 << 40, 1 << 20), "float32", session.cpu())


def test_modules(session, library):
    session.upload(library)
    module = session.load_module("addone.tar")
    x = nd.array(np.arange(16, dtype="float32"), session.cpu())
    y = nd.empty((16,), "float32", session.cpu())
    module["addone"](x, y)
    assert np.array_equal(y.numpy(), np.arange(16) + 1)
    module(x, y)
    times = module.time_evaluator("addone", session.cpu(), number=3, repeat=4)(x, y)
    assert len(times.results) == 4 and 0 < times.mean < 1
    rested = module.time_evaluator(
        "addone", session.cpu(), number=1, repeat=3, cooldown_interval_ms=1, repeats_to_cooldown=2
    )
    assert len(rested(x, y).results) == 3
    with pytest.raises(AttributeError, match="no function 'nonsense'"):
        module["nonsense"]
    with pytest.raises(ValueError, match="use a device of the session"):
        module.time_evaluator("addone", tvm.cpu())
    with pytest.raises(RPCError):  # a wrong argument is the call's error, and not the end of the session
        module["addone"](x)
    assert session.system_lib().type_key == "system_lib"


def test_files(session):
    session.upload(b"content", "a/file.txt")
    assert session.listdir() == ["a/"] and session.listdir("a") == ["file.txt"]
    assert session.download("a/file.txt") == bytearray(b"content")
    session.get_function("tvm.rpc.server.upload")("other", b"x")
    assert session.get_function("tvm.rpc.server.download")("other") == b"x"
    session.get_function("tvm.rpc.server.remove")("other")
    session.remove("a/file.txt")
    with pytest.raises(FileNotFoundError):
        session.download("a/file.txt")
    for path in ("../x", "/etc/passwd"):
        with pytest.raises(PermissionError):
            session.upload(b"", path)
        with pytest.raises(PermissionError):
            session.download(path)


def test_objects_are_freed(session):
    """What the client drops, the server drops."""
    for _ in range(50):
        nd.array(np.ones(1000, "float32"), session.cpu())
    echo = session.get_function("testing.echo")
    first = nd.empty((1,), "float32", session.cpu()).remote_handle
    assert echo(1) == 1
    with pytest.raises(ValueError, match="no object with the handle"):
        echo(RemoteArray(session._sess, first, (1,), tvm.DataType("float32"), session.cpu()))


def test_a_closed_session_says_so(session):
    echo = session.get_function("testing.echo")
    session.close()
    with pytest.raises(RPCError, match="has ended"):
        echo(1)
