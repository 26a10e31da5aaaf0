"""Visiting and rewriting statements, under TVM's names; defined in ``tilewright.tir.functor``."""

from tilewright.tir.functor import ir_transform, post_order_visit, substitute

__all__ = ["ir_transform", "post_order_visit", "substitute"]
