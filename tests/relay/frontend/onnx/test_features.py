"""Preparation of features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx.models import assert_close, node_model, run

from tilewright.relay.frontend.onnx import from_onnx
from tilewright.relay.frontend.onnx.registry import ML_DOMAIN
from tilewright.support.errors import ModelError

DATA = np.asarray([[1.0, -2.0, 3.0], [0.0, 0.0, 0.0]], "float32")


def one(operator: str, *values: Any, version: int = 1, **attributes: Any) -> Any:
    """The result of one operator."""
    inputs = {f"x{place}": np.asarray(value) for place, value in enumerate(values)}
    model = node_model(operator, inputs, domain=ML_DOMAIN, **attributes)
    model.opset_import[-1].version = version
    return run(model, inputs)[0]


def test_scaling() -> None:
    """(x - offset) * scale, one for all or one for each, as float32."""
    found = one("Scaler", DATA, offset=[1.0, 0.0, 1.0], scale=[2.0, 1.0, 0.5])
    assert_close([found], [np.asarray([[0, -2, 1], [-2, 0, -0.5]], "float32")])
    assert_close([one("Scaler", DATA, offset=[1.0], scale=[2.0])], [(DATA - 1) * 2])
    assert one("Scaler", np.asarray([[1, 2]]), offset=[0.0], scale=[1.0]).dtype == np.float32


@pytest.mark.parametrize(("norm", "size"), [("MAX", 3.0), ("L1", 6.0), ("L2", 14**0.5)])
def test_norms(norm: str, size: float) -> None:
    """Each row by its norm; a row of zeros stays."""
    assert_close([one("Normalizer", DATA, norm=norm)], [np.stack([DATA[0] / np.float32(size), DATA[1]])])


def test_gaps_are_filled() -> None:
    """NaN or a number, replaced by one value or by one for each feature."""
    gaps = np.asarray([[np.nan, 2.0], [1.0, np.nan]], "float32")
    found = one("Imputer", gaps, imputed_value_floats=[7.0, 8.0], replaced_value_float=float("nan"))
    np.testing.assert_array_equal(found, [[7, 2], [1, 8]])
    whole = one("Imputer", np.asarray([[1, 2], [2, 3]]), imputed_value_int64s=[9], replaced_value_int64=2)
    np.testing.assert_array_equal(whole, [[1, 9], [9, 3]])


def test_features_are_taken_and_joined() -> None:
    """Columns at indices; tensors side by side, cut or filled to a width."""
    np.testing.assert_array_equal(one("ArrayFeatureExtractor", DATA, np.asarray([2, 0])), DATA[:, [2, 0]])
    np.testing.assert_array_equal(one("ArrayFeatureExtractor", DATA[0], np.asarray([1])), [[-2]])
    found = one("FeatureVectorizer", DATA, np.asarray([[5], [6]]), inputdimensions=[2, 2])
    np.testing.assert_array_equal(found, [[1, -2, 5, 0], [0, 0, 6, 0]])


def test_thresholds() -> None:
    """One above the threshold, zero elsewhere, in the type of the data."""
    np.testing.assert_array_equal(one("Binarizer", DATA, threshold=0.5), [[1, 0, 1], [0, 0, 0]])


def test_categories() -> None:
    """A new last axis has a one at the category; what is none has zeros."""
    found = one("OneHotEncoder", np.asarray([3, 1, 7]), cats_int64s=[1, 2, 3], zeros=1)
    np.testing.assert_array_equal(found, [[0, 0, 1], [1, 0, 0], [0, 0, 0]])


def test_labels() -> None:
    """Integers to floats, floats (NaN among them) to integers, with a default."""
    found = one(
        "LabelEncoder",
        np.asarray([[3, 1, 7]]),
        version=2,
        keys_int64s=[1, 3],
        values_floats=[0.5, 0.25],
        default_float=-2.0,
    )
    np.testing.assert_array_equal(found, np.asarray([[0.25, 0.5, -2.0]], "float32"))
    whole = one(
        "LabelEncoder",
        np.asarray([3.0, np.nan, 2.0], "float32"),
        version=4,
        keys_floats=[3.0, float("nan")],
        values_int64s=[5, 6],
    )
    np.testing.assert_array_equal(whole, [5, 6, -1])
    model = node_model(
        "LabelEncoder", {"x": np.asarray([1])}, domain=ML_DOMAIN, keys_int64s=[1], values_strings=["a"]
    )
    model.opset_import[-1].version = 2
    with pytest.raises(ModelError, match="strings"):
        from_onnx(model)
