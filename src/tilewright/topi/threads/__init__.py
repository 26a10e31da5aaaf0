"""Operators that are written for blocks of threads: what a loop for each row or element would not do well."""

from tilewright.topi.threads.scan import scan_rows
from tilewright.topi.threads.scatter import scatter_add_elements, scatter_nd_add
from tilewright.topi.threads.sort import argsort, longest_row, sort, topk

__all__ = ["argsort", "longest_row", "scan_rows", "scatter_add_elements", "scatter_nd_add", "sort", "topk"]
