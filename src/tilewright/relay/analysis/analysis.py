"""The analyses, under the name of the module that TVM has them in."""

from tilewright.relay.analysis import *  # noqa: F403
