"""Parameters by their names."""

import numpy as np
import pytest

from tilewright import relay
from tilewright.relay.testing import create_workload
from tilewright.relay.testing.init import Constant, Xavier
from tilewright.support.errors import TilewrightError


def model() -> relay.Function:
    """A dense layer with a bias."""
    data = relay.var("data", shape=(2, 30))
    body = relay.nn.bias_add(relay.nn.dense(data, relay.var("fc_weight"), units=50), relay.var("fc_bias"))
    return relay.Function(relay.analysis.free_vars(body), body)


def test_a_workload_has_values_for_everything_but_the_data() -> None:
    """Weights are random within Xavier's bounds, biases are zero; the same seed gives the same weights."""
    module, params = create_workload(model(), seed=3)
    assert sorted(params) == ["fc_bias", "fc_weight"]
    weight = params["fc_weight"].numpy()
    bound = np.sqrt(3 / ((30 + 50) / 2))
    assert weight.shape == (50, 30)
    assert 0.9 * bound < np.abs(weight).max() <= bound
    assert not params["fc_bias"].numpy().any()
    _, again = create_workload(model(), seed=3)
    _, other = create_workload(model(), seed=4)
    assert (again["fc_weight"].numpy() == weight).all()
    assert (other["fc_weight"].numpy() != weight).any()


def test_ways_to_draw_weights() -> None:
    """Evenly or normally, by the inputs, the outputs, or both."""
    array = np.zeros((400, 100))
    Xavier("gaussian", "in", 2)("weight", array)
    assert abs(array.std() - np.sqrt(2 / 100)) < 0.01
    Xavier("uniform", "out", 12)("weight", array)
    assert abs(array.std() - np.sqrt(12 / 400 / 3)) < 0.01
    Constant(2.5)("anything", array)
    assert (array == 2.5).all()


def test_names_decide() -> None:
    """Scales and variances are one, shifts and means zero, enlarging kernels interpolate."""
    array = np.full((3,), 9.0)
    for name, value in (("x_gamma", 1), ("x_moving_var", 1), ("x_beta", 0), ("x_moving_mean", 0)):
        Xavier()(name, array)
        assert (array == value).all()
    kernel = np.zeros((1, 1, 4, 4))
    Xavier()("upsampling_weight", kernel)
    np.testing.assert_allclose(kernel[0, 0, 1], np.array([0.25, 0.75, 0.75, 0.25]) * 0.75)


def test_what_cannot_be_filled_is_refused() -> None:
    """Unknown names, vectors of weights, unknown shapes."""
    with pytest.raises(ValueError, match="no way to fill parameter 'speed'"):
        Xavier()("speed", np.zeros(3))
    with pytest.raises(ValueError, match="two dimensions or more"):
        Xavier()("weight", np.zeros(3))
    with pytest.raises(ValueError, match="uniform or gaussian"):
        Xavier("normal")
    x = relay.var("x_weight", shape=(relay.Any(), 2))
    with pytest.raises(TilewrightError, match="shape of x_weight is not known"):
        create_workload(relay.Function([x], relay.exp(x)))
