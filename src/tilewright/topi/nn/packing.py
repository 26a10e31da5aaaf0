"""Layout transforms as stages of a computation: channels, kernels and weights into blocks."""

from __future__ import annotations

from tilewright import te
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.utils import get_const_int

PACK: str = f"{tag.INJECTIVE},pack"


def pack_channels(data: Tensor, block: int) -> Tensor:
    """NCHW as (batch, blocks, height, width, channels of a block)."""
    batch, channels, height, width = data.shape
    made: Tensor = te.compute(
        (batch, get_const_int(channels) // block, height, width, block),
        lambda n, c, h, w, i: data[n, c * block + i, h, w],
        name="data_vec",
        tag=PACK,
    )
    return made


def pack_kernel(kernel: Tensor, inputs: int, outputs: int) -> Tensor:
    """OIHW as (output blocks, input blocks, height, width, inputs of a block, outputs of a block)."""
    out_channels, in_channels, height, width = kernel.shape
    made: Tensor = te.compute(
        (
            get_const_int(out_channels) // outputs,
            get_const_int(in_channels) // inputs,
            height,
            width,
            inputs,
            outputs,
        ),
        lambda o, i, h, w, ii, oo: kernel[o * outputs + oo, i * inputs + ii, h, w],
        name="kernel_vec",
        tag=PACK,
    )
    return made


def pack_weight(weight: Tensor, block: int) -> Tensor:
    """(units, features) as (blocks, features, units of a block); the units fall into whole blocks."""
    units, features = weight.shape
    made: Tensor = te.compute(
        (get_const_int(units) // block, features, block),
        lambda n, k, i: weight[n * block + i, k],
        name="packed_weight",
        tag=PACK,
    )
    return made
