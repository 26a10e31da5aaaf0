"""OpenBLAS: the products that it takes of a model."""

from __future__ import annotations

from tilewright.relay.expr import Call
from tilewright.relay.op.contrib.backends import Backend, register_backend
from tilewright.relay.op.contrib.checks import all_of, layout, of_type, rank, shape_of
from tilewright.runtime.external.openblas import is_available

_FLOAT = of_type("float32", "float64")


def _one_element(call: Call) -> str | None:
    """A convolution that is a product: one element a window, each image element once."""
    assert call.attrs is not None
    if shape_of(call.args[1])[2:] != (1, 1):
        return "the window is larger than one element: OpenBLAS has products only"
    if int(call.attrs["groups"]) != 1:
        return "the channels are in groups"
    if shape_of(call)[2:] != shape_of(call.args[0])[2:]:
        return "strides or padding change the size of the image"
    return None


def _same_batches(call: Call) -> str | None:
    left, right = (shape_of(argument)[0] for argument in call.args)
    return None if left == right or 1 in (left, right) else f"the batches are {left} and {right}"


BACKEND = register_backend(
    Backend(
        "openblas",
        list,
        {
            "nn.dense": all_of(_FLOAT, rank(2)),
            "nn.batch_matmul": all_of(_FLOAT, rank(3), _same_batches),
            "nn.conv2d": all_of(
                _FLOAT,
                layout(data_layout="NCHW", kernel_layout="OIHW", out_layout="NCHW"),
                _one_element,
            ),
        },
        lambda: None if is_available() else "OpenBLAS is not installed: pip install 'tilewright[openblas]'",
    )
)
