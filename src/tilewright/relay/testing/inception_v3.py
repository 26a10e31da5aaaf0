"""Inception v3: blocks of parallel convolutions of several sizes (Szegedy et al., 2015)."""

from __future__ import annotations

from typing import Any

from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.op.tensor import concatenate
from tilewright.relay.testing import layers
from tilewright.relay.testing.init import create_workload
from tilewright.support.errors import ModelError

Pair = tuple[int, int]


def Conv(
    data: Any,
    num_filter: int,
    kernel: Pair = (1, 1),
    stride: Pair = (1, 1),
    pad: Pair = (0, 0),
    name: str | None = None,
    suffix: str = "",
) -> Any:
    """Convolution, normalisation, activation."""
    made = layers.conv2d(
        data,
        channels=num_filter,
        kernel_size=kernel,
        strides=stride,
        padding=pad,
        name=f"{name}{suffix}_conv1",
    )
    return nn.relu(layers.batch_norm_infer(made, epsilon=2e-5, scale=False, name=f"{name}{suffix}_bn"))


def Pooling(data: Any, kernel: Pair, stride: Pair, pad: Pair, pool_type: str, name: str) -> Any:
    """Pooling of kind "max" or "avg"; padding counts in the mean."""
    if pool_type == "max":
        return nn.max_pool2d(data, kernel, stride, padding=pad)
    if pool_type == "avg":
        return nn.avg_pool2d(data, kernel, stride, padding=pad, count_include_pad=True)
    raise ModelError(f"{name}: pooling is max or avg, not {pool_type!r}")


def _chain(data: Any, name: str, steps: list[tuple[int, Pair, Pair, Pair]], suffixes: list[str]) -> Any:
    """A chain of convolutions: channels, window, stride, padding of each."""
    for (channels, kernel, stride, pad), suffix in zip(steps, suffixes, strict=True):
        data = Conv(data, channels, kernel, stride, pad, name, suffix)
    return data


ONE = (1, 1)
NONE = (0, 0)


def Inception7A(
    data: Any,
    num_1x1: int,
    num_3x3_red: int,
    num_3x3_1: int,
    num_3x3_2: int,
    num_5x5_red: int,
    num_5x5: int,
    pool: str,
    proj: int,
    name: str,
) -> Any:
    """One by one, five by five, two of three by three, pooling."""
    tower_1x1 = Conv(data, num_1x1, name=f"{name}_conv")
    tower_5x5 = _chain(
        data,
        f"{name}_tower",
        [(num_5x5_red, ONE, ONE, NONE), (num_5x5, (5, 5), ONE, (2, 2))],
        ["_conv", "_conv_1"],
    )
    tower_3x3 = _chain(
        data,
        f"{name}_tower_1",
        [(num_3x3_red, ONE, ONE, NONE), (num_3x3_1, (3, 3), ONE, ONE), (num_3x3_2, (3, 3), ONE, ONE)],
        ["_conv", "_conv_1", "_conv_2"],
    )
    pooling = Pooling(data, (3, 3), ONE, ONE, pool, f"{pool}_pool_{name}_pool")
    projected = Conv(pooling, proj, name=f"{name}_tower_2", suffix="_conv")
    return concatenate((tower_1x1, tower_5x5, tower_3x3, projected), axis=1)


def Inception7B(
    data: Any, num_3x3: int, num_d3x3_red: int, num_d3x3_1: int, num_d3x3_2: int, pool: str, name: str
) -> Any:
    """Half the image: three by three, two of them, pooling."""
    tower_3x3 = Conv(data, num_3x3, (3, 3), (2, 2), name=f"{name}_conv")
    tower_d3x3 = _chain(
        data,
        f"{name}_tower",
        [
            (num_d3x3_red, ONE, ONE, NONE),
            (num_d3x3_1, (3, 3), ONE, ONE),
            (num_d3x3_2, (3, 3), (2, 2), NONE),
        ],
        ["_conv", "_conv_1", "_conv_2"],
    )
    pooling = Pooling(data, (3, 3), (2, 2), NONE, pool, f"{pool}_pool_{name}_pool")
    return concatenate((tower_3x3, tower_d3x3, pooling), axis=1)


def Inception7C(
    data: Any,
    num_1x1: int,
    num_d7_red: int,
    num_d7_1: int,
    num_d7_2: int,
    num_q7_red: int,
    num_q7_1: int,
    num_q7_2: int,
    num_q7_3: int,
    num_q7_4: int,
    pool: str,
    proj: int,
    name: str,
) -> Any:
    """One by one, seven by seven split in two, the same twice, pooling."""
    wide, tall = ((1, 7), (0, 3)), ((7, 1), (3, 0))

    def step(channels: int, shape: tuple[Pair, Pair]) -> tuple[int, Pair, Pair, Pair]:
        return (channels, shape[0], ONE, shape[1])

    tower_1x1 = Conv(data, num_1x1, name=f"{name}_conv")
    tower_d7 = _chain(
        data,
        f"{name}_tower",
        [(num_d7_red, ONE, ONE, NONE), step(num_d7_1, wide), step(num_d7_2, tall)],
        ["_conv", "_conv_1", "_conv_2"],
    )
    tower_q7 = _chain(
        data,
        f"{name}_tower_1",
        [
            (num_q7_red, ONE, ONE, NONE),
            step(num_q7_1, tall),
            step(num_q7_2, wide),
            step(num_q7_3, tall),
            step(num_q7_4, wide),
        ],
        ["_conv", "_conv_1", "_conv_2", "_conv_3", "_conv_4"],
    )
    pooling = Pooling(data, (3, 3), ONE, ONE, pool, f"{pool}_pool_{name}_pool")
    projected = Conv(pooling, proj, name=f"{name}_tower_2", suffix="_conv")
    return concatenate((tower_1x1, tower_d7, tower_q7, projected), axis=1)


def Inception7D(
    data: Any,
    num_3x3_red: int,
    num_3x3: int,
    num_d7_3x3_red: int,
    num_d7_1: int,
    num_d7_2: int,
    num_d7_3x3: int,
    pool: str,
    name: str,
) -> Any:
    """Half the image: three by three, seven by seven and three by three, pooling."""
    tower_3x3 = _chain(
        data,
        f"{name}_tower",
        [(num_3x3_red, ONE, ONE, NONE), (num_3x3, (3, 3), (2, 2), NONE)],
        ["_conv", "_conv_1"],
    )
    tower_d7_3x3 = _chain(
        data,
        f"{name}_tower_1",
        [
            (num_d7_3x3_red, ONE, ONE, NONE),
            (num_d7_1, (1, 7), ONE, (0, 3)),
            (num_d7_2, (7, 1), ONE, (3, 0)),
            (num_d7_3x3, (3, 3), (2, 2), NONE),
        ],
        ["_conv", "_conv_1", "_conv_2", "_conv_3"],
    )
    pooling = Pooling(data, (3, 3), (2, 2), NONE, pool, f"{pool}_pool_{name}_pool")
    return concatenate((tower_3x3, tower_d7_3x3, pooling), axis=1)


def Inception7E(
    data: Any,
    num_1x1: int,
    num_d3_red: int,
    num_d3_1: int,
    num_d3_2: int,
    num_3x3_d3_red: int,
    num_3x3: int,
    num_3x3_d3_1: int,
    num_3x3_d3_2: int,
    pool: str,
    proj: int,
    name: str,
) -> Any:
    """One by one, three by three split in parallel, the same after another, pooling."""
    wide, tall = ((1, 3), (0, 1)), ((3, 1), (1, 0))
    tower_1x1 = Conv(data, num_1x1, name=f"{name}_conv")
    d3 = Conv(data, num_d3_red, name=f"{name}_tower", suffix="_conv")
    d3_wide = Conv(d3, num_d3_1, wide[0], ONE, wide[1], f"{name}_tower", "_mixed_conv")
    d3_tall = Conv(d3, num_d3_2, tall[0], ONE, tall[1], f"{name}_tower", "_mixed_conv_1")
    both = _chain(
        data,
        f"{name}_tower_1",
        [(num_3x3_d3_red, ONE, ONE, NONE), (num_3x3, (3, 3), ONE, ONE)],
        ["_conv", "_conv_1"],
    )
    both_wide = Conv(both, num_3x3_d3_1, wide[0], ONE, wide[1], f"{name}_tower_1", "_mixed_conv")
    both_tall = Conv(both, num_3x3_d3_2, tall[0], ONE, tall[1], f"{name}_tower_1", "_mixed_conv_1")
    pooling = Pooling(data, (3, 3), ONE, ONE, pool, f"{pool}_pool_{name}_pool")
    projected = Conv(pooling, proj, name=f"{name}_tower_2", suffix="_conv")
    return concatenate((tower_1x1, d3_wide, d3_tall, both_wide, both_tall, projected), axis=1)


def get_net(batch_size: int, num_classes: int, image_shape: tuple[int, ...], dtype: str) -> Function:
    """The network as a function of "data" and its parameters."""
    data = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    body = Conv(data, 32, (3, 3), (2, 2), name="conv")
    body = Conv(body, 32, (3, 3), name="conv_1")
    body = Conv(body, 64, (3, 3), pad=(1, 1), name="conv_2")
    body = Pooling(body, (3, 3), (2, 2), NONE, "max", "pool")
    body = Conv(body, 80, name="conv_3")
    body = Conv(body, 192, (3, 3), name="conv_4")
    body = Pooling(body, (3, 3), (2, 2), NONE, "max", "pool1")
    for number, projection in enumerate((32, 64, 64)):
        suffix = f"_{number}" if number else ""
        body = Inception7A(body, 64, 64, 96, 96, 48, 64, "avg", projection, f"mixed{suffix}")
    body = Inception7B(body, 384, 64, 96, 96, "max", "mixed_3")
    for number, inner in enumerate((128, 160, 160, 192), 4):
        body = Inception7C(
            body,
            192,
            inner,
            inner,
            192,
            inner,
            inner,
            inner,
            inner,
            192,
            "avg",
            192,
            f"mixed_{number}",
        )
    body = Inception7D(body, 192, 320, 192, 192, 192, 192, "max", "mixed_8")
    body = Inception7E(body, 320, 384, 384, 384, 448, 384, 384, 384, "avg", 192, "mixed_9")
    body = Inception7E(body, 320, 384, 384, 384, 448, 384, 384, 384, "max", 192, "mixed_10")
    flat = nn.batch_flatten(nn.global_avg_pool2d(body))
    result = nn.softmax(layers.dense_add_bias(flat, units=num_classes, name="fc1"))
    return Function(free_vars(result), result)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: tuple[int, ...] = (3, 299, 299),
    dtype: str = "float32",
) -> tuple[Any, Any]:
    """The network as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
