"""Import torchvision (and what needs it, such as timm) where its compiled extension does not load.

``load()`` imports torchvision. Where the extension was built for another torch, it first declares the operators
that the extension would have, with kernels in plain torch, so that torchvision registers its own shape functions and
gradients for them. Call it before anything else imports torchvision.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from unittest import mock

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from models import torchvision_kernels as kernels

_REGIONS = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SHAPE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_WINDOW = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
    "SymInt groups, SymInt offset_groups, bool use_mask"
)
_CONVOLVED = "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias"

OPERATORS = {
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": kernels.non_maximum_suppression,
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": None,
    f"roi_align(Tensor input, Tensor rois, {_REGIONS}, int sampling_ratio, bool aligned) -> Tensor": kernels.roi_align,
    f"_roi_align_backward(Tensor grad, Tensor rois, {_REGIONS}, {_SHAPE}, int sampling_ratio, bool aligned) "
    "-> Tensor": kernels.roi_align_backward,
    "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, "
    f"int rois_zero_point, {_REGIONS}, int sampling_ratio, bool aligned) -> Tensor": None,
    f"roi_pool(Tensor input, Tensor rois, {_REGIONS}) -> (Tensor, Tensor)": kernels.roi_pool,
    f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_REGIONS}, {_SHAPE}) "
    "-> Tensor": kernels.roi_pool_backward,
    f"ps_roi_align(Tensor input, Tensor rois, {_REGIONS}, int sampling_ratio) "
    "-> (Tensor, Tensor)": kernels.ps_roi_align,
    f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_REGIONS}, int sampling_ratio, "
    f"{_SHAPE}) -> Tensor": kernels.ps_roi_align_backward,
    f"ps_roi_pool(Tensor input, Tensor rois, {_REGIONS}) -> (Tensor, Tensor)": kernels.ps_roi_pool,
    f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_REGIONS}, {_SHAPE}) "
    "-> Tensor": kernels.ps_roi_pool_backward,
    f"deform_conv2d({_CONVOLVED}, {_WINDOW}) -> Tensor": kernels.deform_conv2d,
    f"_deform_conv2d_backward(Tensor grad, {_CONVOLVED}, {_WINDOW}) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)": kernels.deform_conv2d_backward,
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor": None,
}
"""Declarations and their kernels; without one the operator can be named but not run (the quantised forms)."""

_library: list[torch.library.Library] = []


def _extension_loads(folder: Path) -> bool:
    """Whether torchvision's own extension works with this torch."""
    for suffix in ("_stable.so", *importlib.machinery.EXTENSION_SUFFIXES):
        path = folder / f"_C{suffix}"
        if path.exists():
            try:
                torch.ops.load_library(str(path))
            except OSError:
                return False
            return True
    return False


def _declare() -> None:
    library = torch.library.Library("torchvision", "DEF")
    for schema, kernel in OPERATORS.items():
        library.define(schema)
        if kernel is not None:
            library.impl(schema.split("(")[0], kernel, "CPU")
    library.define("_cuda_version() -> int")
    library.impl("_cuda_version", lambda: -1, "CompositeExplicitAutograd")
    # The declarations last as long as the library object.
    _library.append(library)


def load() -> ModuleType:
    """Torchvision, with its operators."""
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("torchvision is not installed")
    if "torchvision" in sys.modules or _extension_loads(Path(found.origin).parent):
        return importlib.import_module("torchvision")
    _declare()
    real = torch.ops.load_library

    def only_others(path: str) -> None:
        # To torchvision its extension is there: only then does it register shape functions and gradients.
        if not Path(path).name.startswith(("_C.", "_C_stable.")):
            real(path)

    with mock.patch.object(torch.ops, "load_library", only_others):
        return importlib.import_module("torchvision")
