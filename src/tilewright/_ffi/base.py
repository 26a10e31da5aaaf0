"""The root of all errors, under the name of the module that TVM has it in."""

from tilewright.support.errors import TilewrightError as TVMError

__all__ = ["TVMError"]
