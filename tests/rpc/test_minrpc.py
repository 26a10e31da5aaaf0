"""Functions and a server in one program."""

import os
import shutil
import stat

import numpy as np
import pytest

import tilewright as tvm
from tilewright import rpc, te
from tilewright.contrib import cc


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
def test_a_program_with_its_functions(tmp_path):
    n = te.var("n")
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="b")
    library = tvm.build(te.create_schedule(b.op), [a, b], "llvm --system-lib", name="minrpc_add")
    program = tmp_path / "there"
    library.export_library(str(program), fcompile=rpc.with_minrpc(cc.create_executable))
    remote = rpc.PopenSession(str(program))
    x = tvm.nd.array(np.arange(10, dtype="float32"), remote.cpu())
    y = tvm.nd.empty((10,), "float32", remote.cpu())
    functions = remote.system_lib()
    functions["minrpc_add"](x, y)
    np.testing.assert_array_equal(y.numpy(), np.arange(10) + 1)
    assert functions.time_evaluator("minrpc_add", remote.cpu(), number=1)(x, y).mean > 0
    remote.close()
    os.chmod(program, stat.S_IRUSR)
    with pytest.raises(ValueError, match="not executable"):
        rpc.PopenSession(str(program))


def test_what_cannot_be_linked_is_told():
    with pytest.raises(ValueError, match="no server 'bare'"):
        rpc.with_minrpc(cc.create_executable, server="bare")
    with pytest.raises(TypeError, match="a compile function"):
        rpc.with_minrpc("cc")
