"""Operators of TorchScript without a converter, by PyTorch's own definitions of them."""

import pytest
import torch
from tests.relay.frontend.torch.script_models import check, imported, numbers, scripted, traced

from tilewright import relay
from tilewright.relay.frontend.common import UnsupportedOperators


def test_definitions_agree_with_pytorch():
    """Operators that PyTorch composes of others, whose overloads and arguments by name differ."""

    def composed(x):
        return (
            torch.tensordot(x, x, dims=([0], [0])),
            x.quantile(0.3, dim=1, interpolation="lower"),
            torch.trapezoid(x, dx=0.5),
            torch.linalg.matrix_power(x @ x.t(), 3),
            torch.kron(x, x[:2, :2]),
        )

    x = numbers(4, 5)
    check(traced(composed, x), x)


def test_what_has_no_definition_is_named():
    """Open sizes and operators that PyTorch itself cannot take apart end in the error that lists operators."""

    @scripted
    def composed(x):
        return torch.kron(x, x)

    check(composed, numbers(2, 3))
    with pytest.raises(UnsupportedOperators, match="aten::kron"):
        imported(composed, [numbers(2, 3)], [("x", (relay.Any(), 3))])
    with pytest.raises(UnsupportedOperators, match="aten::cov"):
        imported(traced(torch.cov, numbers(2, 3)), [numbers(2, 3)])


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_fast_path_of_encoder_layers(norm_first, activation):
    """In evaluation ``nn.TransformerEncoderLayer`` is one operator; masks are of keys, of pairs, or of both."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        16, 4, 32, batch_first=True, norm_first=norm_first, activation=activation
    ).eval()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.3).requires_grad_(False)

    def model(x, padding):
        ahead = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
        return (
            layer(x),
            layer(x, src_key_padding_mask=padding),
            layer(x, src_mask=ahead),
            layer(x, src_mask=ahead, src_key_padding_mask=padding),
        )

    x, padding = torch.randn(2, 5, 16), torch.tensor([[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]], dtype=torch.bool)
    with torch.no_grad():
        script = traced(model, x, padding)
    assert "aten::_transformer_encoder_layer_fwd" in str(script.inlined_graph)
    check(script, x, padding)
