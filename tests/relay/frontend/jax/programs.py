"""Small JAX programs, one a family of operations, with the arguments that they are called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers around zero."""
    return RANDOM.standard_normal(shape).astype("float32")


def ints(*shape: int, low: int = -9, high: int = 9) -> np.ndarray[Any, Any]:
    """Small integers."""
    return RANDOM.integers(low, high, shape).astype("int32")


def _convolved(dimensions: tuple[str, str, str], **settings: Any) -> Callable[..., Any]:
    def run(data: Any, weight: Any) -> Any:
        return lax.conv_general_dilated(data, weight, dimension_numbers=dimensions, **settings)

    return run


LAST = ("NHWC", "HWIO", "NHWC")
FIRST = ("NCHW", "OIHW", "NCHW")
ODD = ("HWNC", "OHWI", "CNHW")
X = floats(3, 4)
IMAGE = floats(2, 6, 7, 4)
INDEX = np.asarray([[0, 2], [-1, 5]], "int32")

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "arithmetic": (
        lambda x, y: (x + y, x - y, x * y, x / y, jnp.maximum(x, y), jnp.minimum(x, 0.5)),
        (X, floats(3, 4)),
    ),
    "functions": (
        lambda x: (
            jnp.exp(x),
            jnp.tanh(x),
            jnp.sin(x),
            jnp.cos(x),
            jnp.floor(x),
            jnp.ceil(x),
            jnp.sign(x),
            -x,
        ),
        (X,),
    ),
    "roots and logarithms": (
        lambda x: (jnp.log(x), jnp.sqrt(x), lax.rsqrt(x), jnp.cbrt(x), jnp.power(x, 1.7), jnp.square(x)),
        (np.abs(X) + 0.1,),
    ),
    "near zero": (
        lambda x: (jnp.log1p(x), jnp.expm1(x)),
        (np.asarray([1e-6, -1e-5, 0.3, 2.0, 0.009], "float32"),),
    ),
    "angles": (
        lambda x, y: (
            jnp.arctan2(x, y),
            jnp.arcsin(jnp.tanh(x)),
            jnp.arctan(x),
            jnp.sinh(x),
            jnp.cosh(x),
            jnp.tan(x),
        ),
        (X, floats(3, 4)),
    ),
    "inverse hyperbolic": (
        lambda x: (jnp.arcsinh(x), jnp.arctanh(jnp.tanh(x)), jnp.arccosh(jnp.abs(x) + 1.5)),
        (X,),
    ),
    "error function": (lambda x: (jax.scipy.special.erf(x), jax.scipy.special.erfc(x), jax.nn.gelu(x)), (X,)),
    "inverse error function": (lambda x: jax.scipy.special.erfinv(jnp.tanh(x)), (X,)),
    "activations": (
        lambda x: (
            jax.nn.relu(x),
            jax.nn.sigmoid(x),
            jax.nn.silu(x),
            jax.nn.softplus(x),
            jax.nn.elu(x),
            jax.nn.softmax(x),
        ),
        (X,),
    ),
    "rounding": (
        lambda x: (jnp.round(x), lax.round(x), jnp.trunc(x)),
        (np.asarray([-1.5, 0.5, 2.5, 1.2], "float32"),),
    ),
    "comparison": (lambda x, y: (x < y, x >= y, x == x, x != y, jnp.where(x > y, x, 0.0)), (X, floats(3, 4))),
    "finite": (
        lambda x: (jnp.isfinite(x), jnp.isnan(x), jnp.isinf(x)),
        (np.asarray([1, np.inf, np.nan], "float32"),),
    ),
    "truth": (lambda x: ((x > 0) & (x < 1), (x > 0) | (x < -1), (x > 0) ^ (x < 1), ~(x > 0)), (X,)),
    "integers": (
        lambda x, y: (x // y, x % y, lax.div(x, y), lax.rem(x, y), jnp.abs(x), x & y, x | y, x ^ y, ~x),
        (ints(8), ints(8, low=1)),
    ),
    "shifts": (
        lambda x, y: (x << y, x >> y, lax.shift_right_logical(x, y), x << 3, lax.population_count(x)),
        (ints(8), np.asarray([0, 1, 2, 3, 31, 32, 40, 5], "int32")),
    ),
    "conversion": (
        lambda x: (
            x.astype("int32"),
            x.astype(bool),
            x.astype("float16"),
            x.astype("uint8"),
            lax.bitcast_convert_type(x, "int32"),
        ),
        (np.abs(X) * 3,),
    ),
    "clamp": (lambda x: (jnp.clip(x, -0.5, 0.5), lax.clamp(0.0, x, 1.0)), (X,)),
    "low precision": (
        lambda x: (x.astype(jnp.bfloat16) * np.asarray([0.5, 1, 2, 4]).astype(jnp.bfloat16)).astype(
            "float32"
        ),
        (X,),
    ),
    "dot": (lambda x, w, v: (x @ w, x @ v, v @ v), (X, floats(4, 5), floats(4))),
    "batched dot": (
        lambda x, y: (x @ y, jnp.einsum("bij,bkj->kbi", x, y.swapaxes(1, 2))),
        (floats(2, 3, 4), floats(2, 4, 5)),
    ),
    "general dot": (
        lambda x, y: lax.dot_general(x, y, (((1, 3), (2, 0)), ((2,), (1,)))),
        (floats(2, 3, 4, 5), floats(5, 4, 3, 6)),
    ),
    "outer": (lambda x, y: (jnp.outer(x, y), jnp.tensordot(x, y, 1)), (floats(4), floats(4))),
    "integer dot": (lambda x, y: x @ y, (ints(3, 4), ints(4, 2))),
    "convolution": (_convolved(LAST, window_strides=(1, 2), padding="SAME"), (IMAGE, floats(3, 3, 4, 5))),
    "convolution first": (
        _convolved(FIRST, window_strides=(2, 1), padding=((0, 2), (1, 0))),
        (floats(2, 4, 6, 7), floats(5, 4, 3, 2)),
    ),
    "convolution in another order": (
        _convolved(ODD, window_strides=(1, 1), padding="VALID"),
        (floats(6, 7, 2, 4), floats(5, 3, 2, 4)),
    ),
    "groups": (
        _convolved(LAST, window_strides=(1, 1), padding="SAME", feature_group_count=2, rhs_dilation=(2, 1)),
        (IMAGE, floats(3, 3, 2, 6)),
    ),
    "depthwise": (
        _convolved(LAST, window_strides=(1, 1), padding="SAME", feature_group_count=4),
        (IMAGE, floats(3, 3, 1, 8)),
    ),
    "transposed convolution": (
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
        (IMAGE, floats(3, 3, 4, 5)),
    ),
    "cropped convolution": (
        _convolved(LAST, window_strides=(1, 1), padding=((-1, 0), (1, -2))),
        (IMAGE, floats(2, 2, 4, 3)),
    ),
    "convolution of sequences": (
        _convolved(("NWC", "WIO", "NWC"), window_strides=(1,), padding="SAME"),
        (floats(2, 8, 3), floats(3, 3, 5)),
    ),
    "convolution of volumes": (
        _convolved(("NDHWC", "DHWIO", "NDHWC"), window_strides=(1, 1, 1), padding="VALID"),
        (floats(1, 4, 4, 4, 2), floats(2, 2, 2, 2, 3)),
    ),
    "sums": (
        lambda x: (x.sum(), x.mean(0), x.max(1), x.min(), x.prod(1), jnp.var(x, 1), jax.nn.logsumexp(x, 1)),
        (X,),
    ),
    "any and all": (lambda x: ((x > 0).any(1), (x > -1).all(0), (x > 0).sum()), (X,)),
    "places of extremes": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x)), (X,)),
    "bits reduced": (
        lambda x: (lax.reduce_and(x, (0,)), lax.reduce_or(x, (1,)), lax.reduce_xor(x, (1,))),
        (ints(5, 3),),
    ),
    "any reduction": (lambda x: lax.reduce(x, 0.5, lambda a, b: jnp.sqrt(a * a + b * b), (1,)), (X,)),
    "several reduced": (
        lambda x: lax.reduce(
            (x, 2 * x), (0.0, 1.0), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (0,)
        ),
        (X,),
    ),
    "max pooling": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 3, 2, 1), (1, 2, 2, 1), "SAME"),
        (IMAGE,),
    ),
    "sum pooling": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        (IMAGE,),
    ),
    "min pooling": (
        lambda x: lax.reduce_window(x, np.inf, lax.min, (2, 2), (1, 2), "VALID", None, (1, 2)),
        (floats(4, 6),),
    ),
    "running totals": (
        lambda x: (
            jnp.cumsum(x, 1),
            jnp.cumprod(x, 0),
            lax.cummax(x, 1),
            lax.cummin(x, 0),
            lax.cumsum(x, 1, reverse=True),
        ),
        (X,),
    ),
    "running logsumexp": (lambda x: lax.cumlogsumexp(x, 1), (X,)),
    "shapes": (
        lambda x: (
            x.reshape(2, 6),
            x.T,
            x[:, None],
            jnp.broadcast_to(x, (2, 3, 4)),
            jnp.tile(x, (2, 1)),
            x[::-1],
            jnp.squeeze(x[:1]),
        ),
        (X,),
    ),
    "joining": (lambda x: (jnp.concatenate([x, x + 1], 1), jnp.stack([x, x]), *jnp.split(x, 2, 1)), (X,)),
    "slices": (lambda x: (x[1:, ::2], x[0], x[..., -1], x[:, 1:3]), (X,)),
    "padding": (
        lambda x: (
            jnp.pad(x, 1),
            lax.pad(x, 2.0, ((1, -1, 2), (-1, 0, 1))),
            jnp.pad(x, ((0, 1), (2, 0)), mode="reflect"),
        ),
        (X,),
    ),
    "iota": (
        lambda x: (jnp.arange(4) + x, lax.broadcasted_iota("int32", (3, 4), 0), jnp.eye(3), jnp.tril(x)),
        (X,),
    ),
    "dynamic slices": (
        lambda x, i: (
            lax.dynamic_slice(x, (i, 1), (2, 2)),
            lax.dynamic_index_in_dim(x, i, 1),
            lax.dynamic_update_slice(x, jnp.ones((2, 2)), (i, i)),
        ),
        (X, np.int32(2)),
    ),
    "take": (
        lambda x, i: (jnp.take(x, i, axis=0), x[i, 1], x[:, i], jnp.take_along_axis(x, i % 4, 1), x[i]),
        (floats(6, 4), ints(6, 4, low=0, high=3)),
    ),
    "modes of indexing": (
        lambda x, i: (
            x.at[i].get(mode="fill", fill_value=7.0),
            x.at[i].get(mode="clip"),
            jnp.take(x, i, mode="wrap", axis=0),
        ),
        (floats(4, 3), INDEX),
    ),
    "two indices": (
        lambda x, i, j: (x[i, j], x[i, :, j]),
        (floats(3, 4, 5), ints(6, low=0, high=3), ints(6, low=0, high=4)),
    ),
    "windows": (
        lambda x, i: jax.vmap(lambda at: lax.dynamic_slice(x, (at, 0), (2, 3)))(i),
        (floats(5, 4), ints(3, low=0, high=5)),
    ),
    "batched indexing": (
        lambda x, i: jax.vmap(lambda row, at: row[at])(x, i),
        (floats(3, 5), ints(3, 2, low=0, high=5)),
    ),
    "scatter": (
        lambda x, i: (
            x.at[i].set(1.5),
            x.at[i].add(2.0),
            x.at[:, 1].mul(3.0),
            x.at[i, 0].max(0.5),
            x.at[1:3].min(0.0),
        ),
        (floats(6, 4), np.asarray([1, 4, 4, 9], "int32")),
    ),
    "batched scatter": (
        lambda x, i, u: jax.vmap(lambda row, at, new: row.at[at].add(new))(x, i, u),
        (floats(3, 5), ints(3, 2, low=0, high=5), floats(3, 2)),
    ),
    "written out by an export": (
        lambda x: (jax.lax.lgamma(jnp.abs(x) + 1), jax.lax.digamma(jnp.abs(x) + 1), jnp.nextafter(x, 2.0)),
        (X,),
    ),
    "segments": (lambda x, i: jax.ops.segment_sum(x, i, 4), (floats(6, 2), ints(6, low=0, high=4))),
    "sorting": (
        lambda x: (
            jnp.sort(x, 1),
            jnp.argsort(x, 0),
            jnp.sort(x, descending=True),
            lax.sort((x.round(), -x), num_keys=2)[1],
        ),
        (floats(5, 6),),
    ),
    "largest": (lambda x: lax.top_k(x, 2), (X,)),
    "scan": (lambda x: lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(4), x), (X,)),
    "loop": (lambda x, n: lax.fori_loop(0, n, lambda i, c: c * 0.5 + i, x), (X, np.int32(4))),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, jnp.abs(x)), (X,)),
    "condition": (lambda x: lax.cond(x.sum() > 0, lambda v: v + 1, lambda v: v * 2, x), (X,)),
    "switch": (lambda x, i: lax.switch(i, [lambda v: v, jnp.sin, lambda v: v * 3], x), (X, np.int32(2))),
    "random": (
        lambda: (
            jax.random.normal(jax.random.key(3), (4,)),
            jax.random.randint(jax.random.key(1), (5,), 0, 10),
        ),
        (),
    ),
    "random from a seed": (lambda seed: jax.random.uniform(jax.random.PRNGKey(seed), (3, 2)), (np.int32(5),)),
    "gradient": (jax.grad(lambda x, w: jnp.tanh(x @ w).sum(), 1), (X, floats(4, 2))),
    "inner function": (lambda x: jax.jit(lambda v: v * 2)(x) + jax.checkpoint(jnp.sin)(x), (X,)),
}
