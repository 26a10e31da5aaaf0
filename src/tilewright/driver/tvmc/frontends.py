"""Loading models, under tvmc's names: one class a format. The formats are those of ``relay.frontend.registry``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tilewright.driver.tvmc.errors import TVMCException, of_format
from tilewright.driver.tvmc.model import TVMCModel
from tilewright.relay.frontend import registry
from tilewright.relay.frontend.format_errors import FormatError
from tilewright.relay.frontend.keras.package import keras_package
from tilewright.relay.frontend.registry import Imported
from tilewright.relay.frontend.tensorflow.package import tensorflow_package


class Frontend(ABC):
    """A format of models."""

    @staticmethod
    @abstractmethod
    def name() -> str:
        """Its name for ``--model-format``."""

    @staticmethod
    @abstractmethod
    def suffixes() -> list[str]:
        """The suffixes of its files, without a dot."""

    @abstractmethod
    def load(self, path: str, shape_dict: dict[str, Any] | None = None, **kwargs: Any) -> Imported:
        """Read a file."""


class _Registered(Frontend):
    """A format of the registry."""

    format = ""

    @classmethod
    def name(cls) -> str:
        """Its name for ``--model-format``."""
        return cls.format

    @classmethod
    def suffixes(cls) -> list[str]:
        """The suffixes of its files, without a dot."""
        return list(registry.find_frontend(cls.format).suffixes)

    def load(self, path: str, shape_dict: dict[str, Any] | None = None, **kwargs: Any) -> Imported:
        """Read a file; the arguments are those of the frontend, such as ``relay.frontend.from_onnx``."""
        try:
            return registry.find_frontend(self.format).load(path, shape_dict, **kwargs)
        except FormatError as error:
            raise of_format(error) from error


class OnnxFrontend(_Registered):
    """ONNX."""

    format = "onnx"


def import_keras() -> tuple[Any, Any]:
    """TensorFlow and Keras, for those who load models with them."""
    return tensorflow_package(), keras_package()


class KerasFrontend(_Registered):
    """Keras."""

    format = "keras"

    def is_sequential_p(self, model: Any) -> bool:
        """True for a model that is a row of layers."""
        return isinstance(model, keras_package().Sequential)

    def sequential_to_functional(self, model: Any) -> Any:
        """A row of layers as a functional model."""
        if not self.is_sequential_p(model):
            raise TVMCException(f"the model is a {type(model).__name__}, not a Sequential")
        return keras_package().Model(model.inputs, model.outputs, name=model.name)


class TensorflowFrontend(_Registered):
    """TensorFlow's frozen graphs."""

    format = "pb"


class TFLiteFrontend(_Registered):
    """TensorFlow Lite."""

    format = "tflite"


class PyTorchFrontend(_Registered):
    """TorchScript."""

    format = "pytorch"


class PaddleFrontend(_Registered):
    """PaddlePaddle."""

    format = "paddle"


ALL_FRONTENDS: list[type[Frontend]] = [
    KerasFrontend,
    OnnxFrontend,
    TensorflowFrontend,
    TFLiteFrontend,
    PyTorchFrontend,
    PaddleFrontend,
]
"""The formats that tvmc has classes for."""


def get_frontend_names() -> list[str]:
    """The formats by name: tvmc's, then the others of the registry."""
    named = [frontend.name() for frontend in ALL_FRONTENDS]
    return named + sorted(registry.readable_formats().keys() - set(named))


def get_frontend_by_name(name: str) -> Frontend:
    """The frontend of a format."""
    try:
        return _frontend_of(registry.find_frontend(name))
    except FormatError as error:
        raise of_format(error) from error


def guess_frontend(path: str) -> Frontend:
    """The frontend for a file, by its suffix, else by its content."""
    try:
        return _frontend_of(registry.guess_frontend(path))
    except FormatError as error:
        raise of_format(error) from error


def _frontend_of(found: registry.Frontend) -> Frontend:
    """An instance of tvmc's class of a format, or of a class made for it."""
    for known in ALL_FRONTENDS:
        if known.name() == found.name:
            return known()
    made: type[_Registered] = type(f"{found.name.title()}Frontend", (_Registered,), {"format": found.name})
    return made()


def load_model(
    path: str, model_format: str | None = None, shape_dict: dict[str, Any] | None = None, **kwargs: Any
) -> TVMCModel:
    """Read a model; ``shape_dict`` gives shapes of inputs that the file leaves open, ``kwargs`` go to the importer."""
    try:
        mod, params = registry.import_model(str(path), model_format, shape_dict, **kwargs)
    except FormatError as error:
        raise of_format(error) from error
    return TVMCModel(mod, params)
