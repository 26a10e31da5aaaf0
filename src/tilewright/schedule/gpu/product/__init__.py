"""Products on matrix units: kernels that replace the products of a schedule.

``use_matrix_units`` finds the products among a schedule's stages and puts a kernel in the place of each: matrix products
and convolutions alike (``factors``), with the elementwise operations behind them (``epilogue``). ``tiling`` chooses the
sizes, ``kernel`` writes the loops with ``copies`` and ``multiply``.
"""

from tilewright.schedule.gpu.product.replace import use_matrix_units

__all__ = ["use_matrix_units"]
