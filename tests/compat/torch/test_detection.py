"""The rewrites of torchvision's detectors change the operators and not the results."""

from __future__ import annotations

import importlib
import importlib.util

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if importlib.util.find_spec("torchvision") is None:
    pytest.skip("torchvision is not installed", allow_module_level=True)

from bench.models import torchvision_operators  # noqa: E402

from tilewright import relay  # noqa: E402
from tilewright.compat.torch.detection import (  # noqa: E402
    rewrite_batched_nms_with_max_out_size,
    rewrite_nms_to_batched_nms,
    rewrite_scatter_to_gather,
)
from tilewright.ir.functor import post_order  # noqa: E402

# Before anything is traced: torch runs what torchvision does when it is imported, too.
OPERATORS = torchvision_operators.load().ops
BOXES = torch.tensor(
    [[0, 0, 4, 4], [1, 0, 5, 4], [8, 8, 9, 9], [0, 0, 4.2, 4], [20, 1, 22, 2], [0, 0, 4, 4.1]]
)
SCORES = torch.tensor([0.5, 0.9, 0.3, 0.4, 0.8, 0.45])
CLASSES = torch.tensor([0, 1, 0, 1, 1, 0])


class Suppression(torch.nn.Module):
    """The best boxes of each class, three at most."""

    def forward(self, boxes, scores, classes):
        return OPERATORS.batched_nms(boxes, scores, classes, 0.5)[:3]


class Scales(torch.nn.Module):
    """Regions of features of two scales."""

    def __init__(self):
        super().__init__()
        self.align = OPERATORS.MultiScaleRoIAlign(["fine", "coarse"], output_size=2, sampling_ratio=2)

    def forward(self, fine, coarse, boxes):
        return self.align({"fine": fine, "coarse": coarse}, [boxes], [(64, 64)])


def imported(model, inputs):
    """The model as torch traces it."""
    traced = torch.jit.trace(model.eval(), inputs, check_trace=False)
    kinds = [
        (f"x{place}", (tuple(value.shape), str(value.dtype).removeprefix("torch.")))
        for place, value in enumerate(inputs)
    ]
    return relay.frontend.from_pytorch(traced, kinds)[0]


def evaluated(module, inputs):
    values = {f"x{place}": value.numpy() for place, value in enumerate(inputs)}
    return relay.create_executor("debug", module).evaluate()(**values).numpy()


def calls(module, name):
    """The calls of an operator."""
    return [
        node
        for node in post_order(module["main"])
        if getattr(getattr(node, "op", None), "name", None) == name
    ]


def test_suppression_by_class():
    """Boxes stay where they are and have their class; a limit after it becomes its own."""
    inputs = (BOXES, SCORES, CLASSES)
    module = imported(Suppression(), inputs)
    expected = Suppression()(*inputs).numpy()
    by_class = rewrite_nms_to_batched_nms(module)
    (before,), (after,) = (calls(one, "vision.non_max_suppression") for one in (module, by_class))
    assert (before.attrs.id_index, after.attrs.id_index, after.attrs.force_suppress) == (-1, 0, False)
    limited = rewrite_batched_nms_with_max_out_size(by_class)
    (found,) = calls(limited, "vision.non_max_suppression")
    assert int(found.args[3].data.numpy()) == 3
    for one in (module, by_class, limited):
        np.testing.assert_array_equal(evaluated(one, inputs), expected)


def test_scales_by_one_gather():
    """The scatters are gone where their number is the one that is given."""
    boxes = torch.tensor([[0, 0, 8, 8], [4, 4, 60, 60], [1, 2, 9, 12], [0, 0, 63, 63]]).float()
    inputs = (torch.rand(1, 2, 16, 16), torch.rand(1, 2, 2, 2), boxes)
    module = imported(Scales(), inputs)
    made = rewrite_scatter_to_gather(module, 2)
    assert len(calls(module, "scatter")) == 2 and not calls(made, "scatter")
    assert len(calls(rewrite_scatter_to_gather(module, 3), "scatter")) == 2
    np.testing.assert_allclose(evaluated(made, inputs), Scales()(*inputs).numpy(), rtol=1e-5, atol=1e-6)


def test_served_under_the_name_of_tvm():
    """Where programs written for TVM import them from."""
    served = importlib.import_module("tilewright.relay.frontend.pytorch_utils")
    assert served.rewrite_nms_to_batched_nms is rewrite_nms_to_batched_nms
    assert served.rewrite_scatter_to_gather is rewrite_scatter_to_gather
