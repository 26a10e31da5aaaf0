"""Loops, conditions and threads of scripts."""

# ruff: noqa: F821, SIM201

from __future__ import annotations

import numpy as np
from tests.te.hybrid.checks import check_everywhere, close

import tilewright as tvm
from tilewright import te
from tilewright.te.hybrid import script


def test_kinds_of_loops() -> None:
    """Parallel, vectorised, unrolled and serial loops keep their kind."""

    @script
    def kinds(a, b, c):
        d = output_tensor((16,), "int32")
        e = output_tensor((16,), "int32")
        f = output_tensor((16,), "int32")
        g = output_tensor((16,), "int32")
        for i in parallel(16):
            d[i] = a[i]
        for j in vectorize(16):
            e[j] = b[j]
        for k in unroll(16):
            f[k] = c[k]
        for l in serial(16):
            g[l] = c[l] + 1
        return d, e, f, g

    arguments = [te.placeholder((16,), "int32", name=name) for name in "abc"]
    outputs = kinds(*arguments)
    kind = tvm.tir.ForKind
    assert [loop.kind for loop in outputs[0].op.body] == [
        kind.PARALLEL,
        kind.VECTORIZED,
        kind.UNROLLED,
        kind.SERIAL,
    ]
    check_everywhere(kinds, arguments)


def test_ranges() -> None:
    """Ranges start where they say and step as they say, downwards too; an empty one does nothing."""

    @script
    def steps(a):
        b = output_tensor((12,), a.dtype)
        for i in range(2, 6):
            b[i - 2] = a[i]
        for i in range(1, 12, 4):
            b[4 + i // 4] = a[i]
        for i in range(11, 7, -1):
            b[i] = a[i] * 2.0
        for i in range(5, 3):
            b[i] = 100.0
        for i, j in grid(1, 1):
            b[7 + i + j] = a[i] + a[j]
        return b

    check_everywhere(steps, [te.placeholder((12,), name="a")])


def test_conditions() -> None:
    """if, elif, else; conditional expressions; chained comparisons; and, or, not."""

    @script
    def choose(a):
        b = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            if i == 0 or i == a.shape[0] - 1:
                b[i] = 1.5
            elif 2 <= i < 5 and not i == 3:
                b[i] = a[i] if a[i] > 0.0 else -a[i]
            elif a[i] * a[i - 1] < a[i] or a[i - 1] > 1.0:
                b[i] = a[i - 1]
            else:
                b[i] = a[i] if i % 2 else 0.25
        return b

    check_everywhere(choose, [te.placeholder((16,), name="a")])


def test_memory_is_not_read_where_an_operand_decided() -> None:
    """The right side of ``and`` is not evaluated if the left one is false: it may be outside the tensor."""

    @script
    def before(a):
        b = output_tensor(a.shape, "int32")
        for i in range(a.shape[0]):
            b[i] = 1 if i > 0 and a[i - 1] > 0.0 else 0
        return b

    a = te.placeholder((6,), name="a")
    b = before(a)
    with tvm.transform.PassContext(config={"tir.instrument_bound_checkers": True}):
        function = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    values = np.array([1, -1, 1, 1, -1, 1], "float32")
    found = np.zeros(6, "int32")
    function(values, found)
    assert found.tolist() == [0, 1, 0, 1, 1, 0]
    check_everywhere(before, [a])


def test_constants_choose_code() -> None:
    """A condition on constants is decided when the script is parsed; the other branch need not make sense."""

    @script
    def scaled(a, factor, wanted):
        b = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            if wanted == "twice" and a.dtype == "float32":
                b[i] = a[i] * 2.0
            elif factor < 0:
                b[i] = a[i, i, i]
            else:
                b[i] = a[i] * factor
        return b

    a = te.placeholder((4,), name="a")
    twice = scaled(a, -1, "twice").op.body
    assert isinstance(twice.body, tvm.tir.ProducerStore)
    check_everywhere(scaled, [a, 3.0, "plain"])


def test_constant_loops() -> None:
    """``const_range`` is unrolled when the script is parsed, so that its variable indexes constants."""

    @script
    def sums(a, b):
        c = output_tensor(a.shape, a.dtype)
        d = output_tensor(a.shape, "int32")
        for i in const_range(2):
            for j in const_range(5):
                c[i, j] = float32(int32(a[i, j]) + b[i, j])
        for i in const_range(len(b)):
            for j in const_range(len(b[0])):
                d[i, j] = int32(a[i, j] + b[i, j])
        return c, d

    a = te.placeholder((2, 5), name="a")
    b = np.array([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]])
    listed = sums(a, tvm.convert(b.tolist()))
    assert not any(isinstance(part, tvm.tir.For) for part in listed[0].op.body)
    check_everywhere(sums, [a, b])


def test_local_memory_in_constant_loops() -> None:
    """Each copy of an unrolled body has variables of its own."""

    @script
    def last(a, b):
        c = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            for j in const_range(len(b)):
                d = a[i] * b[j]
                d += a[i] + b[j]
                c[i] = d
            for x in (1, 2):
                c[i] += x
            for x, y in ((1, 2), (3, 4)):
                c[i] += x * y
        return c

    check_everywhere(last, [te.placeholder((5,), "int32", name="a"), (1, 2, 3)])


def test_threads() -> None:
    """A loop bound to a thread runs on it; ``max_num_threads`` asks the target."""

    @script
    def threads(a):
        b = output_tensor(a.shape, a.dtype)
        n = a.shape[0]
        m = max_num_threads(True)
        for i in bind("threadIdx.x", m):
            for j in range(ceil_div(n, m)):
                if likely(i * ceil_div(n, m) + j < n):
                    b[i * ceil_div(n, m) + j] = a[i * ceil_div(n, m) + j] * 2.0
        return b

    a = te.placeholder((3000,), name="a")
    values = np.random.default_rng(0).random(3000, "float32")
    with tvm.target.Target("cuda"):
        b = threads(a)
        close(threads(values), values * 2)
        source = tvm.build(te.create_schedule(b.op), [a, b], "cuda", "llvm").imported_modules[0].get_source()
    assert b.op.body.node.thread_tag == "threadIdx.x" and b.op.body.value.value == 1024
    assert "threadIdx.x" in source
    found = np.zeros(3000, "float32")
    tvm.tir.interpreter.interpret(tvm.lower(te.create_schedule(b.op), [a, b])["main"], values, found)
    close(found, values * 2)


def test_memory_that_threads_share() -> None:
    """Shared memory is synchronised; a variable inside threads belongs to one of them."""

    @script
    def turned(a):
        b = output_tensor((64,), a.dtype)
        for block in bind("blockIdx.x", 2):
            rows = allocate((32,), a.dtype, "shared")
            for thread in bind("threadIdx.x", 32):
                rows[thread] = a[block * 32 + thread]
                t = rows[31 - thread]
                t += 1.0
                b[block * 32 + thread] = t
        return b

    a = te.placeholder((64,), name="a")
    b = turned(a)
    module = tvm.build(te.create_schedule(b.op), [a, b], "cuda", "llvm")
    source = module.imported_modules[0].get_source()
    assert "__shared__" in source and "__syncthreads()" in source
    values = np.arange(64, dtype="float32")
    found = np.zeros(64, "float32")
    synchronised = tvm.tir.transform.ThreadSync("shared")(tvm.lower(te.create_schedule(b.op), [a, b]))
    tvm.tir.interpreter.interpret(synchronised["main"], values, found)
    close(found, values.reshape(2, 32)[:, ::-1].reshape(64) + 1)


def test_variables_in_vector_and_parallel_loops() -> None:
    """Each iteration has variables of its own, however the loop runs."""

    @script
    def clipped(a):
        b = output_tensor((16,), a.dtype)
        c = output_tensor((64,), a.dtype)
        for i in vectorize(16):
            t = a[i]
            t += 1.0
            if t > 0.0:
                t = t * 2.0
            b[i] = t
        for i in parallel(64):
            t = a[i]
            large = False
            for j in range(5):
                t += a[(i + j) % 64]
                if t > 3.0:
                    large = True
            c[i] = t if large else 0.0
        return b, c

    check_everywhere(clipped, [te.placeholder((64,), name="a")])
