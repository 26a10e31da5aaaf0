"""What to try a tuning with: networks, and a device behind a tracker on this machine."""

from __future__ import annotations

from typing import Any, Self

from tilewright.ir.module import IRModule
from tilewright.relay.testing import inception_v3, mlp, mobilenet, resnet, resnet_3d, squeezenet
from tilewright.rpc.server import Server
from tilewright.rpc.tracker import Tracker
from tilewright.support.errors import TilewrightError


def get_network(
    name: str, batch_size: int, layout: str = "NHWC", dtype: str = "float32"
) -> tuple[IRModule, dict[str, Any], tuple[int, ...], tuple[int, ...]]:
    """A network of ``relay.testing`` with its parameters, and the shapes of its input and of its result: ``resnet-18``
    and other depths, ``resnet3d-18``, ``mobilenet``, ``squeezenet_v1.1``, ``inception_v3``, ``mlp``."""
    if layout not in ("NCHW", "NHWC"):
        raise TilewrightError(f"the layouts are NCHW and NHWC, not {layout!r}")
    side = 299 if name == "inception_v3" else 224
    image: tuple[int, ...] = (3, side, side) if layout == "NCHW" else (side, side, 3)
    output: tuple[int, ...] = (batch_size, 1000)
    options: dict[str, Any] = {"batch_size": batch_size, "dtype": dtype}
    if name.startswith("resnet-"):
        made = resnet.get_workload(num_layers=_depth(name), image_shape=image, layout=layout, **options)
    elif name.startswith("resnet3d-"):
        image = (3, 16, 112, 112) if layout == "NCHW" else (16, 112, 112, 3)
        volume = {"NCHW": "NCDHW", "NHWC": "NDHWC"}[layout]
        made = resnet_3d.get_workload(num_layers=_depth(name), image_shape=image, layout=volume, **options)
    elif name == "mobilenet":
        made = mobilenet.get_workload(image_shape=image, layout=layout, **options)
    elif name in ("squeezenet_v1.1", "squeezenet_v1.0", "inception_v3"):
        if layout != "NCHW":
            raise TilewrightError(f"{name} is there in layout NCHW only")
        if name == "inception_v3":
            made = inception_v3.get_workload(**options)
        else:
            made = squeezenet.get_workload(version=name.removeprefix("squeezenet_v"), **options)
    elif name == "mlp":
        image, output = (1, 28, 28), (batch_size, 10)
        made = mlp.get_workload(image_shape=image, **options)
    else:
        raise TilewrightError(
            f"there is no network {name!r}; there are resnet-18 and other depths, resnet3d-18, mobilenet, "
            "squeezenet_v1.0, squeezenet_v1.1, inception_v3 and mlp"
        )
    return made[0], made[1], (batch_size, *image), output


class LocalRPC:
    """A tracker and a server on this machine, for the length of a ``with`` block."""

    def __init__(
        self,
        tracker_host: str = "127.0.0.1",
        tracker_port: int = 9190,
        tracker_key: str = "key",
        silent: bool = True,
        no_fork: bool = False,
    ) -> None:
        self._tracker = Tracker(
            host=tracker_host, port=tracker_port, port_end=tracker_port + 100, silent=silent
        )
        self.tracker_host = self._tracker.host
        self.tracker_port = self._tracker.port
        self.tracker_key = tracker_key
        self._server = Server(
            host=tracker_host, key=tracker_key, tracker_addr=(tracker_host, self.tracker_port), silent=silent
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.terminate()
        self._tracker.terminate()


def _depth(name: str) -> int:
    depth = name.rpartition("-")[2]
    if not depth.isdigit():
        raise TilewrightError(f"{name!r} names no depth: write resnet-18, for example")
    return int(depth)
