"""The analyses, under the name of TVM's module."""

from tilewright.relay.analysis import *  # noqa: F403
