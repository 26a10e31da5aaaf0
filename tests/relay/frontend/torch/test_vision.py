"""torchvision's operators of detection against its own kernels, or plain ones where its extension does not load."""

import importlib.util

import pytest

torch = pytest.importorskip("torch")
if importlib.util.find_spec("torchvision") is None:
    pytest.skip("torchvision is not installed", allow_module_level=True)

from bench.models import torchvision_operators  # noqa: E402
from tests.relay.frontend.torch.running import check_all  # noqa: E402


@pytest.fixture(scope="module")
def operators():
    """``torchvision.ops``."""
    return torchvision_operators.load().ops


def numbers(*shape, seed=0):
    """Numbers around zero."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_boxes_that_overlap_are_dropped(operators):
    """The best of those that overlap stays; as many results as there are such."""
    corners = torch.tensor([[0, 0, 4, 4], [1, 0, 5, 4], [8, 8, 9, 9], [0, 0, 4.2, 4], [20, 1, 22, 2]])
    scores = torch.tensor([0.5, 0.9, 0.3, 0.4, 0.8])
    functions = {
        "half": lambda boxes, scores: operators.nms(boxes, scores, 0.5),
        "none": lambda boxes, scores: operators.nms(boxes, scores, 0.0),
        "all": lambda boxes, scores: operators.nms(boxes, scores, 1.0),
        "logits": lambda boxes, scores: operators.nms(boxes, scores - 0.6, 0.5),
    }
    check_all(functions, [corners, scores])


def test_regions(operators):
    """Aligned and not, by a number of samples and by as many as there are pixels; and the greatest elements."""
    regions = torch.tensor([[0, 0.5, 0.5, 6, 5], [1, 2, 1, 7.5, 7], [0, 3, 3, 3.5, 3.2]])
    functions = {
        "samples": lambda x, r: operators.roi_align(x, r, (3, 2), 0.9, 2),
        "aligned": lambda x, r: operators.roi_align(x, r, 3, 0.5, -1, aligned=True),
        "greatest": lambda x, r: operators.roi_pool(x, r, 2, 1.0),
    }
    check_all(functions, [numbers(2, 3, 8, 8), regions])


def test_convolutions_with_moved_taps(operators):
    """With a mask and without, with strides, padding and groups of offsets."""
    weight, bias = numbers(4, 2, 3, 3, seed=1), numbers(4, seed=2)
    functions = {
        "mask": lambda x, o, m: operators.deform_conv2d(x, o, weight, bias, stride=2, padding=1, mask=m),
        "plain": lambda x, o, m: operators.deform_conv2d(x, o, weight, stride=2, padding=1),
    }
    inputs = [numbers(2, 4, 6, 6), numbers(2, 36, 3, 3, seed=3), numbers(2, 18, 3, 3, seed=4).sigmoid()]
    check_all(functions, inputs, rtol=1e-4, atol=1e-4)
