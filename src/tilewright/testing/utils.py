"""The test helpers, under the name of TVM's module."""

from tilewright.testing import *  # noqa: F403
