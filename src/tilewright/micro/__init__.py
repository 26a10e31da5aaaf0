"""Models for microcontrollers: model library format."""

from typing import Any

from tilewright.micro.model_library_format import (
    ModelLibrary,
    UnsupportedInModelLibraryFormatError,
    export_model_library_format,
    extract_model_library,
)

__all__ = [
    "ModelLibrary",
    "UnsupportedInModelLibraryFormatError",
    "export_model_library_format",
    "extract_model_library",
]
