"""The registry of converters of Caffe2's operators. A converter takes the node and the expressions of its inputs."""

from __future__ import annotations

from typing import Final

from tilewright.relay.frontend.common.converters import Converters

OPERATORS: Final = Converters()
