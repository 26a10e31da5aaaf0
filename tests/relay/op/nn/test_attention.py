"""Attention against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.op.definition import RelationError
from tilewright.support.errors import TilewrightError


def expected(query, key, value, mask, scale):
    """Operands are (batch, heads, tokens, channels), the mask (batch, heads, keys, queries)."""
    scores = query.astype("float64") @ key.astype("float64").swapaxes(2, 3) * scale
    if mask is not None:
        scores = scores + mask.astype("float64").swapaxes(2, 3)
    with np.errstate(invalid="ignore"):
        raised = np.exp(scores - scores.max(-1, keepdims=True))
        return raised / raised.sum(-1, keepdims=True) @ value.astype("float64")


def run(arrays, executor="graph", target="llvm", **attributes):
    """The operator's result, compiled or by the reference."""
    parameters = [relay.var(f"p{i}", shape=one.shape, dtype=str(one.dtype)) for i, one in enumerate(arrays)]
    mask = parameters[3] if len(parameters) > 3 else None
    made = relay.nn.contrib_attention(*parameters[:3], mask, **attributes)
    module = tvm.IRModule.from_expr(relay.Function(parameters, made))
    return relay.create_executor(executor, module, tvm.cpu(), target).evaluate()(*arrays).numpy()


def draw(seed, *shape, dtype="float32", size=1.0):
    return (np.random.default_rng(seed).normal(size=shape) * size).astype(dtype)


@pytest.mark.parametrize(
    ("batch", "heads", "queries", "keys", "size", "values", "mask"),
    [
        (1, 1, 1, 1, 1, 1, None),
        (2, 3, 7, 13, 5, 9, (2, 3, 13, 7)),
        (1, 4, 50, 37, 20, 33, (1, 1, 37, 1)),
        (1, 2, 130, 64, 16, 16, (1, 2, 64, 130)),
        (2, 1, 48, 100, 8, 70, (2, 1, 100, 48)),
        (1, 5, 33, 3, 64, 4, None),
    ],
)
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell"])
def test_sizes(batch, heads, queries, keys, size, values, mask, target):
    """Sizes that fill vectors and tiles and that do not, one query and many, on one thread and on all."""
    query, key = draw(1, batch, queries, heads, size), draw(2, batch, keys, heads, size)
    value = draw(3, batch, keys, heads, values)
    added = [] if mask is None else [draw(4, *mask)]
    found = run([query, key, value, *added], heads=heads, scale=size**-0.5, target=target)
    of_heads = [one.transpose(0, 2, 1, 3) for one in (query, key, value)]
    wanted = expected(*of_heads, added[0] if added else None, size**-0.5).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("executor", ["debug", "graph"])
def test_orders_of_operands(executor):
    """Every operand has an order of its own, and the heads may be part of more."""
    query, key, value = draw(1, 2, 3, 9, 6), draw(2, 2, 3, 11, 6), draw(3, 2, 3, 11, 5)
    wanted = expected(query, key, value, None, 0.3)
    layouts = ("CTNH", "NHCT", "TNHC", "HNTC")
    given = []
    for one, layout, before in zip((query, key, value), layouts, (2, 0, 1), strict=False):
        whole = np.concatenate([draw(9, 2, before, *one.shape[2:]), one], axis=1)
        given.append(np.ascontiguousarray(whole.transpose(["NHTC".index(letter) for letter in layout])))
    found = run(given, executor, heads=3, scale=0.3, layouts=layouts, first_heads=(2, 0, 1))
    np.testing.assert_allclose(found, wanted.transpose(1, 0, 2, 3), rtol=1e-5, atol=1e-5)


def test_one_tensor_of_all_operands():
    """Heads of queries, keys and values in one projection."""
    whole = draw(5, 1, 20, 6, 8)
    found = run([whole] * 3, heads=2, scale=0.5, first_heads=(0, 2, 4))
    parts = [whole[:, :, start : start + 2].transpose(0, 2, 1, 3) for start in (0, 2, 4)]
    wanted = expected(*parts, None, 0.5).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_rows_without_keys_and_large_scores():
    """Masked keys count nothing, a query that sees no key has no number as its result, as in the plain form; scores of
    thousands, and masks of the lowest number, do not overflow."""
    query, key, value = draw(1, 1, 12, 1, 8, size=80), draw(2, 1, 12, 1, 8, size=80), draw(3, 1, 12, 1, 8)
    mask = np.where(np.tri(12) > 0, 0, -np.inf).T[None, None].astype("float32")
    mask[..., 5] = -np.inf
    mask[..., 1:, 7] = np.finfo("float32").min
    mask[..., 0, 7] = 0
    found = run([query, key, value, mask], heads=1, scale=1.0)[0, :, 0]
    assert np.isnan(found[5]).all()
    wanted = expected(*[one.transpose(0, 2, 1, 3) for one in (query, key, value)], mask, 1.0)[0, 0]
    rows = [row for row in range(12) if row != 5]
    np.testing.assert_allclose(found[rows], wanted[rows], rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(found[7], value[0, 0, 0])
    np.testing.assert_array_equal(found[0], value[0, 0, 0])


@pytest.mark.parametrize(("dtype", "error"), [("float16", 2e-3), ("float64", 1e-12)])
def test_element_types(dtype, error):
    """Sixteen-bit floats are computed in float32, float64 in float64."""
    arrays = [draw(seed, 1, 19, 2, 16, dtype=dtype) for seed in range(3)]
    found = run(arrays, heads=2, scale=0.25)
    assert found.dtype == dtype
    wanted = expected(*[one.transpose(0, 2, 1, 3) for one in arrays], None, 0.25).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(found, wanted, rtol=error, atol=error)


@pytest.mark.parametrize(
    ("shapes", "attributes", "said"),
    [
        ([(1, 4, 2, 8)] * 2, {}, "perhaps a mask, not 2"),
        ([(1, 4, 2), (1, 4, 2, 8), (1, 4, 2, 8)], {}, "four dimensions, not 3"),
        ([(1, 4, 2, 8), (1, 4, 2, 9), (1, 4, 2, 8)], {}, "9 is not 8|8 is not 9"),
        ([(1, 4, 2, 8), (1, 4, 2, 8), (1, 5, 2, 8)], {}, "tokens of keys and values"),
        ([(1, 4, 2, 8)] * 3, {"heads": 3}, "3 heads from 0 are not among 2"),
        ([(1, 4, 2, 8)] * 3, {"query_layout": "NTHX"}, "an order of N, T, H, C"),
        ([(1, 4, 2, 8)] * 3 + [(1, 1, 1, 4)], {}, "1 for all but the keys"),
        ([(1, 4, 2, 8), (1, 0, 2, 8), (1, 0, 2, 8)], {}, "at least one of each"),
    ],
)
def test_operands_that_do_not_fit(shapes, attributes, said):
    """What does not fit together is said."""
    values = [relay.var(f"p{place}", shape=shape) for place, shape in enumerate(shapes)]
    call = relay.op.calls.call("nn.contrib_attention", *values, **{"heads": 2, **attributes})
    module = tvm.IRModule.from_expr(call)
    with pytest.raises((RelationError, TilewrightError), match=said):
        relay.transform.InferType()(module)


def test_count_of_multiplications():
    """Two products for every pair of query and key."""
    query, other = relay.var("q", shape=(2, 9, 4, 8)), relay.var("k", shape=(2, 5, 4, 8))
    value = relay.var("v", shape=(2, 5, 4, 3))
    module = tvm.IRModule.from_expr(relay.nn.contrib_attention(query, other, value, heads=4))
    typed = relay.transform.InferType()(module)
    assert relay.analysis.get_total_mac_number(typed["main"]) == 2 * 4 * 9 * 5 * (8 + 3)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell"])
@pytest.mark.parametrize(
    ("heads", "shared", "queries", "keys", "size", "diagonal", "mask"),
    [
        (2, 1, 40, 40, 16, 0, None),
        (4, 2, 33, 50, 12, 17, (1, 4, 50, 33)),
        (8, 4, 1, 300, 20, None, None),
        (4, 4, 2, 200, 33, 198, (2, 1, 200, 1)),
        (6, 2, 3, 70, 8, -1, None),
    ],
)
def test_shared_heads_and_causal_masks(heads, shared, queries, keys, size, diagonal, mask, target):
    """Many queries and few, with heads that share keys and keys that queries before them do not see. A query that sees
    none gives NaN."""
    query = draw(1, 2, queries, heads, size)
    key, value = (draw(seed, 2, heads // shared, keys, size) for seed in (2, 3))
    added = [] if mask is None else [draw(4, *mask)]
    attributes = {"heads": heads, "scale": 0.3, "shared": shared, "diagonal": diagonal}
    attributes["layouts"] = ("NTHC", "NHTC", "NHTC", "NTHC")
    found = run([query, key, value, *added], target=target, **attributes)
    full = np.zeros((1, 1, keys, queries)) if mask is None else added[0]
    if diagonal is not None:
        full = np.where(np.tri(queries, keys, diagonal, dtype=bool).T, full, -np.inf)
    spread = [one.repeat(shared, axis=1) for one in (key, value)]
    wanted = expected(query.transpose(0, 2, 1, 3), *spread, full, 0.3).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    by_reference = run([query, key, value, *added], "debug", **attributes)
    np.testing.assert_allclose(by_reference, wanted, rtol=1e-5, atol=1e-5)


def test_few_queries_see_extreme_scores():
    """A score that is far above those of earlier blocks, and one that is not a number, reach the result."""
    query, key, value = draw(1, 1, 1, 2, 16), draw(2, 1, 400, 2, 16), draw(3, 1, 400, 2, 16)
    key[0, 350, 0] = 1000 * query[0, 0, 0]
    key[0, 200, 1, 3] = np.nan
    found = run([query, key, value], heads=2)
    np.testing.assert_allclose(found[0, 0, 0], value[0, 350, 0], rtol=1e-6)
    assert np.isnan(found[0, 0, 1]).all()
