"""The registry of converters of Caffe's layers. A converter takes the node and the expressions of its inputs."""

from __future__ import annotations

from typing import Final

from tilewright.relay.frontend.common.converters import Converters

LAYERS: Final = Converters()
