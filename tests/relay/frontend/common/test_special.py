"""Special functions written out as Relay, against SciPy's."""

import numpy as np
import pytest
import scipy.special

import tilewright as tvm
from tilewright import relay
from tilewright.relay.frontend.common import special

RANDOM = np.random.default_rng(0)
NUMBERS = np.concatenate(
    [
        RANDOM.normal(0, 3, 400),
        RANDOM.uniform(-20, 200, 200),
        [0, -1, -2, 1, 2, 0.5, -1e-3, 1e4, 1e6, np.inf, np.nan],
    ]
)
PARTS = np.concatenate([RANDOM.uniform(-1, 1, 400), [1, -1, 0, 1.5, np.nan], 1 - 0.1 ** np.arange(1, 17)])
FUNCTIONS = {
    "lgamma": (scipy.special.gammaln, NUMBERS),
    "digamma": (scipy.special.digamma, NUMBERS),
    "erfinv": (scipy.special.erfinv, np.concatenate([PARTS, -PARTS])),
}


def compiled(function, values, dtype):
    """What a compiled function gives for an array of values."""
    data = relay.var("data", shape=values.shape, dtype=dtype)
    module = tvm.IRModule.from_expr(relay.Function([data], function(data, dtype)))
    run = relay.create_executor("graph", mod=module, device=tvm.cpu(), target="llvm").evaluate()
    return run(values.astype(dtype)).numpy()


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-9)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_functions_agree_with_scipy(name, dtype, tolerance):
    """To within the tolerance, relative or absolute, with the same infinities and the same places without a value."""
    reference, values = FUNCTIONS[name]
    values = values.astype(dtype)
    found = compiled(getattr(special, name), values, dtype)
    np.testing.assert_allclose(found, reference(values.astype("float64")), rtol=tolerance, atol=tolerance)


def test_16_bit_floats_are_computed_in_float32():
    """Only the result is rounded."""
    values = RANDOM.uniform(0.6, 40, 100).astype("float16")
    found = compiled(special.lgamma, values, "float16")
    assert found.dtype == "float16"
    np.testing.assert_array_equal(
        found, compiled(special.lgamma, values.astype("float32"), "float32").astype("float16")
    )
