"""Sparse kernels of graph networks: products of an adjacency with features, and of features at each edge.

Run it:  python -m tilewright.as_tvm examples/tutorials/sparse_kernels.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import te

num_rows, num_cols, nnz, feat = 20, 16, 60, 32
rng = np.random.default_rng(2)
dense = np.zeros((num_rows, num_cols), "float32")
dense.reshape(-1)[rng.choice(dense.size, nnz, replace=False)] = rng.standard_normal(nnz)
rows, cols = np.nonzero(dense)
indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=num_rows))]).astype("int32")
features = rng.standard_normal((num_cols, feat)).astype("float32")


def spmm(reduce, identity):
    """``out[row] = reduce(weight * features[col])`` over the edges of a row, written with the IR builder."""
    Indptr = te.placeholder((num_rows + 1,), "int32", "indptr")
    Indices = te.placeholder((nnz,), "int32", "indices")
    Weights = te.placeholder((nnz,), "float32", "weights")
    Feat = te.placeholder((num_cols, feat), "float32", "feat")

    def generate(ins, outs):
        ib = tvm.tir.ir_builder.create()
        indptr_ptr, indices_ptr, weights_ptr, feat_ptr = (ib.buffer_ptr(one) for one in ins)
        out = ib.buffer_ptr(outs[0])
        with ib.for_range(0, num_rows, name="row", kind="parallel") as row:
            with ib.for_range(0, feat, name="f", kind="vectorize") as f:
                out[row * feat + f] = identity
            with ib.for_range(0, indptr_ptr[row + 1] - indptr_ptr[row], name="e") as e:
                edge = indptr_ptr[row] + e
                with ib.for_range(0, feat, name="f", kind="vectorize") as f:
                    message = weights_ptr[edge] * feat_ptr[indices_ptr[edge] * feat + f]
                    out[row * feat + f] = reduce(out[row * feat + f], message)
        return ib.get()

    Out = te.extern(
        (num_rows, feat), [Indptr, Indices, Weights, Feat], generate, dtype="float32", name="spmm"
    )
    return tvm.build(te.create_schedule(Out.op), [Indptr, Indices, Weights, Feat, Out], "llvm")


arrays = [tvm.nd.array(one) for one in (indptr, cols.astype("int32"), dense[rows, cols], features)]
out = tvm.nd.empty((num_rows, feat))
spmm(lambda x, y: x + y, tvm.tir.const(0, "float32"))(*arrays, out)
tvm.testing.assert_allclose(out.numpy(), dense @ features, rtol=1e-4, atol=1e-5)
spmm(tvm.te.max, tvm.tir.min_value("float32"))(*arrays, out)
row = int(rows[0])
best = (dense[row, cols[rows == row], None] * features[cols[rows == row]]).max(axis=0)
tvm.testing.assert_allclose(out.numpy()[row], best, rtol=1e-5)

# At each edge, the product of the features of its ends: a computation with indices read from tensors.
Row, Col = te.placeholder((nnz,), "int32", "row"), te.placeholder((nnz,), "int32", "col")
Src, Dst = te.placeholder((num_rows, feat), name="src"), te.placeholder((num_cols, feat), name="dst")
k = te.reduce_axis((0, feat), name="k")
Edge = te.compute((nnz,), lambda e: te.sum(Src[Row[e], k] * Dst[Col[e], k], axis=k), name="sddmm")
s = te.create_schedule(Edge.op)
eo, ei = s[Edge].split(Edge.op.axis[0], nparts=4)
s[Edge].parallel(eo)
ko, ki = s[Edge].split(k, factor=8)
s[Edge].unroll(ki)
left = rng.standard_normal((num_rows, feat)).astype("float32")
edges = tvm.nd.empty((nnz,))
given = [tvm.nd.array(one) for one in (rows.astype("int32"), cols.astype("int32"), left, features)]
tvm.build(s, [Row, Col, Src, Dst, Edge], "llvm")(*given, edges)
tvm.testing.assert_allclose(edges.numpy(), (left @ features.T)[rows, cols], rtol=1e-4, atol=1e-5)
