"""TorchScript: traced and scripted modules and functions."""

from tilewright.relay.frontend.torch.script.model import from_pytorch

__all__ = ["from_pytorch"]
