"""Models of torchvision and timm with random weights and small inputs. Nothing is downloaded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from models import torchvision_operators

Case = tuple[nn.Module, tuple[torch.Tensor, ...]]

SMALLEST = Path(__file__).with_name("zoo_timm.json")
"""The smallest model of each family of timm: of each of its modules, and in it of each first word of a name."""

_SIDE = 64
_SIDES = {"inception_v3": 96, "maxvit_t": 224, "vit_h_14": 56}
_RISING = (64, 96, 128, 160, 192, 224, 256, 384)


class Detector(nn.Module):
    """A detector for one image; its results are a tuple of tensors."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self.model([image])[0].values())


def enliven(model: nn.Module) -> nn.Module:
    """The model with noise in the parameters that are constant: with a scale of zero a layer would not count."""
    for parameter in model.parameters():
        if parameter.numel() > 1 and bool((parameter == parameter.flatten()[0]).all()):
            with torch.no_grad():
                parameter.add_(torch.randn_like(parameter) * 0.05)
    return model.eval()


def torchvision_cases() -> Iterator[tuple[str, Callable[[], Case]]]:
    """Every constructor of the classification, segmentation and detection models."""
    vision = torchvision_operators.load()
    for name in vision.models.list_models(module=vision.models):
        yield name, lambda name=name: _classifier(vision, name)
    for name in vision.models.list_models(module=vision.models.segmentation):
        yield f"segmentation/{name}", lambda name=name: _segmentation(vision, name)
    for name in vision.models.list_models(module=vision.models.detection):
        yield f"detection/{name}", lambda name=name: _detection(vision, name)


def _classifier(vision: Any, name: str) -> Case:
    side = _SIDES.get(name, _SIDE)
    options: dict[str, Any] = {}
    if name.startswith("vit_"):
        options["image_size"] = side
    if name in ("googlenet", "inception_v3"):
        options |= {"init_weights": False, "aux_logits": True}
    model = vision.models.get_model(name, weights=None, **options)
    return enliven(model), (torch.randn(1, 3, side, side),)


def _segmentation(vision: Any, name: str) -> Case:
    model = vision.models.get_model(name, weights=None, weights_backbone=None)
    return enliven(model), (torch.randn(1, 3, _SIDE, _SIDE),)


def _detection(vision: Any, name: str) -> Case:
    options: dict[str, Any] = {"weights": None, "weights_backbone": None, "num_classes": 5}
    if "rcnn" in name:
        options |= {"rpn_pre_nms_top_n_test": 50, "rpn_post_nms_top_n_test": 20, "box_score_thresh": 0.0}
        options |= {"box_detections_per_img": 10, "min_size": 96, "max_size": 96}
    else:
        options |= {"score_thresh": 0.0, "detections_per_img": 10, "topk_candidates": 20}
        if not name.startswith("ssd"):
            options |= {"min_size": 96, "max_size": 96}
    if name.startswith("keypoint"):
        options["num_classes"] = 2
    model = enliven(vision.models.get_model(name, **options))
    _settle(model.backbone)
    image = torch.rand(3, 96, 96)
    if name.startswith("mask"):
        _moderate(model, model.roi_heads.box_predictor.cls_score, image)
        _moderate(model, model.roi_heads.mask_predictor.mask_fcn_logits, image)
    if name.startswith("keypoint"):
        _moderate(model, model.rpn.head.bbox_pred, image)
        _moderate(model, model.roi_heads.box_predictor.bbox_pred, image)
    return Detector(model).eval(), (image,)


def _settle(backbone: nn.Module) -> None:
    """Give normalisation the statistics of noise: with those of a new model activations fade, until scores are equal
    and the order of boxes is anybody's."""
    layers = [one for one in backbone.modules() if isinstance(one, nn.BatchNorm2d)]
    momentums = [one.momentum for one in layers]
    for one in layers:
        one.momentum = 1.0
    with torch.no_grad():
        backbone.train()(torch.randn(2, 3, 320, 320))
    backbone.eval()
    for one, momentum in zip(layers, momentums, strict=True):
        one.momentum = momentum


def _moderate(model: nn.Module, layer: nn.Module, image: torch.Tensor) -> None:
    """Scale a layer's weights so that its outputs are at most one. The logits of new heads are large, and a sigmoid or
    softmax of them multiplies rounding errors: eager PyTorch's masks are 1e-3 from its own in float64. Large steps of
    boxes do the same to whatever is read inside the boxes."""
    found: list[torch.Tensor] = []
    handle = layer.register_forward_hook(lambda _module, _given, result: found.append(result))
    with torch.no_grad():
        model([image])
        handle.remove()
        for parameter in layer.parameters():
            parameter.div_(found[0].abs().max())


def timm_cases() -> Iterator[tuple[str, Callable[[], Case]]]:
    """The smallest model of each family."""
    for family, name in json.loads(SMALLEST.read_text()).items():
        yield f"{family}: {name}", lambda name=name: _timm(name)


def _timm(name: str) -> Case:
    torchvision_operators.load()
    import timm

    model = enliven(timm.create_model(name, pretrained=False))
    channels, height, width = model.default_cfg["input_size"]
    sides = [(side, side) for side in _RISING if side < height] + [(height, width)]
    if model.default_cfg.get("fixed_input_size"):
        sides = sides[-1:]
    for high, wide in sides:
        value = torch.randn(1, channels, high, wide)
        try:
            with torch.no_grad():
                model(value)
        except (RuntimeError, AssertionError, ValueError, IndexError):
            # A size that the model does not take.
            if (high, wide) == (height, width):
                raise
            continue
        return model, (value,)
    raise AssertionError(f"{name} takes none of the sizes {sides}")
