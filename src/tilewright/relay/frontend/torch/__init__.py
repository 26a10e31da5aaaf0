"""The PyTorch frontend: exported programs, TorchScript, and graphs of compiler backends."""

from tilewright.relay.frontend.torch.exported import from_exported_program
from tilewright.relay.frontend.torch.format import FRONTEND
from tilewright.relay.frontend.torch.fx import from_fx
from tilewright.relay.frontend.torch.script import from_pytorch

__all__ = ["FRONTEND", "from_exported_program", "from_fx", "from_pytorch"]
