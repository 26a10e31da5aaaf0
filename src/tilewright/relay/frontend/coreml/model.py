"""Core ML models: files, packages, and models that coremltools has loaded."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilewright.relay.frontend.common.protobuf import Message, Schema
from tilewright.relay.frontend.coreml.model_messages import MODEL
from tilewright.relay.frontend.coreml.network_messages import NETWORK
from tilewright.relay.frontend.coreml.program_messages import PROGRAM
from tilewright.relay.frontend.coreml.weights import Blobs
from tilewright.support.errors import ModelError

SCHEMA: Final = Schema({**MODEL, **NETWORK, **PROGRAM})
_MANIFEST: Final = "Manifest.json"
NETWORKS: Final = ("neuralNetwork", "neuralNetworkClassifier", "neuralNetworkRegressor")


@dataclass(frozen=True)
class CoreMLModel:
    """A model that was read, and where its weights are."""

    message: Message
    blobs: Blobs

    @property
    def network(self) -> Message | None:
        """The neural network; None where the model is an ML program."""
        which = self.message.which(*NETWORKS)
        return getattr(self.message, which) if which else None


def read_model(model: Any) -> CoreMLModel:
    """A model from a path, bytes, a message of coremltools, or a loaded model."""
    if isinstance(model, (str, Path)):
        path, folder = _files(Path(model))
        return _checked(path.read_bytes(), folder)
    if isinstance(model, (bytes, bytearray)):
        return _checked(bytes(model), None)
    folder = getattr(model, "weights_dir", None)
    described = model.get_spec() if hasattr(model, "get_spec") else model
    if not hasattr(described, "SerializeToString"):
        raise ModelError(f"a {type(model).__name__} is not a Core ML model, nor the path of one")
    # The names of weights' files begin with the folder above the one that holds them.
    return _checked(described.SerializeToString(), Path(folder).parent if folder else None)


def is_package(path: str) -> bool:
    """True if a folder is a package of a Core ML model."""
    return (Path(path) / _MANIFEST).is_file()


def _files(path: Path) -> tuple[Path, Path | None]:
    """The file of the model's message, and the folder of its weights."""
    if not path.is_dir():
        return path, path.parent
    try:
        manifest = json.loads((path / _MANIFEST).read_text())
        item = manifest["itemInfoEntries"][manifest["rootModelIdentifier"]]["path"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path} is not a package of a Core ML model: its {_MANIFEST} cannot be read"
        ) from error
    file = (path / "Data" / item).resolve()
    if not file.is_relative_to(path.resolve()) or not file.is_file():
        raise ModelError(f"{path} is damaged: there is no model {item} in it")
    return file, file.parent


def _checked(content: bytes, folder: Path | None) -> CoreMLModel:
    try:
        message = SCHEMA.read("Model", content)
    except ModelError as error:
        raise ModelError(f"not a Core ML model: {error}") from error
    if not message.has("specificationVersion") or not message.has("description"):
        raise ModelError("not a Core ML model: it has no version and no description")
    if not message.which(*NETWORKS, "mlProgram"):
        raise ModelError(
            "the Core ML model is neither a neural network nor an ML program; pipelines, trees and linear models are "
            "not supported"
        )
    return CoreMLModel(message, Blobs(folder))
