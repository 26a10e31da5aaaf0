"""Models of torchvision and timm as these packages build them, with seeded weights. Nothing is downloaded.

Install the packages with ``pip install --no-deps timm torchvision safetensors huggingface_hub pyyaml``: torchvision's
compiled operators are not needed.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import nn

from models import torchvision_operators
from models.recipe import SEED, Recipe, image, seeded
from models.zoo_vision import enliven

SIDE = 224
LEAST_VARIANCE = 0.01

TIMM = {
    "resnext50": "resnext50_32x4d",
    "regnet_y": "regnety_008",
    "wide_resnet50": "wide_resnet50_2",
    "mnasnet": "mnasnet_100",
    "mobilenet_v4": "mobilenetv4_conv_small",
    "ghostnet": "ghostnet_100",
    "rexnet": "rexnet_100",
    "efficientnet_v2_s": "tf_efficientnetv2_s",
    "mobilevit": "mobilevit_s",
    "swin_tiny": "swin_tiny_patch4_window7_224",
    "deit_tiny": "deit_tiny_patch16_224",
    "convnext_v2": "convnextv2_atto",
    "mixer": "mixer_s16_224",
}
"""timm's name of each model."""


def of_timm(name: str) -> nn.Module:
    """A model of timm with the layers that ONNX can express."""
    torchvision_operators.load()
    import timm

    return timm.create_model(TIMM[name], pretrained=False, exportable=True)


def googlenet() -> nn.Module:
    """GoogLeNet (Szegedy and others, 2014) with batch norm, without the heads that only training uses."""
    vision = torchvision_operators.load()
    return vision.models.googlenet(weights=None, aux_logits=False, init_weights=False)


def with_weights(model: nn.Module) -> nn.Module:
    """Weights with plausible values: a model without batch norms keeps those that it was initialised with."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    if not norms:
        return enliven(model)
    made = seeded(lambda: model, image(SIDE))
    for norm in norms:
        # The variance of two single pixels may be tiny, and the norm would amplify rounding errors by its inverse.
        norm.running_var.clamp_(min=LEAST_VARIANCE)
    return made


def made(name: str) -> nn.Module:
    torch.manual_seed(SEED)
    return with_weights(googlenet() if name == "googlenet" else of_timm(name))


RECIPES = {name: Recipe(partial(made, name), image(SIDE)) for name in (*TIMM, "googlenet")}
