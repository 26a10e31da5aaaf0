"""Core ML as a format of models: ``from_coreml``, ``.mlmodel`` files and ``.mlpackage`` folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tilewright.ir.module import IRModule
from tilewright.relay.frontend.common import Unsupported, check_input_names, require_supported
from tilewright.relay.frontend.common.description import Described
from tilewright.relay.frontend.common.finishing import finished
from tilewright.relay.frontend.coreml import network, program
from tilewright.relay.frontend.coreml.features import described
from tilewright.relay.frontend.coreml.layer import layer_kind
from tilewright.relay.frontend.coreml.model import CoreMLModel, is_package, read_model
from tilewright.relay.frontend.coreml.network import NetworkImporter, takes_arrays_as_they_are
from tilewright.relay.frontend.coreml.program import ProgramImporter, main_function
from tilewright.relay.frontend.registry import Frontend, Imported
from tilewright.support.recursion import recursion_room


def from_coreml(model: Any, shape: Mapping[str, Any] | None = None) -> tuple[IRModule, dict[str, Any]]:
    """A module and its parameters from a Core ML model: a neural network or an ML program.

    The model is the path of a ``.mlmodel`` file or a ``.mlpackage`` folder, the content of such a file, or a model that
    coremltools has loaded. ``shape`` maps inputs to shapes; others have the shapes that the model declares.
    """
    read = read_model(model)
    require_supported(_unsupported(read))
    shapes = shape or {}
    importer: NetworkImporter | ProgramImporter
    if read.network is None:
        importer = ProgramImporter(read.message, read.blobs, shapes)
    else:
        names = [one.name for one in read.message.description.input]
        check_input_names(shapes, names, names)
        importer = NetworkImporter(read.network, read.message.description, shapes)
    with recursion_room():
        outputs, names = importer.convert()
        return finished(importer.scope.module, importer.inputs, outputs, names, importer.scope.params)


def _unsupported(read: CoreMLModel) -> list[Unsupported]:
    return (
        program.list_unsupported(read.message)
        if read.network is None
        else network.list_unsupported(read.network)
    )


def load(path: str, shape: Mapping[str, Any] | None = None, **options: Any) -> Imported:
    """Read a file or a package."""
    return from_coreml(Path(path), shape, **options)


def unsupported_in(path: str) -> Sequence[Unsupported]:
    """The layers or operations of a model that cannot be converted."""
    return _unsupported(read_model(Path(path)))


def describe(path: str) -> Described:
    """What a model says of itself."""
    read = read_model(Path(path))
    message, exact = read.message, True
    if read.network is None:
        kinds = [one.type for one in main_function(message)[1].operations if one.type != program.CONST]
    else:
        kinds, exact = (
            [layer_kind(one) for one in read.network.layers],
            takes_arrays_as_they_are(read.network),
        )
    counts: dict[str, int] = {}
    for kind in kinds:
        counts[kind] = counts.get(kind, 0) + 1
    return Described(
        "coreml",
        "Core ML",
        {"specification": message.specificationVersion},
        counts,
        {},
        [described(one, exact) for one in message.description.input],
        [described(one, exact) for one in message.description.output],
    )


FRONTEND: Final = Frontend(
    "coreml",
    ("mlmodel", "mlpackage"),
    load,
    list_unsupported=unsupported_in,
    describe=describe,
    is_folder=is_package,
)
