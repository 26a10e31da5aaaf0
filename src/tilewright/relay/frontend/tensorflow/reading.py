"""A frozen graph from whatever form a TensorFlow model comes in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tilewright.relay.frontend.tensorflow.package import tensorflow_package
from tilewright.support.errors import ModelError

SAVED_MODEL_FILES: Final = ("saved_model.pb", "saved_model.pbtxt")


@dataclass(frozen=True)
class FrozenGraph:
    """A graph without variables; its inputs and outputs in order, where the model says which they are."""

    graph: Any
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    output_names: Sequence[str] = field(default=())


def is_saved_model(path: str | os.PathLike[str]) -> bool:
    """True if a folder is a SavedModel."""
    return any((Path(path) / name).is_file() for name in SAVED_MODEL_FILES)


def read_graph(model: Any, signature: str | None = None) -> FrozenGraph:
    """A frozen graph from a ``GraphDef``, a ``tf.Graph``, a concrete function, the bytes or path of a frozen graph, or
    the path of a SavedModel."""
    tensorflow = tensorflow_package()
    if isinstance(model, (str, os.PathLike)):
        path = Path(model)
        if path.is_dir():
            return _saved_model(path, signature)
        if not path.is_file():
            raise ModelError(f"there is no TensorFlow model {path}")
        if path.name in SAVED_MODEL_FILES and (path.parent / "variables").is_dir():
            return _saved_model(path.parent, signature)
        return FrozenGraph(_parsed(path.read_bytes(), str(path)))
    if isinstance(model, (bytes, bytearray)):
        return FrozenGraph(_parsed(bytes(model), "the bytes"))
    if isinstance(model, tensorflow.compat.v1.GraphDef):
        return FrozenGraph(model)
    if isinstance(model, tensorflow.Graph):
        return FrozenGraph(model.as_graph_def())
    if hasattr(model, "structured_outputs") and hasattr(model, "graph"):
        return frozen_function(model)
    if hasattr(model, "get_concrete_function"):
        raise ModelError(
            "a tf.function becomes a graph for given inputs: pass f.get_concrete_function(tf.TensorSpec(...))"
        )
    raise ModelError(
        f"a TensorFlow model is a GraphDef, a concrete function, or the path of a frozen graph or SavedModel, not a "
        f"{type(model).__name__}"
    )


def _parsed(content: bytes, where: str) -> Any:
    tensorflow = tensorflow_package()
    graph = tensorflow.compat.v1.GraphDef()
    try:
        graph.ParseFromString(content)
    except Exception as error:
        raise ModelError(f"{where} is not a TensorFlow graph: {error}") from error
    if not graph.node:
        raise ModelError(f"{where} is not a TensorFlow graph: it has no nodes")
    return graph


def _saved_model(path: Path, signature: str | None) -> FrozenGraph:
    tensorflow = tensorflow_package()
    if not is_saved_model(path):
        raise ModelError(f"{path} is a folder without a saved_model.pb: not a SavedModel")
    try:
        loaded = tensorflow.saved_model.load(str(path))
    except Exception as error:
        raise ModelError(f"TensorFlow cannot load the SavedModel {path}: {error}") from error
    known = dict(loaded.signatures)
    if not known:
        raise ModelError(f"the SavedModel {path} has no signatures: save it with signatures=")
    if signature is not None and signature not in known:
        raise ModelError(
            f"the SavedModel {path} has no signature {signature!r}; it has {', '.join(sorted(known))}"
        )
    chosen = signature or ("serving_default" if "serving_default" in known else sorted(known)[0])
    return frozen_function(known[chosen])


def frozen_function(function: Any) -> FrozenGraph:
    """A concrete function with the values of its variables in the graph."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    frozen = convert_variables_to_constants_v2(function, lower_control_flow=False)
    outputs = [one.name for one in frozen.outputs]
    structured = function.structured_outputs
    names = list(structured) if isinstance(structured, dict) and len(structured) == len(outputs) else outputs
    return FrozenGraph(
        frozen.graph.as_graph_def(),
        [one.op.name for one in frozen.inputs],
        outputs,
        [str(one) for one in names],
    )
