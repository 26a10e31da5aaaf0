"""``qconfig``: defaults, nesting, wrong values, and what a context skips."""

import pytest

from tilewright import relay
from tilewright.relay.quantize import (
    QAnnotateKind,
    QuantizeContext,
    current_qconfig,
    kind2str,
    qconfig,
    quantize_context,
)
from tilewright.support.errors import ModelError


def call(name):
    """A call of a layer."""
    shape = (1, 4, 8, 8) if name == "conv2d" else (1, 8)
    weight = (4, 4, 3, 3) if name == "conv2d" else (4, 8)
    data, values = relay.var("x", shape=shape), relay.var("w", shape=weight)
    return relay.nn.conv2d(data, values) if name == "conv2d" else relay.nn.dense(data, values)


def test_defaults_are_those_of_tvm():
    """Eight bits of data and weights, sums of 32, a global scale, and the first convolution left alone."""
    found = current_qconfig()
    assert (found.nbit_input, found.nbit_weight, found.nbit_activation) == (8, 8, 32)
    assert (found.calibrate_mode, found.global_scale, found.weight_scale) == ("global_scale", 8.0, "power2")
    assert list(found.skip_conv_layers) == [0] and found.skip_dense_layer
    assert found.get_dtype_by_kind(QAnnotateKind.ACTIVATION) == "int32"
    assert found.get_nbit_by_kind(QAnnotateKind.WEIGHT) == 8
    assert kind2str(QAnnotateKind.INPUT) == "input"


def test_configurations_nest():
    """The innermost one counts, and the one before is back after it."""
    with qconfig(global_scale=4.0):
        with qconfig(nbit_input=4):
            assert (current_qconfig().nbit_input, current_qconfig().global_scale) == (4, 8.0)
        assert current_qconfig().global_scale == 4.0
    assert current_qconfig().global_scale == 8.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"calibrate_mode": "percentil"}, "did you mean .percentile"),
        ({"weight_scale": "min"}, "power2, max"),
        ({"rounding": "DOWN"}, "UPWARD, TONEAREST"),
        ({"partition_conversions": "yes"}, "fully_integral"),
        ({"nbit_input": 1}, "2 to 32"),
        ({"global_scale": 0.0}, "positive"),
    ],
)
def test_wrong_values_are_refused(options, words):
    """The error says what may stand there."""
    with pytest.raises(ModelError, match=words):
        qconfig(**options)


def test_unknown_fields_are_a_warning():
    """TVM ignores them without a word."""
    with pytest.warns(UserWarning, match="did you mean .skip_dense_layer"):
        assert qconfig(skip_dense_layers=False).skip_dense_layer


def test_what_is_skipped():
    """Convolutions by number, dense layers by a switch, everything after a stop."""
    with qconfig(skip_conv_layers=[1], skip_dense_layer=False), QuantizeContext() as context:
        assert quantize_context() is context
        assert [context.check_to_skip(call("conv2d")) for _ in range(3)] == [False, True, False]
        assert not context.check_to_skip(call("dense"))
        context.stop_quantize()
        assert context.check_to_skip(call("dense"))
    with qconfig(debug_enabled_ops=["nn.dense"]) as found:
        assert found.guard(call("dense")) and not found.guard(call("conv2d"))
