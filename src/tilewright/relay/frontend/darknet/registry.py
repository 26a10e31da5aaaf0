"""The registry of converters of Darknet's layers. A converter takes the node and the result of the layer before."""

from __future__ import annotations

from typing import Final

from tilewright.relay.frontend.common.converters import Converter, Converters

_CONVERTERS: Final = Converters()
converter = _CONVERTERS.register
find_converter = _CONVERTERS.find
converted_names = _CONVERTERS.names

__all__ = ["Converter", "converted_names", "converter", "find_converter"]
