"""FuseAttention: two products with a softmax between them are one operator."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.testing import run_opt_pass

BATCH, TOKENS, HEADS, SIZE = 2, 10, 3, 4
WIDTH = HEADS * SIZE


def of_heads(expr, axes=(0, 2, 1, 3)):
    """(batch, tokens, width) as (batch * heads, ...)."""
    apart = relay.transpose(relay.reshape(expr, (BATCH, TOKENS, HEADS, SIZE)), axes)
    shape = {(0, 2, 1, 3): (-1, TOKENS, SIZE), (0, 2, 3, 1): (-1, SIZE, TOKENS)}[axes]
    return relay.reshape(apart, shape)


def together(expr):
    """(batch * heads, tokens, size) as (batch, tokens, width)."""
    apart = relay.reshape(expr, (BATCH, HEADS, TOKENS, SIZE))
    return relay.reshape(relay.transpose(apart, (0, 2, 1, 3)), (BATCH, TOKENS, WIDTH))


def operands():
    """Query, key and value."""
    return [relay.var(name, shape=(BATCH, TOKENS, WIDTH)) for name in "qkv"]


def scores_of(query, key):
    """(batch, heads, queries, keys)."""
    product = relay.nn.batch_matmul(of_heads(query), of_heads(key))
    return relay.reshape(product, (BATCH, HEADS, TOKENS, TOKENS))


def weighted(scores, value):
    """The second half."""
    weights = relay.reshape(relay.nn.softmax(scores, axis=-1), (-1, TOKENS, TOKENS))
    return together(relay.nn.batch_matmul(weights, of_heads(value), transpose_b=False))


def names_of(function):
    """How often each operator is called."""
    found = {}

    def visit(expr):
        if isinstance(expr, relay.Call):
            found[expr.op.name] = found.get(expr.op.name, 0) + 1

    relay.analysis.post_order_visit(function, visit)
    return found


def fused(expr):
    """The function after the pass, and after transposes have cancelled."""
    function = relay.Function(relay.analysis.free_vars(expr), expr)
    made = run_opt_pass(function, relay.transform.FuseAttention())
    return run_opt_pass(made, relay.transform.SimplifyExpr())


def the_call(function):
    """The one call of the operator."""
    found = []
    relay.analysis.post_order_visit(
        function,
        lambda expr: (
            found.append(expr)
            if isinstance(expr, relay.Call) and expr.op.name == "nn.contrib_attention"
            else None
        ),
    )
    assert len(found) == 1
    return found[0]


def same_numbers(expr, rtol=1e-5):
    """What is compiled with the pass gives what the reference gives without it."""
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(expr), expr))
    typed = relay.transform.InferType()(module)
    random = np.random.default_rng(7)
    arrays = []
    for parameter in typed["main"].params:
        shape, dtype = parameter.checked_type.concrete_shape, str(parameter.checked_type.dtype)
        drawn = random.normal(size=shape)
        arrays.append((drawn > 0) if dtype == "bool" else drawn.astype(dtype))
    with tvm.transform.PassContext(opt_level=3):
        found = relay.create_executor("graph", module, tvm.cpu(), "llvm").evaluate()(*arrays).numpy()
    wanted = relay.create_executor("debug", module, tvm.cpu(), "llvm").evaluate()(*arrays).numpy()
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-5)


def test_heads_are_read_where_they_lie():
    """No transpose is left: operands and result have tokens before heads."""
    query, key, value = operands()
    expr = weighted(scores_of(query, key), value)
    function = fused(expr)
    assert names_of(function) == {"nn.contrib_attention": 1, "reshape": 4}
    attrs = the_call(function).attrs
    assert attrs.layouts == ("NTHC",) * 4 and attrs.heads == HEADS and attrs.scale == 1.0
    same_numbers(expr)


@pytest.mark.parametrize("axes", [(0, 2, 1, 3), (0, 2, 3, 1)])
def test_factors(axes):
    """Factors of operands and scores are one."""
    query, key, value = operands()
    left, right = of_heads(query) * relay.const(2.0), relay.const(0.5) * of_heads(key, axes)
    product = relay.nn.batch_matmul(left, right, transpose_b=axes[2] == 1)
    scores = relay.reshape(product, (BATCH, HEADS, TOKENS, TOKENS)) / relay.const(4.0)
    expr = weighted(scores, value)
    assert the_call(fused(expr)).attrs.scale == 0.25
    same_numbers(expr)


@pytest.mark.parametrize(
    "shape", [(TOKENS,), (TOKENS, TOKENS), (BATCH, 1, 1, TOKENS), (BATCH, HEADS, TOKENS, TOKENS)]
)
def test_masks_that_are_added(shape):
    """A mask of any shape that scores can be added to, before or after them; two masks are one."""
    query, key, value = operands()
    mask, other = relay.var("mask", shape=shape), relay.var("other", shape=(1, 1, 1, TOKENS))
    expr = weighted(other + (scores_of(query, key) * relay.const(0.25) + mask), value)
    assert names_of(fused(expr))["nn.contrib_attention"] == 1
    same_numbers(expr)


@pytest.mark.parametrize("negated", [False, True])
def test_masks_by_where(negated):
    """``where`` with minus infinity is a mask."""
    query, key, value = operands()
    keep = relay.const(np.tri(TOKENS) > 0)
    lowest = relay.const(np.full((BATCH, HEADS, TOKENS, TOKENS), -np.inf, "float32"))
    scores = scores_of(query, key)
    masked = (
        relay.where(relay.logical_not(keep), lowest, scores) if negated else relay.where(keep, scores, lowest)
    )
    expr = weighted(masked, value)
    assert names_of(fused(expr))["nn.contrib_attention"] == 1
    same_numbers(expr)


def test_parts_of_one_projection():
    """Operands that are split off one tensor are read in it."""
    whole = relay.var("whole", shape=(BATCH, TOKENS, 3 * WIDTH))
    query, key, value = relay.split(whole, 3, axis=-1)
    expr = weighted(scores_of(query, key), value)
    function = fused(expr)
    assert "split" not in names_of(function)
    assert the_call(function).attrs.first_heads == (0, HEADS, 2 * HEADS)
    same_numbers(expr)


@pytest.mark.parametrize("last", [0, -WIDTH])
def test_slices_of_one_projection(last):
    """Operands that are slices of one tensor along its last axis only."""
    whole = relay.var("whole", shape=(BATCH, TOKENS, 3 * WIDTH))
    begins, ends = (0, WIDTH, last or 2 * WIDTH), (WIDTH, 2 * WIDTH, 3 * WIDTH)
    query, key, value = (
        relay.strided_slice(whole, [begin], [end], axes=[2]) for begin, end in zip(begins, ends, strict=True)
    )
    expr = weighted(scores_of(query, key), value)
    function = fused(expr)
    assert "strided_slice" not in names_of(function)
    assert the_call(function).attrs.first_heads == (0, HEADS, 2 * HEADS)
    same_numbers(expr)


def test_rows_that_are_cleared():
    """A choice between the result and zero is no reason to write the result in another order and transpose it."""
    query, key, value = operands()
    seen = relay.var("seen", shape=(BATCH, 1, TOKENS, 1), dtype="bool")
    weights = relay.reshape(relay.nn.softmax(scores_of(query, key), axis=-1), (-1, TOKENS, TOKENS))
    product = relay.nn.batch_matmul(weights, of_heads(value), transpose_b=False)
    cleared = relay.where(seen, relay.reshape(product, (BATCH, HEADS, TOKENS, SIZE)), relay.const(0.0))
    expr = relay.reshape(relay.transpose(cleared, (0, 2, 1, 3)), (BATCH, TOKENS, WIDTH))
    function = fused(expr)
    assert the_call(function).attrs.layouts == ("NTHC",) * 4
    # Only the condition, which has one element for each token, is transposed.
    assert names_of(function)["transpose"] == 1
    same_numbers(expr)


def test_three_dimensions():
    """Products of plain batches, whose scores have no heads."""
    query, key, value = (relay.var(name, shape=(3, 9, 5)) for name in "qkv")
    mask = relay.var("mask", shape=(3, 1, 9))
    scores = relay.nn.batch_matmul(query, key) + mask
    expr = relay.nn.batch_matmul(relay.nn.softmax(scores), value, transpose_b=False)
    assert names_of(fused(expr))["nn.contrib_attention"] == 1
    same_numbers(expr)


def _not_along_keys(query, key, value):
    product = relay.reshape(relay.nn.softmax(scores_of(query, key), axis=2), (-1, TOKENS, TOKENS))
    return together(relay.nn.batch_matmul(product, of_heads(value), transpose_b=False))


def _scores_are_read_twice(query, key, value):
    scores = scores_of(query, key)
    return relay.Tuple([weighted(scores, value), scores])


def _factor_of_the_masked(query, key, value):
    mask = relay.var("mask", shape=(TOKENS,))
    return weighted((scores_of(query, key) + mask) * relay.const(0.5), value)


def _finite_where(query, key, value):
    keep = relay.const(np.tri(TOKENS) > 0)
    low = relay.const(np.full((BATCH, HEADS, TOKENS, TOKENS), -1e9, "float32"))
    return weighted(relay.where(keep, scores_of(query, key), low), value)


def _few_queries(query, key, value):
    left, right = relay.var("left", shape=(6, 1, 4)), relay.var("right", shape=(6, 4, 20))
    weights = relay.nn.softmax(relay.nn.batch_matmul(left, right, transpose_b=False))
    return relay.nn.batch_matmul(weights, right)


@pytest.mark.parametrize(
    "make", [_not_along_keys, _scores_are_read_twice, _factor_of_the_masked, _finite_where, _few_queries]
)
def test_what_stays(make):
    """Another axis, scores that are wanted, a factor of the mask too, a ``where`` that leaves weight to what is masked,
    and a single query with keys whose channels are not contiguous stay two products."""
    found = names_of(fused(make(*operands())))
    assert "nn.contrib_attention" not in found and found["nn.softmax"] == 1


def test_switched_off():
    """``disabled_pass`` leaves the products, and so does the target of another device."""
    query, key, value = operands()
    module = tvm.IRModule.from_expr(weighted(scores_of(query, key), value))
    typed = relay.transform.InferType()(module)
    passes = tvm.transform.Sequential([relay.transform.FuseAttention()])
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["FuseAttention"]):
        assert "nn.softmax" in names_of(passes(typed)["main"])
    with tvm.target.Target("cuda"):
        assert "nn.softmax" in names_of(passes(typed)["main"])


def _repeated(data, times, by_repeat):
    """(batch, heads, tokens, channels), each head several times in a row."""
    if by_repeat:
        return relay.repeat(data, times, 1)
    apart = relay.broadcast_to(relay.expand_dims(data, 2), (1, 2, times, 24, 8))
    return relay.reshape(apart, (1, 2 * times, 24, 8))


@pytest.mark.parametrize("by_repeat", [False, True])
@pytest.mark.parametrize("queries", [1, 24])
def test_shared_heads_and_causal_masks(by_repeat, queries):
    """Keys and values that several heads of queries share are not repeated, and a constant causal mask is an attribute,
    whichever number hides."""
    query = relay.reshape(relay.var("q", shape=(1, 6, queries, 8)), (6, queries, 8))
    key, value = (
        relay.reshape(_repeated(relay.var(name, shape=(1, 2, 24, 8)), 3, by_repeat), (6, 24, 8))
        for name in "kv"
    )
    diagonal = 24 - queries
    hidden = -np.inf if by_repeat else np.finfo("float32").min
    mask = np.where(np.tri(queries, 24, diagonal, dtype=bool), 0, hidden).astype("float32")
    scores = relay.add(relay.nn.batch_matmul(query, key), relay.const(mask))
    made = relay.nn.batch_matmul(relay.nn.softmax(scores), value, transpose_b=False)
    found = names_of(fused(made))
    assert not {"repeat", "broadcast_to", "nn.softmax"} & set(found)
    attrs = the_call(fused(made)).attrs
    assert (attrs.shared, attrs.diagonal, attrs.heads) == (3, diagonal, 6)
    same_numbers(made)


def test_other_constant_masks_are_added():
    """A mask that is not triangular, or hides nothing for good, stays an operand."""
    query, key = relay.var("q", shape=(2, 16, 8)), relay.var("k", shape=(2, 16, 8))
    for hidden, diagonal in ((-10000.0, 0), (-np.inf, 3)):
        mask = np.where(np.tri(16, 16, diagonal, dtype=bool), 0, hidden).astype("float32")
        mask[3, 0] = hidden
        scores = relay.add(relay.nn.batch_matmul(query, key), relay.const(mask))
        made = relay.nn.batch_matmul(relay.nn.softmax(scores), key, transpose_b=False)
        call = the_call(fused(made))
        assert call.attrs.diagonal is None and len(call.args) == 4


@pytest.mark.parametrize("queries", [1, 24])
def test_heads_that_are_rows_of_one_product(queries):
    """Heads of queries that share keys may be rows of one product: a mask of each batch still fits, and a causal one is
    an attribute."""
    batch, heads, shared = 2, 6, 2
    rows = heads // shared * queries
    query = relay.reshape(relay.var("q", shape=(batch, heads, queries, 8)), (batch * shared, rows, 8))
    key, value = (
        relay.reshape(relay.var(name, shape=(batch, shared, 24, 8)), (batch * shared, 24, 8)) for name in "kv"
    )
    causal = np.where(np.tri(queries, 24, 24 - queries, dtype=bool), 0, -np.inf).astype("float32")
    given = relay.var("mask", shape=(batch, 1, 1, 24))
    scores = relay.reshape(relay.nn.batch_matmul(query, key), (batch, heads, queries, 24))
    weights = relay.nn.softmax(relay.add(relay.add(scores, relay.const(causal)), given))
    made = relay.nn.batch_matmul(relay.reshape(weights, (batch * shared, rows, 24)), value, transpose_b=False)
    attrs = the_call(fused(made)).attrs
    assert (attrs.shared, attrs.diagonal, attrs.heads) == (3, 24 - queries, 6)
    same_numbers(made)
