"""Products with matrices in compressed rows (``contrib.sparse.placeholder``)."""

from tilewright.topi.sparse.products import csrmm, csrmv, dense

__all__ = ["csrmm", "csrmv", "dense"]
