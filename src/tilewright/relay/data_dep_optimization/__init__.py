"""Rewriting functions together with their parameters: each module has ``convert(func, params, ...)``."""

from tilewright.relay.data_dep_optimization import bsr_conv2d, bsr_dense, simplify_fc_transpose
