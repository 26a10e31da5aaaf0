"""Images as inputs."""

import builtins

import numpy as np
import pytest
from PIL import Image

from tilewright.driver.tvmc import TVMCException
from tilewright.driver.tvmc.images import ImageOptions, parse_numbers, read_images
from tilewright.driver.tvmc.tensors import TensorInfo


@pytest.fixture
def photo(tmp_path):
    """Three rows and two columns of colours."""
    path = tmp_path / "photo.png"
    pixels = np.arange(18, dtype="uint8").reshape(3, 2, 3)
    Image.fromarray(pixels).save(path)
    return path, pixels


def test_layouts(photo):
    """The layout follows from the shape, or from the option."""
    path, pixels = photo
    first = read_images([path], TensorInfo("x", (1, 3, 3, 2), "float32"), ImageOptions())
    np.testing.assert_array_equal(first[0], pixels.transpose(2, 0, 1))
    last = read_images([path], TensorInfo("x", (1, None, None, 3), "uint8"), ImageOptions())
    np.testing.assert_array_equal(last[0], pixels)
    named = read_images([path], TensorInfo("x", (1, 3, 2, 3), "float32"), ImageOptions(layout="NHWC"))
    np.testing.assert_array_equal(named[0], pixels)


def test_grey_and_jpeg(tmp_path):
    """A JPEG becomes grey where the input has one channel, and is resized."""
    Image.new("RGB", (20, 10), (128, 128, 128)).save(tmp_path / "a.jpg")
    found = read_images([tmp_path / "a.jpg"], TensorInfo("x", (1, 1, 5, 5), "float32"), ImageOptions())
    assert found.shape == (1, 1, 5, 5)
    np.testing.assert_allclose(found, 128, atol=2)


def test_numbers_and_batches(photo):
    """Mean and scale are one number or one a channel; a batch takes as many images as it has places."""
    path, pixels = photo
    options = ImageOptions(mean=(1.0, 2.0, 3.0), scale=parse_numbers("1/2", 1.0, "--scale"))
    found = read_images(
        [path, path],
        TensorInfo("x", (2, 3, 2, 3), "float32"),
        ImageOptions("NHWC", *(options.mean, options.scale)),
    )
    np.testing.assert_allclose(found[1], (pixels - np.array([1, 2, 3])) / 2)
    assert parse_numbers(None, 4.0, "--mean") == (4.0,)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((1, 3), ImageOptions(), "does not have four dimensions"),
        ((1, 7, 7, 7), ImageOptions(), "pass --image-layout"),
        ((1, 7, 7, 3), ImageOptions("NCHW"), "images have 1, 3 or 4"),
        ((2, 3, 3, 2), ImageOptions(), "takes 2 images, and 1 are given"),
        ((1, 3, 3, 2), ImageOptions(mean=(1.0, 2.0)), "--mean has 2 numbers"),
    ],
)
def test_what_does_not_fit(shape, options, message, photo):
    """Each error says what the input takes."""
    with pytest.raises(TVMCException, match=message):
        read_images([photo[0]], TensorInfo("x", shape, "float32"), options)


def test_files_that_are_no_images(tmp_path, monkeypatch):
    """Damaged and missing files are named; without Pillow, the extra is."""
    tensor = TensorInfo("x", (1, 3, 2, 2), "float32")
    (tmp_path / "a.png").write_bytes(b"no image")
    with pytest.raises(TVMCException, match=r"a.png cannot be read"):
        read_images([tmp_path / "a.png"], tensor, ImageOptions())
    with pytest.raises(TVMCException, match="there is no image"):
        read_images([tmp_path / "b.png"], tensor, ImageOptions())
    real = builtins.__import__

    def refuse(name, *rest):
        if name == "PIL":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(TVMCException, match=r"tilewright\[images\]"):
        read_images([tmp_path / "a.png"], tensor, ImageOptions())
