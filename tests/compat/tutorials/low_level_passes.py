"""A pass of one's own over loops, and C-like code of one's own inside a tensor intrinsic."""

import numpy as np

import tvm
from tvm import te

n = tvm.tir.const(128, "int32")
a = te.placeholder((n,), name="a")
b = te.placeholder((n,), name="b")
c = te.compute((n,), lambda i: a[i] + b[i], name="c")
schedule = te.create_schedule(c.op)

loops = []


def find_loops_of_eight(op):
    if isinstance(op, tvm.tir.For) and isinstance(op.extent, tvm.tir.IntImm) and op.extent.value % 8 == 0:
        loops.append(op)


def in_eights(op):
    if op not in loops:
        return None
    outer, inner = te.var(op.loop_var.name + ".outer"), te.var(op.loop_var.name + ".inner")
    body = tvm.tir.stmt_functor.substitute(op.body, {op.loop_var: outer * 8 + inner})
    body = tvm.tir.For(inner, 0, 8, tvm.tir.ForKind.VECTORIZED, body)
    return tvm.tir.For(outer, 0, op.extent.value // 8, tvm.tir.ForKind.SERIAL, body)


@tvm.tir.transform.prim_func_pass(opt_level=0)
def vectorize(f, mod, ctx):
    tvm.tir.stmt_functor.post_order_visit(f.body, find_loops_of_eight)
    return f.with_body(tvm.tir.stmt_functor.ir_transform(f.body, None, in_eights, ["tir.For"]))


with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, vectorize)]}):
    lowered = tvm.lower(schedule, [a, b, c])
assert "ramp" in str(lowered) and len(loops) == 1

function = tvm.build(lowered, target="llvm")
one, two = (np.random.default_rng(seed).random(128, dtype="float32") for seed in (0, 1))
three = tvm.nd.empty((128,))
function(tvm.nd.array(one), tvm.nd.array(two), three)
np.testing.assert_allclose(three.numpy(), one + two)

# A body in LLVM's language, as contrib.clang.create_llvm makes it of C.
ROWS, COLUMNS, DEPTH = 8, 16, 32
A = te.placeholder((ROWS, DEPTH), name="A")
B = te.placeholder((COLUMNS, DEPTH), name="B")
k = te.reduce_axis((0, DEPTH), name="k")
C = te.compute((ROWS, COLUMNS), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
CODE = """
define i32 @dot_reset(ptr %to) {
  store float 0.0, ptr %to
  ret i32 0
}
define i32 @dot_update(ptr %to, ptr %one, ptr %other, i32 %count) {
entry:
  br label %loop
loop:
  %i = phi i32 [0, %entry], [%next, %loop]
  %p = getelementptr float, ptr %one, i32 %i
  %q = getelementptr float, ptr %other, i32 %i
  %x = load float, ptr %p
  %y = load float, ptr %q
  %xy = fmul float %x, %y
  %old = load float, ptr %to
  %new = fadd float %old, %xy
  store float %new, ptr %to
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
"""


def dot(count):
    x = te.placeholder((count,), name="x")
    y = te.placeholder((count,), name="y")
    r = te.reduce_axis((0, count), name="r")
    z = te.compute((1,), lambda i: te.sum(x[r] * y[r], axis=r), name="z")
    buffers = [
        tvm.tir.decl_buffer(t.shape, t.dtype, name=t.op.name, offset_factor=1, strides=[1]) for t in (x, y, z)
    ]

    def intrinsic(ins, outs):
        to = outs[0].access_ptr("w")
        update = tvm.tir.call_extern(
            "int32", "dot_update", to, ins[0].access_ptr("r"), ins[1].access_ptr("r"), count
        )
        reset = tvm.tir.call_extern("int32", "dot_reset", to)
        return None, tvm.tir.Evaluate(reset), tvm.tir.Evaluate(update)

    return te.decl_tensor_intrin(z.op, intrinsic, binds=dict(zip((x, y, z), buffers)))


s = te.create_schedule(C.op)
i, j = C.op.axis
j_outer, j_inner = s[C].split(j, factor=1)
k_outer, k_inner = s[C].split(k, factor=8)
s[C].reorder(i, j_outer, k_outer, j_inner, k_inner)
s[C].tensorize(j_inner, dot(8))
s[C].pragma(i, "import_llvm", CODE)
function = tvm.build(s, [A, B, C], target="llvm")
left, right = (
    np.random.default_rng(seed).random((size, DEPTH), dtype="float32")
    for seed, size in ((2, ROWS), (3, COLUMNS))
)
result = tvm.nd.empty((ROWS, COLUMNS))
function(tvm.nd.array(left), tvm.nd.array(right), result)
np.testing.assert_allclose(result.numpy(), left @ right.T, rtol=1e-5)
