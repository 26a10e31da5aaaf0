"""Attention."""

from __future__ import annotations

import math
from typing import Any

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.common.sizes import reshaped, size_of, sizes_of
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.ops.activations import gelu
from tilewright.relay.frontend.torch.ops.creation import positions
from tilewright.relay.frontend.torch.ops.matrices import linear, matmul
from tilewright.relay.frontend.torch.ops.normalization import layer_norm
from tilewright.relay.frontend.torch.registry import converter


def attend(
    node: TorchNode,
    query: Expr,
    key: Expr,
    value: Expr,
    mask: Expr | None = None,
    is_causal: bool = False,
    scale: Any = None,
) -> Expr:
    """Values weighted by the softmax of how much each query is like each key. A row that sees no key is zero."""
    dtype = node.dtype(query)
    width = size_of(node, query, -1)
    if scale is None and not isinstance(width, int):
        raise node.fail("the size of a head is not known")
    factor = 1.0 / math.sqrt(width) if scale is None else float(node.number_of(scale, "scale"))  # type: ignore[arg-type]
    rank = node.rank(key)
    turned = relay.transpose(key, [*range(rank - 2), rank - 1, rank - 2])
    bias: Expr
    scores = matmul(node, relay.multiply(query, node.constant(factor, dtype)), turned)
    hidden = node.constant(-math.inf, dtype)
    if is_causal:
        rows = relay.expand_dims(positions(node, size_of(node, query, -2)), 1)
        seen = relay.less_equal(positions(node, size_of(node, key, -2)), rows)
        scores = relay.where(seen, scores, hidden)
    if mask is not None and node.dtype(mask) == "bool":
        bias = relay.where(mask, node.constant(0.0, dtype), hidden)
        scores = relay.add(scores, bias)
    elif mask is not None:
        bias = node.cast(mask, dtype)
        scores = relay.add(scores, bias)
    made = matmul(node, relay.nn.softmax(scores, axis=-1), value)
    if mask is None:
        return made
    # Rows are cleared behind the products, so that the whole of these is still one pattern to the compiler.
    last = [node.rank(mask) - 1]
    if node.dtype(mask) == "bool":
        seen = relay.any(mask, last, keepdims=True)
    else:
        seen = relay.greater(relay.max(bias, last, keepdims=True), hidden)
    return relay.where(seen, made, node.constant(0.0, dtype))


def repeated_heads(node: TorchNode, data: Expr, heads: Any) -> Expr:
    """Heads of keys or values, each as often as queries share it."""
    have = node.shape(data)[-3]
    if not isinstance(heads, int) or have is None:
        raise node.fail("the numbers of heads are not known")
    if have == heads:
        return data
    return relay.repeat(data, heads // have, node.rank(data) - 3)


@converter("aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math",
           "aten::_scaled_dot_product_attention_math_for_mps")  # fmt: skip
def scaled_dot_product_attention(
    node: TorchNode,
    query: Expr,
    key: Expr,
    value: Expr,
    attn_mask: Expr | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Expr | None = None,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """Attention of each head; several heads of queries may share one of keys and values."""
    if dropout_p:
        raise node.fail(
            f"attention drops {dropout_p} of its weights at random: call model.eval() before exporting"
        )
    if enable_gqa:
        heads = size_of(node, query, -3)
        key, value = repeated_heads(node, key, heads), repeated_heads(node, value, heads)
    made = attend(node, query, key, value, attn_mask, is_causal, scale)
    return [made, made] if "_math" in node.op_type else made


@converter(
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_fused_attention_overrideable",
)
def fused_attention(
    node: TorchNode,
    query: Expr,
    key: Expr,
    value: Expr,
    attn_mask: Expr | None = None,
    attn_bias: Expr | None = None,
    compute_log_sumexp: bool = False,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    scale: Any = None,
) -> list[Any]:
    """The forms that PyTorch decides on; of their results only the first has readers in inference."""
    mask = attn_mask if attn_mask is not None else attn_bias
    heads = size_of(node, query, -3)
    key, value = repeated_heads(node, key, heads), repeated_heads(node, value, heads)
    made = scaled_dot_product_attention(node, query, key, value, mask, dropout_p, is_causal, scale=scale)
    return [made, *[None] * 8]


@converter("aten::_native_multi_head_attention")
def native_multi_head_attention(
    node: TorchNode,
    query: Expr,
    key: Expr,
    value: Expr,
    embed_dim: int,
    num_head: int,
    qkv_weight: Expr,
    qkv_bias: Expr,
    proj_weight: Expr,
    proj_bias: Expr,
    mask: Expr | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> list[Any]:
    """The fast path of ``nn.MultiheadAttention``: projections, heads, attention and the projection back."""
    if need_weights:
        raise node.fail("the attention's weights are not among the results: call it with need_weights=False")
    size = embed_dim // num_head
    weights, biases = relay.split(qkv_weight, 3, 0), relay.split(qkv_bias, 3, 0)
    heads = []
    for place, data in enumerate((query, key, value)):
        projected = linear(node, data, weights[place], biases[place])
        batch, tokens = sizes_of(node, projected)[:2]
        split = reshaped(node, projected, [batch, tokens, num_head, size])
        heads.append(relay.transpose(split, (0, 2, 1, 3)))
    seen = None
    if mask is not None:
        # Here a mask says what is hidden: for keys of each member (1), or for pairs (0 and 2).
        seen = relay.logical_not(node.cast(mask, "bool"))
        if mask_type == 1:
            seen = relay.expand_dims(relay.expand_dims(seen, 1), 1)
    made = attend(node, heads[0], heads[1], heads[2], seen)
    batch, _, tokens, _ = sizes_of(node, made)
    merged = reshaped(node, relay.transpose(made, (0, 2, 1, 3)), [batch, tokens, embed_dim])
    return [linear(node, merged, proj_weight, proj_bias), None]


@converter("aten::_transformer_encoder_layer_fwd")
def transformer_encoder_layer(
    node: TorchNode,
    src: Expr,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Expr,
    qkv_bias: Expr,
    proj_weight: Expr,
    proj_bias: Expr,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Expr,
    norm_bias_1: Expr,
    norm_weight_2: Expr,
    norm_bias_2: Expr,
    ffn_weight_1: Expr,
    ffn_bias_1: Expr,
    ffn_weight_2: Expr,
    ffn_bias_2: Expr,
    mask: Expr | None = None,
    mask_type: int | None = None,
) -> Expr:
    """The fast path of ``nn.TransformerEncoderLayer``: attention and two layers, each with a sum and a
    normalisation before it or behind the sum."""

    def attention(data: Expr) -> Expr:
        made: Expr = native_multi_head_attention(
            node, data, data, data, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask,
            need_weights=False, mask_type=mask_type,
        )[0]  # fmt: skip
        return made

    def layers(data: Expr) -> Expr:
        inner = linear(node, data, ffn_weight_1, ffn_bias_1)
        inner = gelu(node, inner) if use_gelu else relay.nn.relu(inner)
        return linear(node, inner, ffn_weight_2, ffn_bias_2)

    made = src
    for part, weight, bias in (
        (attention, norm_weight_1, norm_bias_1),
        (layers, norm_weight_2, norm_bias_2),
    ):
        if norm_first:
            made = relay.add(made, part(layer_norm(node, made, [embed_dim], weight, bias, eps)))
        else:
            made = layer_norm(node, relay.add(made, part(made)), [embed_dim], weight, bias, eps)
    return made
