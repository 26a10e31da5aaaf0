"""Models for microcontrollers: model library format."""

from typing import Any

from tilewright.micro.model_library_format import (
    ModelLibrary,
    UnsupportedInModelLibraryFormatError,
    export_model_library_format,
    extract_model_library,
)
from tilewright.not_yet import attribute_not_there

__all__ = [
    "ModelLibrary",
    "UnsupportedInModelLibraryFormatError",
    "export_model_library_format",
    "extract_model_library",
]


def __getattr__(name: str) -> Any:
    return attribute_not_there(__name__, name)
