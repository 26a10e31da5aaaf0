"""Small architectures of ``transformers`` with random weights: encoders, decoders with a cache, encoder-decoders,
vision, audio, mixtures of experts and state spaces. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from models import torchvision_operators

# Transformers uses torchvision where it is installed.
torchvision_operators.load()
import transformers  # noqa: E402

Case = tuple[nn.Module, tuple[torch.Tensor, ...]]

TOKENS, LENGTH, PAST = 99, 10, 6
_TEXT = {"vocab_size": TOKENS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_WIDE = {**_TEXT, "intermediate_size": 48, "max_position_embeddings": 64}
_GROUPED = {**_WIDE, "num_key_value_heads": 2, "pad_token_id": 0}


class Plain(nn.Module):
    """A model's first results, as a tuple of tensors."""

    def __init__(self, model: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = self.model(**dict(zip(self.names, values, strict=True)), return_dict=True)
        return tuple(value for value in found.values() if isinstance(value, torch.Tensor))


class WithCache(nn.Module):
    """One step of a decoder: the next token and the cache of those before it to logits and the new cache."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, token: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pairs = list(zip(past[::2], past[1::2], strict=True))
        cache = transformers.DynamicCache(pairs)
        found = self.model(input_ids=token, past_key_values=cache, use_cache=True, return_dict=True)
        layers = found.past_key_values.layers
        return (found.logits, *(part for layer in layers for part in (layer.keys, layer.values)))


def _tokens(length: int = LENGTH) -> torch.Tensor:
    return torch.randint(1, TOKENS, (1, length))


def _made(name: str, config: str, **options: Any) -> nn.Module:
    found = getattr(transformers, config)(**options)
    return getattr(transformers, name)(found).eval()


def _encoder(name: str, config: str, **options: Any) -> Callable[[], Case]:
    return lambda: (Plain(_made(name, config, **options), ("input_ids",)), (_tokens(),))


def _decoder(name: str, config: str, heads: int = 4, size: int = 8, **options: Any) -> Callable[[], Case]:
    def make() -> Case:
        past = [torch.randn(1, heads, PAST, size) for _ in range(4)]
        return WithCache(_made(name, config, **options)), (_tokens(1), *past)

    return make


def _both(name: str, config: str, **options: Any) -> Callable[[], Case]:
    names = ("input_ids", "decoder_input_ids")
    return lambda: (
        Plain(_made(name, config, use_cache=False, **options), names),
        (_tokens(), _tokens(4)),
    )


def _pixels(name: str, config: str, size: int = 32, **options: Any) -> Callable[[], Case]:
    return lambda: (
        Plain(_made(name, config, **options), ("pixel_values",)),
        (torch.randn(1, 3, size, size),),
    )


def _clip() -> Case:
    text = {**_WIDE, "eos_token_id": 98}
    vision = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    vision |= {"image_size": 32, "patch_size": 8}
    model = _made("CLIPModel", "CLIPConfig", text_config=text, vision_config=vision, projection_dim=16)
    return Plain(model, ("input_ids", "pixel_values")), (_tokens(), torch.randn(1, 3, 32, 32))


def _wav2vec2() -> Case:
    options = {**_TEXT, "intermediate_size": 48, "conv_dim": (16, 16, 16), "conv_stride": (5, 2, 2)}
    options |= {"conv_kernel": (10, 3, 3), "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 8}
    options |= {"num_conv_pos_embedding_groups": 4}
    return Plain(_made("Wav2Vec2ForCTC", "Wav2Vec2Config", **options), ("input_values",)), (
        torch.randn(1, 640),
    )


def _whisper() -> Case:
    options = {"vocab_size": TOKENS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2}
    options |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48}
    options |= {"decoder_ffn_dim": 48, "num_mel_bins": 16, "max_source_positions": 20, "use_cache": False}
    options |= {"max_target_positions": 20, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    options |= {"decoder_start_token_id": 1, "suppress_tokens": None, "begin_suppress_tokens": None}
    model = _made("WhisperForConditionalGeneration", "WhisperConfig", **options)
    names = ("input_features", "decoder_input_ids")
    return Plain(model, names), (torch.randn(1, 16, 40), _tokens(4))


_BART = {"vocab_size": TOKENS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2}
_BART |= {
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
}
_BART |= {"max_position_embeddings": 64}
_T5 = {"vocab_size": TOKENS, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
_VIT = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
_VIT |= {"image_size": 32, "patch_size": 8}
_SWIN = {
    "image_size": 32,
    "patch_size": 2,
    "embed_dim": 16,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 4,
}

CASES: dict[str, Callable[[], Case]] = {
    "bert": _encoder("BertModel", "BertConfig", **_WIDE),
    "roberta": _encoder("RobertaModel", "RobertaConfig", **_WIDE),
    "distilbert": _encoder(
        "DistilBertModel", "DistilBertConfig", vocab_size=TOKENS, dim=32, n_layers=2, n_heads=4, hidden_dim=48
    ),
    "albert": _encoder("AlbertModel", "AlbertConfig", embedding_size=16, **_WIDE),
    "electra": _encoder("ElectraModel", "ElectraConfig", embedding_size=16, **_WIDE),
    "deberta_v2": _encoder(
        "DebertaV2Model", "DebertaV2Config", relative_attention=True, pos_att_type=["p2c", "c2p"], **_WIDE
    ),
    "mpnet": _encoder("MPNetModel", "MPNetConfig", **_WIDE),
    "gpt2": _decoder("GPT2LMHeadModel", "GPT2Config", vocab_size=TOKENS, n_embd=32, n_layer=2, n_head=4),
    "gpt_neox": _decoder("GPTNeoXForCausalLM", "GPTNeoXConfig", **_WIDE),
    "opt": _decoder(
        "OPTForCausalLM", "OPTConfig", ffn_dim=48, word_embed_proj_dim=32, max_position_embeddings=64, **_TEXT
    ),
    "bloom": _decoder("BloomForCausalLM", "BloomConfig", vocab_size=TOKENS, hidden_size=32, n_layer=2, n_head=4),
    "llama": _decoder("LlamaForCausalLM", "LlamaConfig", heads=2, **_GROUPED),
    "mistral": _decoder("MistralForCausalLM", "MistralConfig", heads=2, sliding_window=None, **_GROUPED),
    "qwen2": _decoder("Qwen2ForCausalLM", "Qwen2Config", heads=2, **_GROUPED),
    "gemma": _decoder("GemmaForCausalLM", "GemmaConfig", heads=2, head_dim=8, **_GROUPED),
    "phi": _decoder("PhiForCausalLM", "PhiConfig", heads=2, **_GROUPED),
    "mixtral": _decoder(
        "MixtralForCausalLM", "MixtralConfig", heads=2, num_local_experts=4, sliding_window=None, **_GROUPED
    ),
    "t5": _both("T5ForConditionalGeneration", "T5Config", decoder_start_token_id=0, **_T5),
    "bart": _both("BartForConditionalGeneration", "BartConfig", **_BART),
    "vit": _pixels("ViTModel", "ViTConfig", **_VIT),
    "swin": _pixels("SwinModel", "SwinConfig", **_SWIN),
    "dinov2": _pixels("Dinov2Model", "Dinov2Config", mlp_ratio=2, **_VIT),
    "clip": _clip,
    "wav2vec2": _wav2vec2,
    "whisper": _whisper,
    "mamba": _encoder(
        "MambaForCausalLM", "MambaConfig", vocab_size=TOKENS, hidden_size=32, num_hidden_layers=2, state_size=4,
        use_cache=False,
    ),
}  # fmt: skip
"""How to make each model, and its inputs."""
