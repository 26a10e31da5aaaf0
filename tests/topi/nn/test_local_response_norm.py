"""Local response normalisation, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.topi.running import apply

from tilewright import te, topi
from tilewright.support.errors import OpAttributeInvalid


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("axis", [1, 3])
def test_windows(size: int, axis: int) -> None:
    """Neighbouring channels share their energy."""
    data = np.random.default_rng(61).standard_normal((2, 6, 3, 2)).astype("float32")
    wide = torch.tensor(data.astype("float64"))
    expected = F.local_response_norm(wide, size, alpha=0.5, beta=0.75, k=2.0).numpy()
    order = (0, 1, 2, 3) if axis == 1 else (0, 2, 3, 1)
    given = data.transpose(order).copy()
    made = apply(topi.nn.lrn, given, size=size, axis=axis, alpha=0.5, beta=0.75, bias=2.0)
    np.testing.assert_allclose(made, expected.transpose(order), rtol=1e-5)


def test_even_windows_are_refused() -> None:
    """A window has a middle."""
    with pytest.raises(OpAttributeInvalid, match="odd"):
        topi.nn.lrn(te.placeholder((1, 2, 3, 3)), 2)
