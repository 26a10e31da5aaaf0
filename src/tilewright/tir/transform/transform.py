"""The passes, under the name of the module that TVM has them in."""

from tilewright.tir.transform import *  # noqa: F403
