"""Data at the borders of partitioned functions."""

import numpy as np
import pytest
from tests.relay.transform.text import module

from tilewright.relay.analysis import get_calibration_data
from tilewright.support.errors import TilewrightError

PROGRAM = """
def @part(%a: $T, %b: $T, Compiler="test", global_symbol="part") { (add(%a, %b), exp(%a)) }
def @main(%x: $T, %y: $T) { %0 = @part(exp(%x), %y); add(%0.0, %0.1) }
"""


def test_inputs_and_outputs_of_each_function() -> None:
    """As the references compute them."""
    mod = module(PROGRAM)
    x, y = np.arange(4, dtype="float32"), np.ones(4, "float32")
    [(name, found)] = get_calibration_data(mod, {"x": x, "y": y}).items()
    assert name.name_hint == "part"
    np.testing.assert_allclose(found["inputs"][0].numpy(), np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(found["inputs"][1].numpy(), y)
    np.testing.assert_allclose(found["outputs"][0].numpy(), np.exp(x) + y, rtol=1e-6)
    np.testing.assert_allclose(found["outputs"][1].numpy(), np.exp(np.exp(x)), rtol=1e-6)


def test_missing_data_is_said() -> None:
    """By name."""
    with pytest.raises(TilewrightError, match="no data for y"):
        get_calibration_data(module(PROGRAM), {"x": np.zeros(4, "float32")})
