"""The PaddlePaddle frontend."""

from tilewright.relay.frontend.paddle.format import FRONTEND, from_paddle

__all__ = ["FRONTEND", "from_paddle"]
