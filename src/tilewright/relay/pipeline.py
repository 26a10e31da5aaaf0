"""The graph-level passes in the order in which they run, in a straight line.

A comment at each group says what holds after it. A pass runs if the context's level is at least the pass's own.
"""

from __future__ import annotations

from tilewright.ir.transform import Pass
from tilewright.relay import qnn, transform
from tilewright.relay.target import rewrites_for
from tilewright.target import Target


def prepare_passes(target: Target | None) -> list[Pass]:
    """For the graph executor and the virtual machine alike: a smaller program that means the same. Where there are
    several targets, none is given, and what only one kind of device wants is left out."""
    return [
        transform.RemoveUnusedFunctions(),
        # Arithmetic on dequantised tensors is on integers now, where it may be.
        transform.SinkDequantize(),
        *(one() for one in rewrites_for(target).quantized_passes),
        # From here on there is no operator of the quantised dialect.
        qnn.transform.Legalize(),
        qnn.transform.CanonicalizeOps(),
        # Only where it is asked for; before the frontend's own index arithmetic is rewritten.
        transform.CheckIndices(),
        # From here on no expression is shared between a branch and what is outside it.
        transform.ToBasicBlockNormalForm(),
        transform.Legalize(),
        # From here on there is no batch_norm, dropout or other operator that only matters in training.
        transform.SimplifyInference(),
        # Transposed weights share the memory of the model's until they are put into blocks, or up to the end.
        transform.DynamicToStatic(views=True),
        transform.EliminateCommonSubexpr(),
        # Shapes that follow from open dimensions are in the types now.
        transform.ResolveReshapes(),
        transform.SimplifyExpr(),
        transform.FoldTransposeIntoDense(),
        # Before scales are folded: a batch norm may follow the slice.
        transform.TrimConvolution(),
        *(one() for one in rewrites_for(target).early_passes),
        transform.CombineParallelConv2D(3),
        *_combine_dense(target),
        transform.CombineParallelBatchMatmul(3),
        transform.FoldConstant(views=True),
        transform.FoldScaleAxis(),
        transform.CanonicalizeCast(),
        transform.CanonicalizeOps(),
        transform.DropDeadTaps(),
        # What only this kind of device wants.
        *(one() for one in rewrites_for(target).passes),
        # A bias and the shift of a batch norm after it are two constants in a row now.
        transform.FoldConstant(views=True),
        *(one() for one in rewrites_for(target).folded_passes),
        transform.MultiplyByReciprocal(),
        # Transposes around attention cancel in what comes next.
        transform.FuseAttention(),
        transform.SimplifyExpr(),
        # What follows a product elementwise is next to it now, for FuseOps to find.
        transform.SinkReshape(),
        transform.FindChannelShuffle(),
        # Layouts are the target's: it is the current one when this runs.
        transform.AlterOpLayout(),
        transform.ReshapeUnmoved(),
        # With channels-last images, a residual meets the product that it is added to.
        transform.SinkReshape(),
        transform.FastMath(),
        transform.FoldConstant(views=True),
        # From here on the elements of every constant are in the order of its indices.
        transform.CompactConstants(),
    ]


def fusing_passes(target: Target, views: bool = False) -> list[Pass]:
    """From here on the program only calls primitive functions, including those for external code generators.
    ``views`` says that the executor can have operands written directly into their concatenation."""
    inline = transform.Inline()
    # At every level: executors call functions of other code generators where they occur.
    inline.opt_level = 0
    return [
        transform.FuseOps(views=views),
        inline,
        transform.InferType(),
        *(one() for one in rewrites_for(target).fused_passes),
        # Only within a scope of schedules that were found by search.
        transform.AutoSchedulerLayoutRewrite(),
    ]


def _combine_dense(target: Target | None) -> list[Pass]:
    """Dense layers of one tensor, combined as the target likes it."""
    made = transform.CombineParallelDense(3)
    if not rewrites_for(target).joins_dense:
        return [made]
    made.to_batch, made.opt_level = False, 3
    # A bias is next to its product then, and becomes a part of the joined one.
    return [transform.SinkReshape(), made]
