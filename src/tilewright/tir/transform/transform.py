"""The passes, under the name of TVM's module."""

from tilewright.tir.transform import *  # noqa: F403
