"""TVM's launcher for iOS says that there is nothing to launch."""

import pytest

from tilewright.compat.not_there import NotInThisVersion
from tilewright.rpc.server_ios_launcher import (  # type: ignore[import-not-found]
    RPCServerMode,
    ServerIOSContextManager,
    ServerIOSLauncher,
)


def test_nothing_can_be_launched() -> None:
    """Programs that ask first go on without a device; others get an error that says what to build."""
    assert not ServerIOSLauncher.is_compatible_environment()
    ServerIOSLauncher.shutdown_booted_devices()
    server = ServerIOSContextManager(RPCServerMode.tracker.value, "127.0.0.1", 9190, "phone")
    with pytest.raises(NotInThisVersion, match="build a server for the device"), server:
        pass
