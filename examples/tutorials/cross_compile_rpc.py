"""Cross-compiling, and running elsewhere: a library for ARM, and a server in this process that stands for a board.

Run it:  python -m tilewright.as_tvm examples/tutorials/cross_compile_rpc.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import rpc, te
from tvm.contrib import utils

n = tvm.runtime.convert(1024)
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
s = te.create_schedule(B.op)
temp = utils.tempdir()

# For a board of another kind, only the target changes; its assembly says what it is for.
board = tvm.build(s, [A, B], target=tvm.target.Target("llvm -mtriple=aarch64-linux-gnu"), name="add_one")
assert "ret" in board.get_source("asm")
board.save(temp.relpath("add_one.o"))

# For a machine like this one, the library is sent to its server and run there.
func = tvm.build(s, [A, B], target="llvm", name="add_one")
path = temp.relpath("lib.tar")
func.export_library(path)

server = rpc.Server(host="127.0.0.1", port=9090, port_end=9190, key="board")
remote = rpc.connect("127.0.0.1", server.port, key="board")
remote.upload(path)
loaded = remote.load_module("lib.tar")

dev = remote.cpu()
a = tvm.nd.array(np.random.uniform(size=1024).astype(A.dtype), dev)
b = tvm.nd.array(np.zeros(1024, dtype=A.dtype), dev)
loaded(a, b)
tvm.testing.assert_allclose(b.numpy(), a.numpy() + 1)
time_f = loaded.time_evaluator(loaded.entry_name, dev, number=10)
print(f"{time_f(a, b).mean:g} seconds for each run on the board")
server.terminate()
