"""The helpers, under the name of the module that TVM has them in."""

from tilewright.testing import *  # noqa: F403
