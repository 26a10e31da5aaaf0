"""Models for small machines: model library format."""

from tilewright.micro.model_library_format import (
    ModelLibrary,
    export_model_library_format,
    extract_model_library,
)

__all__ = ["ModelLibrary", "export_model_library_format", "extract_model_library"]
