"""``torch.compile(model, backend="tilewright")``: PyTorch finds the backend by the package's entry point."""

from tilewright.driver.torch_backend.backend import tilewright
from tilewright.driver.torch_backend.options import BackendOptions

__all__ = ["BackendOptions", "tilewright"]
