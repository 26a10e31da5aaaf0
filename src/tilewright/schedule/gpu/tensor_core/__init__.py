"""Products on tensor cores: kernels that replace the products of a schedule.

``use_tensor_cores`` finds the products among a schedule's stages and puts a kernel in the place of each: matrix
products and convolutions alike (``factors``), with the elementwise operations behind them (``epilogue``). ``tiling``
chooses the sizes, ``kernel`` writes the loops with ``copies`` and ``multiply``.
"""

from tilewright.schedule.gpu.tensor_core.replace import use_tensor_cores

__all__ = ["use_tensor_cores"]
