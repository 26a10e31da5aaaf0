"""Fourier transforms as matrix products, against NumPy's."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.frontend.common import ModelNode
from tilewright.relay.frontend.common.fourier import transformed
from tilewright.support.errors import ModelError

RANDOM = np.random.default_rng(0)


def result(array, axis, count, **options):
    """A compiled transform of an array, complex or not."""
    parts = [array.real, array.imag] if np.iscomplexobj(array) else [array]
    inputs = [
        relay.var(f"part{place}", shape=part.shape, dtype="float64") for place, part in enumerate(parts)
    ]
    data = (inputs[0], inputs[1] if len(inputs) == 2 else None)
    real, imaginary = transformed(ModelNode("fft", "fft", {}, None), data, axis, count, **options)
    made = relay.Tuple([real] if imaginary is None else [real, imaginary])
    module = tvm.IRModule.from_expr(relay.Function(inputs, made))
    run = relay.create_executor("graph", mod=module, device=tvm.cpu(), target="llvm").evaluate()
    found = [part.numpy() for part in run(*parts)]
    return found[0] if len(found) == 1 else found[0] + 1j * found[1]


def complex_numbers(*shape):
    return RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)


@pytest.mark.parametrize("count", [1, 2, 7, 12, 97, 1024, 1500, 3 * 709])
def test_transforms_of_all_elements(count):
    """Of few elements as one product, of many in factors, and of numbers that have only large ones."""
    array = complex_numbers(2, count)
    forward = result(array, 1, count, inverse=False, onesided=False, scale=1.0)
    np.testing.assert_allclose(forward, np.fft.fft(array), atol=1e-9)
    inverse = result(array, 1, count, inverse=True, onesided=False, scale=1 / count)
    np.testing.assert_allclose(inverse, np.fft.ifft(array), atol=1e-12)


@pytest.mark.parametrize("count", [1, 2, 9, 16, 2000, 2025])
def test_half_spectra_of_real_signals(count):
    """There and back; the imaginary parts of the ends of a half spectrum are ignored."""
    array = RANDOM.normal(size=(3, count))
    forward = result(array, 1, count, inverse=False, onesided=True, scale=1.0)
    np.testing.assert_allclose(forward, np.fft.rfft(array), atol=1e-9)
    spectrum = complex_numbers(3, count // 2 + 1)
    back = result(spectrum, 1, count, inverse=True, onesided=True, scale=1 / count)
    np.testing.assert_allclose(back, np.fft.irfft(spectrum, count), atol=1e-12)


@pytest.mark.parametrize("count", [5, 20, 2048])
def test_axes_of_other_lengths(count):
    """They are cut off or padded with zeros, wherever they are."""
    array = complex_numbers(12, 2)
    found = result(array, 0, count, inverse=False, onesided=False, scale=0.5)
    np.testing.assert_allclose(found, np.fft.fft(array, count, axis=0) / 2, atol=1e-10)
    back = result(array, 0, count, inverse=True, onesided=True, scale=1 / count)
    np.testing.assert_allclose(back, np.fft.irfft(array, count, axis=0), atol=1e-12)


def test_a_large_prime_is_refused():
    """Its matrix would not fit."""
    with pytest.raises(ModelError, match="10007 elements, which has no factors"):
        result(complex_numbers(1, 10007), 1, 10007, inverse=False, onesided=False, scale=1.0)
