"""Quantised modules: eager-mode static and dynamic quantisation, as plain operators on integers and numbers."""

from tilewright.relay.frontend.torch.script.quantized import (
    conversions,
    dynamic,
    elementwise,
    layers,
)
