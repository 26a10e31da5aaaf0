"""run_module and the making of inputs."""

import numpy as np
import pytest

from tilewright.driver import tvmc
from tilewright.driver.tvmc import TVMCException, runner


def test_inputs_of_a_graph(small_package):
    """Parameters are not inputs, whether they come as bytes or by name."""
    package = tvmc.TVMCPackage(small_package)
    shapes, dtypes = runner.get_input_info(package.graph, package.params)
    assert (shapes, dtypes) == ({"x": [2, 4]}, {"x": "float32"})
    assert runner.get_input_info(package.graph, package.content.params)[0] == {"x": [2, 4]}
    with pytest.raises(TVMCException, match="graph is damaged"):
        runner.get_input_info("{}", {})


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "float64", "bfloat16", "int8", "uint8", "int64", "bool"]
)
def test_made_up_values(dtype):
    """Zeros, ones and random values have the shape and type; random ones are the same each time."""
    assert not runner.generate_tensor_data((2, 3), dtype, "zeros").any()
    assert runner.generate_tensor_data((2, 3), dtype, "ones").all()
    found = runner.generate_tensor_data((50, 3), dtype, "random")
    assert found.dtype == dtype and found.shape == (50, 3)
    assert len(np.unique(found)) > 1
    np.testing.assert_array_equal(found, runner.generate_tensor_data((50, 3), dtype, "random"))
    with pytest.raises(TVMCException, match="zeros, ones or random"):
        runner.generate_tensor_data((1,), dtype, "sevens")


def test_inputs_are_completed():
    """What is given stays, what is not is made up, and unknown names are refused."""
    shapes, dtypes = {"a": [2], "b": [3]}, {"a": "float32", "b": "int32"}
    made = runner.make_inputs_dict(shapes, dtypes, {"a": [1.5, 2.5]}, "ones")
    assert made["a"].dtype == "float32" and made["a"].tolist() == [1.5, 2.5]
    assert made["b"].dtype == "int32" and made["b"].tolist() == [1, 1, 1]
    with pytest.raises(TVMCException, match="no input 'c'; it has a, b"):
        runner.make_inputs_dict(shapes, dtypes, {"c": [1]})
    with pytest.raises(TVMCException, match="values that its type cannot represent"):
        runner.make_inputs_dict(shapes, dtypes, {"b": [1, 2, 1 << 40]})
    with pytest.raises(TVMCException, match="values of type float64"):
        runner.make_inputs_dict(shapes, dtypes, {"b": [0.5, 1.0, 2.0]})


def test_run(small_package, expected):
    """Outputs, times, and a report on the kernels."""
    x = np.random.default_rng(3).standard_normal((2, 4)).astype("float32")
    result = tvmc.run(
        tvmc.TVMCPackage(small_package), device="cpu", inputs={"x": x}, repeat=2, number=3, profile=True
    )
    np.testing.assert_allclose(result.get_output("output_0"), expected(x)[0], rtol=1e-5, atol=1e-6)
    assert len(result.times.results) == 2 and result.times.min > 0
    assert result.profile.total_seconds > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cuda"}, "compiled for cpu and cannot run on cuda"),
        ({"device": "cpu", "hostname": "127.0.0.1", "port": 1}, "cannot connect to 127.0.0.1:1"),
        ({"device": "cpu", "number": 0}, "at least 1"),
    ],
)
def test_what_cannot_be_run(options, message, small_package):
    """Each error says why."""
    with pytest.raises(TVMCException, match=message):
        tvmc.run(tvmc.TVMCPackage(small_package), **options)


def test_a_model_is_no_package(small_onnx):
    """It has to be compiled first."""
    with pytest.raises(TVMCException, match="compile the model first"):
        tvmc.run(tvmc.load(small_onnx), "cpu")
