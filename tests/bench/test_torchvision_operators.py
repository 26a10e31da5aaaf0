"""The operators of torchvision in plain torch: known values, and gradients against finite differences."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from bench.models import torchvision_kernels as kernels  # noqa: E402


def test_suppression_keeps_the_best_of_overlapping_boxes() -> None:
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]])
    assert kernels.non_maximum_suppression(boxes, torch.tensor([0.5, 0.9, 0.1]), 0.5).tolist() == [1, 2]
    assert kernels.non_maximum_suppression(boxes, torch.tensor([0.5, 0.9, 0.1]), 0.9).tolist() == [1, 0, 2]


def test_aligning_a_whole_ramp_gives_the_centres_of_its_bins() -> None:
    ramp = torch.arange(8, dtype=torch.float64).expand(1, 1, 8, 8).contiguous()
    region = torch.tensor([[0, 0, 0, 8, 8]], dtype=torch.float64)
    found = kernels.roi_align(ramp, region, 1.0, 2, 4, 2, True)
    assert found[0, 0].tolist() == [[0.5, 2.5, 4.5, 6.5]] * 2


def test_aligned_samples_beyond_the_image_are_zero() -> None:
    ones = torch.ones(1, 1, 4, 4, dtype=torch.float64)
    region = torch.tensor([[0, 0, 8, 4, 12]], dtype=torch.float64)
    assert kernels.roi_align(ones, region, 1.0, 2, 2, 2, True).abs().max() == 0


def test_pooling_takes_the_largest_pixel_and_says_where() -> None:
    plane = torch.arange(16.0).reshape(1, 1, 4, 4)
    pooled, where = kernels.roi_pool(plane, torch.tensor([[0.0, 0, 0, 3, 3]]), 1.0, 2, 2)
    assert pooled.flatten().tolist() == [5, 7, 13, 15]
    assert where.flatten().tolist() == [5, 7, 13, 15]


def test_convolution_without_offsets_is_a_convolution() -> None:
    torch.manual_seed(0)
    value, weight = torch.randn(1, 4, 6, 5), torch.randn(6, 2, 3, 3)
    bias, mask = torch.randn(6), torch.full((1, 9, 3, 3), 0.5)
    found = kernels.deform_conv2d(
        value, weight, torch.zeros(1, 18, 3, 3), mask, bias, 2, 2, 1, 1, 1, 1, 2, 1, True
    )
    wanted = torch.nn.functional.conv2d(value, weight * 0.5, bias, stride=2, padding=1, groups=2)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", ["roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d"])
def test_gradients(name: str) -> None:
    """The backward kernels are the forward kernels' derivatives, found by differences in float64."""
    torch.manual_seed(0)
    regions = torch.tensor([[0, 1, 2, 6, 7], [1, 0, 0, 5, 8]], dtype=torch.float64)
    value = torch.randn(2, 12, 9, 8, dtype=torch.float64)
    first = [value]
    if name == "roi_align":
        forward = lambda x: kernels.roi_align(x, regions, 0.9, 3, 2, -1, False)
        backward = lambda g: kernels.roi_align_backward(g, regions, 0.9, 3, 2, *value.shape, -1, False)
    elif name == "deform_conv2d":
        first = [torch.randn(s, dtype=torch.float64) for s in ((1, 4, 5, 4), (2, 2, 3, 3), (1, 36, 2, 2))]
        first += [torch.rand(1, 18, 2, 2, dtype=torch.float64), torch.randn(2, dtype=torch.float64)]
        window = (2, 2, 1, 1, 1, 1, 2, 2, True)
        forward = lambda *given: kernels.deform_conv2d(*given, *window)
        backward = lambda g: kernels.deform_conv2d_backward(g, *first, *window)
    else:
        ratio = (2,) if name == "ps_roi_align" else ()
        forward = lambda x: getattr(kernels, name)(x, regions, 1.0, 3, 2, *ratio)[0]
        extra = getattr(kernels, name)(value, regions, 1.0, 3, 2, *ratio)[1]
        backward = lambda g: getattr(kernels, f"{name}_backward")(
            g, regions, extra, 1.0, 3, 2, *ratio, *value.shape
        )
    result = forward(*first)
    direction = torch.randn_like(result)
    found = backward(direction)
    found = found if isinstance(found, tuple) else (found,)
    step = 1e-6
    for index, gradient in enumerate(found):
        along = torch.randn_like(first[index])
        moved = [x + step * along if i == index else x for i, x in enumerate(first)]
        back = [x - step * along if i == index else x for i, x in enumerate(first)]
        slope = ((forward(*moved) - forward(*back)) * direction).sum() / (2 * step)
        torch.testing.assert_close((gradient * along).sum(), slope, rtol=1e-5, atol=1e-6)
