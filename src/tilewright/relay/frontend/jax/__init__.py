"""The JAX frontend: StableHLO programs, as ``jax.export`` and ``jax.jit`` make them."""

from tilewright.relay.frontend.jax.format import FRONTEND, from_jax

__all__ = ["FRONTEND", "from_jax"]
