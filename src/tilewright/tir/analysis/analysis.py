"""The analyses, under the name of TVM's module."""

from tilewright.tir.analysis import *  # noqa: F403
