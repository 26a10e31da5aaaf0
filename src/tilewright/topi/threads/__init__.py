"""Operators written for blocks of threads, where a loop for each row or element would be slow."""

from tilewright.topi.threads.scan import scan_rows
from tilewright.topi.threads.scatter import scatter_add_elements, scatter_nd_add
from tilewright.topi.threads.sort import argsort, longest_row, sort, topk

__all__ = ["argsort", "longest_row", "scan_rows", "scatter_add_elements", "scatter_nd_add", "sort", "topk"]
