"""The generator of DCGAN: from random numbers to an image by transposed convolutions (Radford et al., 2015)."""

from __future__ import annotations

from typing import Any

from tilewright.relay.analysis import free_vars
from tilewright.relay.expr import var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.op.tensor import tanh
from tilewright.relay.op.transform import reshape
from tilewright.relay.testing import layers
from tilewright.relay.testing.init import create_workload
from tilewright.support.errors import ModelError


def deconv2d(
    data: Any,
    ishape: tuple[int, int, int],
    oshape: tuple[int, int, int],
    kshape: tuple[int, int],
    layout: str,
    name: str,
    stride: tuple[int, int] = (2, 2),
) -> Any:
    """A transposed convolution from an image of one shape to one of another. Shapes are channels, height, width."""
    padding, missing = [], []
    for size, last, window, step in zip(ishape[1:], oshape[1:], kshape, stride, strict=True):
        # What the image would exceed the wanted one by is padding; half of an odd number is made good at the end.
        excess = (size - 1) * step + window - last
        if excess < 0 and -excess >= step:
            raise ModelError(f"{name}: stride {step} does not make {last} of {size}")
        before = (excess + 1) // 2
        padding.append(before)
        missing.append(2 * before - excess)
    return layers.conv2d_transpose(
        data,
        channels=oshape[0],
        kernel_size=kshape,
        strides=stride,
        padding=tuple(padding),
        output_padding=tuple(missing),
        data_layout=layout,
        kernel_layout="IOHW" if layout == "NCHW" else "HWOI",
        name=name,
    )


def deconv2d_bn_relu(data: Any, prefix: str, **kwargs: Any) -> Any:
    """A transposed convolution, normalisation, activation."""
    made = deconv2d(data, name=f"{prefix}_deconv", **kwargs)
    axis = kwargs["layout"].index("C")
    return nn.relu(
        layers.batch_norm_infer(
            made, epsilon=1e-5 + 1e-12, scale=False, axis=axis, name=f"{prefix}_batch_norm"
        )
    )


def get_net(
    batch_size: int,
    random_len: int = 100,
    oshape: tuple[int, int, int] = (3, 64, 64),
    ngf: int = 128,
    code: Any = None,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:
    """The generator as a function of "data", the random numbers (``code`` where given), and its parameters."""
    if oshape[-2:] != (64, 64):
        raise ModelError(f"the generator makes images of 64 by 64, not {oshape[-2]} by {oshape[-1]}")
    start = var("data", shape=(batch_size, random_len), dtype=dtype) if code is None else code
    body = nn.relu(layers.dense_add_bias(start, units=4 * 4 * ngf * 8, name="dense"))
    channels, size = ngf * 8, 4
    shape = (-1, channels, size, size) if layout == "NCHW" else (-1, size, size, channels)
    body = reshape(body, newshape=shape)
    for number in range(2, 5):
        body = deconv2d_bn_relu(
            body,
            f"g{number}",
            ishape=(channels, size, size),
            oshape=(channels // 2, size * 2, size * 2),
            kshape=(4, 4),
            layout=layout,
        )
        channels, size = channels // 2, size * 2
    last = deconv2d(
        body, ishape=(channels, size, size), oshape=oshape, kshape=(4, 4), layout=layout, name="g5_deconv"
    )
    result = tanh(last)
    return Function(free_vars(result), result)


def get_workload(
    batch_size: int,
    oshape: tuple[int, int, int] = (3, 64, 64),
    ngf: int = 128,
    random_len: int = 100,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> tuple[Any, Any]:
    """The generator as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, random_len, oshape, ngf, layout=layout, dtype=dtype))
