"""oneDNN behind a code generator: its C library through ctypes, and the runtime of its parts of a model."""

from tilewright.runtime.external.onednn import products
from tilewright.runtime.external.onednn.library import is_available
from tilewright.runtime.external.onednn.runtime import OneDNNRuntime

__all__ = ["OneDNNRuntime", "is_available"]
