"""Cases of losses."""

from __future__ import annotations

import numpy as np
import torch.nn.functional as functional
from tests.relay.op.cases import Case, Input
from tests.relay.op.torch_reference import by_torch

from tilewright import relay

POSITIVE = Input((3, 5), low=0.2, high=1.0)
CLASSES = Input((4,), "int32", values=[2, 0, -100, 1])

CASES = [
    Case(
        "cross_entropy",
        relay.nn.cross_entropy,
        [POSITIVE, POSITIVE],
        lambda x, y: np.asarray(-(y * np.log(x)).sum() / 3, "float32"),
        gradient=True,
    ),
    Case(
        "cross_entropy_with_logits",
        relay.nn.cross_entropy_with_logits,
        [Input((3, 5)), POSITIVE],
        by_torch(lambda x, y: -(y * functional.log_softmax(x, 1)).sum() / 3),
        gradient=True,
    ),
    *(
        Case(
            f"nll_loss_{reduction}",
            lambda x, y, w, reduction=reduction: relay.nn.nll_loss(x, y, w, reduction),
            [Input((4, 3)), CLASSES, Input((3,), low=0.5, high=2.0)],
            by_torch(
                lambda x, y, w, reduction=reduction: functional.nll_loss(x, y.long(), w, reduction=reduction)
            ),
        )
        for reduction in ("none", "mean", "sum")
    ),
    Case(
        "nll_loss_of_images",
        lambda x, y, w: relay.nn.nll_loss(x, y, w, "none", 1),
        [Input((2, 3, 2, 4)), Input((2, 2, 4), "int32", 0, 3), Input((3,), low=0.5, high=2.0)],
        by_torch(lambda x, y, w: functional.nll_loss(x, y.long(), w, reduction="none", ignore_index=1)),
    ),
]
