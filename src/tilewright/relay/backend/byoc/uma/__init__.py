"""A backend in one class: the universal modular accelerator interface (UMA) that later versions of TVM have."""

from tilewright.relay.backend.byoc.uma.backend import UMABackend
from tilewright.relay.backend.byoc.uma.phases import PassPhase

__all__ = ["PassPhase", "UMABackend"]
