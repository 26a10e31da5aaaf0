"""Loading models: one frontend per format, selected by name or by the file's suffix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, NoReturn

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.driver.tvmc.model import TVMCModel
from tilewright.ir.module import IRModule
from tilewright.relay.frontend import from_onnx

Imported = tuple[IRModule, dict[str, Any]]
"""A module and its parameters."""


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


class OnnxFrontend(Frontend):
    """ONNX."""

    @staticmethod
    def name() -> str:
        """Its name for ``--model-format``."""
        return "onnx"

    @staticmethod
    def suffixes() -> list[str]:
        """The suffixes of its files, without a dot."""
        return ["onnx"]

    def load(self, path: str, shape_dict: dict[str, Any] | None = None, **kwargs: Any) -> Imported:
        """Read a file; the arguments are those of ``relay.frontend.from_onnx``."""
        return from_onnx(path, shape=shape_dict, **kwargs)


class _NotInThisVersion(Frontend):
    """A format that this version cannot read; ``way`` is how such a model becomes ONNX."""

    way = ""

    def load(self, path: str, shape_dict: dict[str, Any] | None = None, **kwargs: Any) -> Imported:
        """Say that there is no importer, and what to do."""
        self._refuse(path)

    @classmethod
    def _refuse(cls, what: str) -> NoReturn:
        raise TVMCException(
            f"{what} cannot be read: models in the format {cls.name()} are not in this version. "
            f"Convert it to ONNX: {cls.way}"
        )


def import_keras() -> NoReturn:
    """Keras, for those who load models with it."""
    KerasFrontend._refuse("a Keras model")


class KerasFrontend(_NotInThisVersion):
    """Keras."""

    way = "pip install tf2onnx && python -m tf2onnx.convert --keras model.h5 --output model.onnx"

    @staticmethod
    def name() -> str:
        """Its name for ``--model-format``."""
        return "keras"

    @staticmethod
    def suffixes() -> list[str]:
        """The suffixes of its files, without a dot."""
        return ["h5"]

    def is_sequential_p(self, model: Any) -> bool:
        """True for a model that is a row of layers."""
        self._refuse("a Keras model")

    def sequential_to_functional(self, model: Any) -> Any:
        """A row of layers as a functional model."""
        self._refuse("a Keras model")


class TensorflowFrontend(_NotInThisVersion):
    """TensorFlow's frozen graphs."""

    way = (
        "pip install tf2onnx && python -m tf2onnx.convert --graphdef model.pb --inputs x:0 --outputs y:0 "
        "--output model.onnx"
    )

    @staticmethod
    def name() -> str:
        """Its name for ``--model-format``."""
        return "pb"

    @staticmethod
    def suffixes() -> list[str]:
        """The suffixes of its files, without a dot."""
        return ["pb"]


class TFLiteFrontend(_NotInThisVersion):
    """TensorFlow Lite."""

    way = "pip install tf2onnx && python -m tf2onnx.convert --tflite model.tflite --output model.onnx"

    @staticmethod
    def name() -> str:
        """Its name for ``--model-format``."""
        return "tflite"

    @staticmethod
    def suffixes() -> list[str]:
        """The suffixes of its files, without a dot."""
        return ["tflite"]


class PyTorchFrontend(_NotInThisVersion):
    """TorchScript."""

    way = "torch.onnx.export(model, (example,), 'model.onnx') in Python"

    @staticmethod
    def name() -> str:
        """Its name for ``--model-format``."""
        return "pytorch"

    @staticmethod
    def suffixes() -> list[str]:
        """The suffixes of its files, without a dot."""
        return ["pth", "zip"]


class PaddleFrontend(_NotInThisVersion):
    """PaddlePaddle."""

    way = "pip install paddle2onnx && paddle2onnx --model_dir . --model_filename m.pdmodel --save_file model.onnx"

    @staticmethod
    def name() -> str:
        """Its name for ``--model-format``."""
        return "paddle"

    @staticmethod
    def suffixes() -> list[str]:
        """The suffixes of its files, without a dot."""
        return ["pdmodel", "pdiparams"]


ALL_FRONTENDS: list[type[Frontend]] = [
    KerasFrontend,
    OnnxFrontend,
    TensorflowFrontend,
    TFLiteFrontend,
    PyTorchFrontend,
    PaddleFrontend,
]


def get_frontend_names() -> list[str]:
    """The formats by name."""
    return [frontend.name() for frontend in ALL_FRONTENDS]


def get_frontend_by_name(name: str) -> Frontend:
    """The frontend of a format."""
    for frontend in ALL_FRONTENDS:
        if name == frontend.name():
            return frontend()
    raise TVMCException(f"there is no model format {name!r}; they are {', '.join(get_frontend_names())}")


def guess_frontend(path: str) -> Frontend:
    """The frontend for a file, by its suffix."""
    if Path(path).is_dir():
        raise TVMCException(f"{path} is a folder: name the model's file in it")
    suffix = Path(path).suffix.lstrip(".").lower()
    for frontend in ALL_FRONTENDS:
        if suffix in frontend.suffixes():
            return frontend()
    raise TVMCException(
        f"the format of {path} is not clear from its name. This version reads ONNX models (.onnx): "
        "export the model to one; if it is ONNX under another name, pass --model-format onnx"
    )


def load_model(
    path: str, model_format: str | None = None, shape_dict: dict[str, Any] | None = None, **kwargs: Any
) -> TVMCModel:
    """Read a model; ``shape_dict`` gives shapes of inputs that the file leaves open, ``kwargs`` go to the importer."""
    frontend = get_frontend_by_name(model_format) if model_format else guess_frontend(path)
    if not Path(path).exists():
        raise TVMCException(f"there is no model {path}")
    mod, params = frontend.load(str(path), shape_dict, **kwargs)
    return TVMCModel(mod, params)
