"""Feature preprocessing: scaling, imputation, encoding."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.casting import converted
from tilewright.relay.frontend.onnx.ops.elementwise import is_floating
from tilewright.relay.frontend.onnx.registry import ML_DOMAIN, converter
from tilewright.relay.frontend.onnx.tensors import array_of
from tilewright.support.wording import argument


def _vector(values: Any, dtype: str) -> RelayExpr:
    found = np.asarray(values, dtype=dtype)
    return const(found.reshape(()) if found.size == 1 else found)


@converter("Scaler", domain=ML_DOMAIN)
def scaler(node: Node, data: RelayExpr) -> RelayExpr:
    """``(x - offset) * scale``, as float32; one of each for all features, or one for each."""
    made = converted(node, data, "float32")
    if node.attr("offset", None):
        made = relay.subtract(made, _vector(node.attr("offset"), "float32"))
    if node.attr("scale", None):
        made = relay.multiply(made, _vector(node.attr("scale"), "float32"))
    return made


@converter("Normalizer", domain=ML_DOMAIN)
def normalizer(node: Node, data: RelayExpr) -> RelayExpr:
    """Each row divided by its norm, as float32; a row of zeros stays."""
    rows = converted(node, data, "float32")
    axis = node.rank(data) - 1
    norm = str(node.attr("norm", "MAX"))
    if norm == "MAX":
        size = relay.max(relay.abs(rows), axis=axis, keepdims=True)
    elif norm == "L1":
        size = relay.sum(relay.abs(rows), axis=axis, keepdims=True)
    elif norm == "L2":
        size = relay.sqrt(relay.sum(relay.multiply(rows, rows), axis=axis, keepdims=True))
    else:
        raise node.fail(f"norm {norm!r} is not MAX, L1 or L2")
    nothing = relay.equal(size, const(0.0, "float32"))
    return relay.divide(rows, relay.where(nothing, const(1.0, "float32"), size))


@converter("Binarizer", domain=ML_DOMAIN)
def binarizer(node: Node, data: RelayExpr) -> RelayExpr:
    """One where an element is above a threshold, else zero."""
    dtype = node.dtype(data)
    threshold = float(node.attr("threshold", 0.0))
    given = data if is_floating(node, data) else relay.cast(data, "float64")
    return relay.cast(relay.greater(given, node.constant(threshold, given)), dtype)


@converter("Imputer", domain=ML_DOMAIN)
def imputer(node: Node, data: RelayExpr) -> RelayExpr:
    """A value replaced by others, one for all features or one for each; the value may be NaN."""
    if is_floating(node, data):
        values, replaced = node.attr("imputed_value_floats", None), node.attr("replaced_value_float", 0.0)
    else:
        values, replaced = node.attr("imputed_value_int64s", None), node.attr("replaced_value_int64", 0)
    if not values:
        raise node.fail("there is no replacement value")
    if np.isnan(replaced):
        gap: RelayExpr = relay.isnan(data)
    else:
        gap = relay.equal(data, node.constant(replaced, data))
    return relay.where(gap, _vector(values, node.dtype(data)), data)


@converter("ArrayFeatureExtractor", domain=ML_DOMAIN)
def array_feature_extractor(node: Node, data: RelayExpr, indices: RelayExpr) -> RelayExpr:
    """Elements of the last axis at indices; the result has two dimensions at least."""
    places = indices if node.rank(indices) == 1 else relay.reshape(indices, (-1,))
    rows = relay.expand_dims(data, 0) if node.rank(data) == 1 else data
    return relay.take(rows, places, axis=max(node.rank(data), 2) - 1)


@converter("FeatureVectorizer", domain=ML_DOMAIN)
def feature_vectorizer(node: Node, *tensors: RelayExpr) -> RelayExpr:
    """Columns joined, as float32, each tensor cut or filled with zeros to its stated width."""
    widths = [int(width) for width in node.attr("inputdimensions", None) or ()]
    parts = []
    for place, tensor in enumerate(tensors):
        rows = converted(node, tensor, "float32")
        if node.rank(rows) == 1:
            rows = relay.expand_dims(rows, 1)
        if node.rank(rows) != 2:
            raise node.fail(f"an input has {node.rank(rows)} dimensions, not one or two")
        own = node.shape(rows)[1]
        width = widths[place] if place < len(widths) else own
        if own is None or width is None:
            raise node.fail(f"the number of features is not known: fix it with {argument('shape')}")
        if width < own:
            rows = relay.strided_slice(rows, begin=[0], end=[width], axes=[1])
        elif width > own:
            rows = relay.nn.pad(rows, ((0, 0), (0, width - own)))
        parts.append(rows)
    return parts[0] if len(parts) == 1 else relay.concatenate(parts, axis=1)


# Encoders


@converter("OneHotEncoder", domain=ML_DOMAIN)
def one_hot_encoder(node: Node, data: RelayExpr) -> RelayExpr:
    """One where an element is a category, as float32, along a new last axis; an element that is none has zeros."""
    categories = node.attr("cats_int64s", None)
    if not categories:
        raise node.fail("categories that are strings are not supported")
    given = relay.expand_dims(converted(node, data, "int64"), node.rank(data))
    return relay.cast(relay.equal(given, const(np.asarray(categories, dtype="int64"))), "float32")


def _list_or_tensor(node: Node, prefix: str) -> np.ndarray[Any, Any] | None:
    """Keys or values of a label encoder."""
    for name, dtype in ((f"{prefix}_int64s", "int64"), (f"{prefix}_floats", "float32")):
        found = node.attr(name, None)
        if found:
            return np.asarray(found, dtype=dtype)
    tensor = node.attr(f"{prefix}_tensor", None)
    if tensor is not None:
        return array_of(tensor).reshape(-1)
    return None


def _default(node: Node, dtype: np.dtype[Any]) -> Any:
    tensor = node.attr("default_tensor", None)
    if tensor is not None:
        return array_of(tensor).reshape(-1)[0]
    return node.attr("default_float", -0.0) if dtype.kind == "f" else node.attr("default_int64", -1)


@converter("LabelEncoder", since=2, domain=ML_DOMAIN)
def label_encoder(node: Node, data: RelayExpr) -> RelayExpr:
    """The value of the key that each element is, or a default; of equal keys, the last counts."""
    keys, values = _list_or_tensor(node, "keys"), _list_or_tensor(node, "values")
    if keys is None or values is None:
        raise node.fail("labels that are strings are not supported")
    if len(keys) != len(values) or not len(keys):
        raise node.fail(f"{len(keys)} keys do not fit {len(values)} values")
    dtype = node.dtype(data)
    table = dict(zip(keys.astype(dtype).tolist(), values.tolist(), strict=True))
    # NaN is not a key of the sorted ones, and is looked for by itself.
    ordinary = sorted(key for key in table if key == key)
    fallback = const(np.asarray(_default(node, values.dtype), dtype=values.dtype))
    made: RelayExpr = fallback
    if ordinary:
        known = const(np.asarray(ordinary, dtype=dtype))
        place = relay.clip(relay.searchsorted(known, data), 0, len(ordinary) - 1)
        found = relay.equal(relay.take(known, place), data)
        image = const(np.asarray([table[key] for key in ordinary], dtype=values.dtype))
        made = relay.where(found, relay.take(image, place), fallback)
    lost = [value for key, value in zip(keys.tolist(), values.tolist(), strict=True) if key != key]
    if lost:
        made = relay.where(relay.isnan(data), const(np.asarray(lost[-1], dtype=values.dtype)), made)
    return made
