"""The passes, under the name of TVM's module."""

from tilewright.relay.transform import *  # noqa: F403
