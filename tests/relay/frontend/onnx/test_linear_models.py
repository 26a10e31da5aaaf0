"""Linear models and support vector machines give what ONNX Runtime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx import reference_runtime
from tests.relay.frontend.onnx.models import assert_close, node_model, run

from tilewright.relay.frontend.onnx import from_onnx
from tilewright.relay.frontend.onnx.registry import ML_DOMAIN
from tilewright.support.errors import ModelError

RANDOM = np.random.default_rng(0)
DATA = RANDOM.standard_normal((7, 4)).astype("float32")


def numbers(count: int) -> list[float]:
    """Random numbers of float32."""
    return [float(value) for value in RANDOM.standard_normal(count).astype("float32")]


def model_of(operator: str, outputs: int, data: Any = DATA, **attributes: Any) -> Any:
    """A model of one operator."""
    return node_model(operator, {"x": data}, outputs, ML_DOMAIN, 17, **attributes)


def compare(operator: str, outputs: int, data: Any = DATA, **attributes: Any) -> None:
    """The model gives what ONNX Runtime gives."""
    model = model_of(operator, outputs, data, **attributes)
    assert_close(run(model, {"x": data}), reference_runtime.outputs(model, {"x": data}))


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_linear_functions(transform: str) -> None:
    """A regressor of two targets, classifiers of three and of two classes, and one score for two classes."""
    common = {"post_transform": transform}
    compare("LinearRegressor", 1, coefficients=numbers(8), intercepts=numbers(2), targets=2, **common)
    for rows, labels in ((3, [4, 7, 9]), (2, [4, 7]), (1, [4, 7])):
        compare(
            "LinearClassifier",
            2,
            coefficients=numbers(4 * rows),
            intercepts=numbers(rows),
            classlabels_ints=labels,
            **common,
        )


def test_integers_are_features_too() -> None:
    """Data of int64."""
    data = np.arange(28).reshape(7, 4) % 5 - 2
    compare(
        "LinearClassifier",
        2,
        data,
        coefficients=numbers(12),
        intercepts=numbers(3),
        classlabels_ints=[1, 2, 3],
    )


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "POLY", "SIGMOID"])
def test_kernels(kernel: str) -> None:
    """A regressor, and classifiers of three and of two classes, one against one."""
    common: dict[str, Any] = {"kernel_type": kernel, "kernel_params": [0.3, 0.1, 3.0]}
    compare(
        "SVMRegressor",
        1,
        n_supports=5,
        support_vectors=numbers(20),
        coefficients=numbers(5),
        rho=numbers(1),
        **common,
    )
    for sizes, labels in (([2, 3, 2], [3, 5, 8]), ([2, 3], [3, 5])):
        count, classes = sum(sizes), len(sizes)
        compare(
            "SVMClassifier",
            2,
            vectors_per_class=sizes,
            support_vectors=numbers(4 * count),
            coefficients=numbers(count * (classes - 1)),
            rho=numbers(classes * (classes - 1) // 2),
            classlabels_ints=labels,
            **common,
        )


def test_one_class_and_no_support_vectors() -> None:
    """The sign of the sum, and a linear function."""
    compare(
        "SVMRegressor",
        1,
        kernel_type="RBF",
        kernel_params=[0.3, 0.1, 3.0],
        n_supports=5,
        support_vectors=numbers(20),
        coefficients=numbers(5),
        rho=numbers(1),
        one_class=1,
    )
    compare(
        "SVMRegressor",
        1,
        kernel_type="LINEAR",
        kernel_params=[0.0, 0.0, 0.0],
        n_supports=0,
        coefficients=numbers(4),
        rho=numbers(1),
    )


def test_probabilities_of_two_classes() -> None:
    """Platt's sigmoid; ONNX Runtime iterates to within 0.005."""
    model = model_of(
        "SVMClassifier",
        2,
        kernel_type="RBF",
        kernel_params=[0.3, 0.1, 3.0],
        vectors_per_class=[2, 3],
        support_vectors=numbers(20),
        coefficients=numbers(5),
        rho=numbers(1),
        classlabels_ints=[3, 5],
        prob_a=[-1.3],
        prob_b=[0.2],
    )
    assert_close(run(model, {"x": DATA}), reference_runtime.outputs(model, {"x": DATA}), atol=1e-2)


def test_what_is_left_out_says_so() -> None:
    """Labels that are strings, and probabilities of three classes."""
    with pytest.raises(ModelError, match="labels that are strings"):
        from_onnx(model_of("LinearClassifier", 2, coefficients=numbers(8), classlabels_strings=["a", "b"]))
    three = model_of(
        "SVMClassifier",
        2,
        kernel_type="LINEAR",
        vectors_per_class=[1, 1, 1],
        support_vectors=numbers(12),
        coefficients=numbers(6),
        rho=numbers(3),
        classlabels_ints=[1, 2, 3],
        prob_a=numbers(3),
        prob_b=numbers(3),
    )
    with pytest.raises(ModelError, match="more than two classes"):
        from_onnx(three)
