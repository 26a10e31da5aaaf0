"""Passes over graph-level programs, one file each. Code that several of them share is in ``lib``."""

from tilewright.relay.target.cpu.convolve_images import ConvolveImages
from tilewright.relay.target.cpu.split_dilation import SplitDilation
from tilewright.relay.transform.alter_op_layout import AlterOpLayout
from tilewright.relay.transform.annotate_spans import AnnotateSpans
from tilewright.relay.transform.annotate_target import AnnotateTarget
from tilewright.relay.transform.auto_scheduler_layout_rewrite import AutoSchedulerLayoutRewrite
from tilewright.relay.transform.backward_fold_scale_axis import BackwardFoldScaleAxis
from tilewright.relay.transform.batching_ops import BatchingOps
from tilewright.relay.transform.build_config import build_config
from tilewright.relay.transform.canonicalize_cast import CanonicalizeCast
from tilewright.relay.transform.canonicalize_ops import CanonicalizeOps
from tilewright.relay.transform.change_batch import ChangeBatch
from tilewright.relay.transform.check_indices import CheckIndices
from tilewright.relay.transform.combine_parallel_batch_matmul import CombineParallelBatchMatmul
from tilewright.relay.transform.combine_parallel_conv2d import CombineParallelConv2D
from tilewright.relay.transform.combine_parallel_dense import CombineParallelDense
from tilewright.relay.transform.compact_constants import CompactConstants
from tilewright.relay.transform.conv2d_to_sparse import Conv2dToSparse, Conv2dToSparse2
from tilewright.relay.transform.convert_layout import ConvertLayout, LayoutConfig
from tilewright.relay.transform.dead_code_elimination import DeadCodeElimination
from tilewright.relay.transform.defunctionalization import Defunctionalization
from tilewright.relay.transform.defuse_ops import DefuseOps
from tilewright.relay.transform.dense_to_sparse import DenseToSparse
from tilewright.relay.transform.drop_dead_taps import DropDeadTaps
from tilewright.relay.transform.dynamic_to_static import DynamicToStatic
from tilewright.relay.transform.eliminate_common_subexpr import EliminateCommonSubexpr
from tilewright.relay.transform.eta_expand import EtaExpand
from tilewright.relay.transform.fake_quantization_to_integer import FakeQuantizationToInteger
from tilewright.relay.transform.fast_math import FastMath
from tilewright.relay.transform.find_channel_shuffle import FindChannelShuffle
from tilewright.relay.transform.first_order_gradient import FirstOrderGradient
from tilewright.relay.transform.flatten_atrous_conv import FlattenAtrousConv
from tilewright.relay.transform.fold_constant import FoldConstant, FoldConstantExpr
from tilewright.relay.transform.fold_explicit_padding import FoldExplicitPadding
from tilewright.relay.transform.fold_scale_axis import FoldScaleAxis
from tilewright.relay.transform.fold_transpose_into_dense import FoldTransposeIntoDense
from tilewright.relay.transform.forward_fold_scale_axis import ForwardFoldScaleAxis
from tilewright.relay.transform.fuse_attention import FuseAttention
from tilewright.relay.transform.fuse_ops import FuseOps
from tilewright.relay.transform.gradient import gradient
from tilewright.relay.transform.infer_type import InferType
from tilewright.relay.transform.inline import Inline
from tilewright.relay.transform.label_ops import LabelOps
from tilewright.relay.transform.lambda_lift import LambdaLift
from tilewright.relay.transform.lazy_gradient_init import LazyGradientInit
from tilewright.relay.transform.legalize import Legalize
from tilewright.relay.transform.lib.function_pass import FunctionPass, function_pass
from tilewright.relay.transform.merge_compiler_regions import MergeCompilerRegions
from tilewright.relay.transform.merge_composite import MergeComposite
from tilewright.relay.transform.multiply_by_reciprocal import MultiplyByReciprocal
from tilewright.relay.transform.partial_evaluate import PartialEvaluate
from tilewright.relay.transform.partition_graph import PartitionGraph
from tilewright.relay.transform.plan_devices import PlanDevices
from tilewright.relay.transform.recast import recast
from tilewright.relay.transform.remove_unused_functions import RemoveUnusedFunctions
from tilewright.relay.transform.reshape_unmoved import ReshapeUnmoved
from tilewright.relay.transform.resolve_reshapes import ResolveReshapes
from tilewright.relay.transform.simplify_expr import SimplifyExpr
from tilewright.relay.transform.simplify_fc_transpose import SimplifyFCTranspose
from tilewright.relay.transform.simplify_inference import SimplifyInference
from tilewright.relay.transform.sink_dequantize import SinkDequantize
from tilewright.relay.transform.sink_reshape import SinkReshape
from tilewright.relay.transform.split_args import SplitArgs
from tilewright.relay.transform.to_a_normal_form import ToANormalForm, ToANormalFormExpr
from tilewright.relay.transform.to_basic_block_normal_form import ToBasicBlockNormalForm
from tilewright.relay.transform.to_cps import ToCPS, to_cps, un_cps
from tilewright.relay.transform.to_graph_normal_form import ToGraphNormalForm
from tilewright.relay.transform.to_mixed_precision import ToMixedPrecision
from tilewright.relay.transform.trim_convolution import TrimConvolution
