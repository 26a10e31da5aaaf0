"""The attributes of all operators, under TVM's module name: ``isinstance(call.attrs, op_attrs.Conv2DAttrs)``."""

from tilewright.relay.op.algorithm import (
    ArgsortAttrs,
    SearchSortedAttrs,
    TopKAttrs,
)
from tilewright.relay.op.annotation.annotation import (
    CastHintAttrs,
    CompilerAttrs,
    OnDeviceAttrs,
)
from tilewright.relay.op.annotation.debug import (
    DebugAttrs,
)
from tilewright.relay.op.image.grid_sampling import (
    AffineGridAttrs,
    Dilation2DAttrs,
    GridSampleAttrs,
)
from tilewright.relay.op.image.resize import (
    CropAndResizeAttrs,
    Resize1DAttrs,
    Resize2DAttrs,
    Resize3DAttrs,
)
from tilewright.relay.op.memory.memory import (
    AllocStorageAttrs,
    AllocTensorAttrs,
)
from tilewright.relay.op.nn.activation import (
    BiasAddAttrs,
    DropoutAttrs,
    LeakyReluAttrs,
    PReluAttrs,
    SoftmaxAttrs,
)
from tilewright.relay.op.nn.attention import (
    AttentionAttrs,
)
from tilewright.relay.op.nn.bitserial import (
    BinaryConv2DAttrs,
    BinaryDenseAttrs,
    BitPackAttrs,
)
from tilewright.relay.op.nn.convolution_attributes import (
    Conv1DAttrs,
    Conv1DTransposeAttrs,
    Conv2DAttrs,
    Conv2DTransposeAttrs,
    Conv2DWinogradAttrs,
    Conv2DWinogradNNPACKWeightTransformAttrs,
    Conv3DAttrs,
    Conv3DTransposeAttrs,
    Conv3DWinogradAttrs,
    ConvGemmWeightTransformAttrs,
    ConvWinogradWeightTransformAttrs,
    DeformableConv2DAttrs,
)
from tilewright.relay.op.nn.deformable import (
    CorrelationAttrs,
)
from tilewright.relay.op.nn.dense import (
    BatchMatmulAttrs,
    DenseAttrs,
    DensePackAttrs,
    MatmulAttrs,
)
from tilewright.relay.op.nn.loss import (
    NLLLossAttrs,
)
from tilewright.relay.op.nn.normalization import (
    BatchNormAttrs,
    GroupNormAttrs,
    InstanceNormAttrs,
    L2NormalizeAttrs,
    LayerNormAttrs,
    LRNAttrs,
)
from tilewright.relay.op.nn.padding import (
    DilateAttrs,
    MirrorPadAttrs,
    PadAttrs,
)
from tilewright.relay.op.nn.pooling_attributes import (
    AdaptivePool1DAttrs,
    AdaptivePool2DAttrs,
    AdaptivePool3DAttrs,
    AvgPool1DAttrs,
    AvgPool2DAttrs,
    AvgPool3DAttrs,
    GlobalPool2DAttrs,
    MaxPool1DAttrs,
    MaxPool2DAttrs,
    MaxPool3DAttrs,
)
from tilewright.relay.op.nn.recurrent import (
    RecurrentAttrs,
)
from tilewright.relay.op.nn.shuffle import (
    ChannelShuffleAttrs,
)
from tilewright.relay.op.nn.space import (
    BatchToSpaceNDAttrs,
    FIFOBufferAttrs,
    SpaceToBatchNDAttrs,
    SubPixelAttrs,
)
from tilewright.relay.op.nn.sparse import (
    SparseConv2DAttrs,
    SparseDenseAttrs,
)
from tilewright.relay.op.nn.upsampling import (
    UpSampling3DAttrs,
    UpSamplingAttrs,
)
from tilewright.relay.op.random.kernel import (
    ThreefryGenerateAttrs,
    UniformAttrs,
)
from tilewright.relay.op.reduction_rules import (
    ArgReduceAttrs,
    ReduceAttrs,
    VarianceAttrs,
)
from tilewright.relay.op.tensor.clamping import (
    ClipAttrs,
    FixedPointMultiplyAttrs,
)
from tilewright.relay.op.tensor.device import (
    DeviceCopyAttrs,
)
from tilewright.relay.op.tensor.einsum import (
    EinsumAttrs,
)
from tilewright.relay.op.tensor.shape import (
    NdarraySizeAttrs,
    ShapeOfAttrs,
)
from tilewright.relay.op.transform.broadcast import (
    RepeatAttrs,
    TileAttrs,
)
from tilewright.relay.op.transform.casting import (
    CastAttrs,
)
from tilewright.relay.op.transform.creation import (
    ArangeAttrs,
    InitOpAttrs,
    OneHotAttrs,
)
from tilewright.relay.op.transform.indexing import (
    GatherAttrs,
    GatherNDAttrs,
    TakeAttrs,
)
from tilewright.relay.op.transform.joining import (
    ConcatenateAttrs,
    MeshgridAttrs,
    SplitAttrs,
    StackAttrs,
)
from tilewright.relay.op.transform.masking import (
    MatrixSetDiagAttrs,
    SequenceMaskAttrs,
)
from tilewright.relay.op.transform.permuting import (
    AutoSchedulerLayoutTransformAttrs,
    LayoutTransformAttrs,
    ReverseAttrs,
    ReverseSequenceAttrs,
    TransposeAttrs,
)
from tilewright.relay.op.transform.reshaping import (
    ExpandDimsAttrs,
    ReshapeAttrs,
    ReshapeLikeAttrs,
    SqueezeAttrs,
)
from tilewright.relay.op.transform.scanning import (
    ScanopAttrs,
    UniqueAttrs,
)
from tilewright.relay.op.transform.scattering import (
    ScatterAddAttrs,
    ScatterAttrs,
    ScatterNDAttrs,
)
from tilewright.relay.op.transform.slicing import (
    SliceLikeAttrs,
    StridedSliceAttrs,
)
from tilewright.relay.op.transform.sparse import (
    SparseToDenseAttrs,
)
from tilewright.relay.op.vision.multibox import (
    MultiBoxPriorAttrs,
    MultiBoxTransformLocAttrs,
)
from tilewright.relay.op.vision.nms import (
    AllClassNonMaximumSuppressionAttrs,
    GetValidCountsAttrs,
    NonMaximumSuppressionAttrs,
)
from tilewright.relay.op.vision.rcnn import (
    ProposalAttrs,
    ROIAlignAttrs,
    ROIPoolAttrs,
)
from tilewright.relay.op.vision.yolo import (
    YoloReorgAttrs,
)
from tilewright.relay.op.vm.vm import (
    ReshapeTensorAttrs,
    ShapeFuncAttrs,
)

__all__ = [
    "AdaptivePool1DAttrs",
    "AdaptivePool2DAttrs",
    "AdaptivePool3DAttrs",
    "AffineGridAttrs",
    "AllClassNonMaximumSuppressionAttrs",
    "AllocStorageAttrs",
    "AllocTensorAttrs",
    "ArangeAttrs",
    "ArgReduceAttrs",
    "ArgsortAttrs",
    "AttentionAttrs",
    "AutoSchedulerLayoutTransformAttrs",
    "AvgPool1DAttrs",
    "AvgPool2DAttrs",
    "AvgPool3DAttrs",
    "BatchMatmulAttrs",
    "BatchNormAttrs",
    "BatchToSpaceNDAttrs",
    "BiasAddAttrs",
    "BinaryConv2DAttrs",
    "BinaryDenseAttrs",
    "BitPackAttrs",
    "CastAttrs",
    "CastHintAttrs",
    "ChannelShuffleAttrs",
    "ClipAttrs",
    "CompilerAttrs",
    "ConcatenateAttrs",
    "Conv1DAttrs",
    "Conv1DTransposeAttrs",
    "Conv2DAttrs",
    "Conv2DTransposeAttrs",
    "Conv2DWinogradAttrs",
    "Conv2DWinogradNNPACKWeightTransformAttrs",
    "Conv3DAttrs",
    "Conv3DTransposeAttrs",
    "Conv3DWinogradAttrs",
    "ConvGemmWeightTransformAttrs",
    "ConvWinogradWeightTransformAttrs",
    "CorrelationAttrs",
    "CropAndResizeAttrs",
    "DebugAttrs",
    "DeformableConv2DAttrs",
    "DenseAttrs",
    "DensePackAttrs",
    "DeviceCopyAttrs",
    "DilateAttrs",
    "Dilation2DAttrs",
    "DropoutAttrs",
    "EinsumAttrs",
    "ExpandDimsAttrs",
    "FIFOBufferAttrs",
    "FixedPointMultiplyAttrs",
    "GatherAttrs",
    "GatherNDAttrs",
    "GetValidCountsAttrs",
    "GlobalPool2DAttrs",
    "GridSampleAttrs",
    "GroupNormAttrs",
    "InitOpAttrs",
    "InstanceNormAttrs",
    "L2NormalizeAttrs",
    "LRNAttrs",
    "LayerNormAttrs",
    "LayoutTransformAttrs",
    "LeakyReluAttrs",
    "MatmulAttrs",
    "MatrixSetDiagAttrs",
    "MaxPool1DAttrs",
    "MaxPool2DAttrs",
    "MaxPool3DAttrs",
    "MeshgridAttrs",
    "MirrorPadAttrs",
    "MultiBoxPriorAttrs",
    "MultiBoxTransformLocAttrs",
    "NLLLossAttrs",
    "NdarraySizeAttrs",
    "NonMaximumSuppressionAttrs",
    "OnDeviceAttrs",
    "OneHotAttrs",
    "PReluAttrs",
    "PadAttrs",
    "ProposalAttrs",
    "ROIAlignAttrs",
    "ROIPoolAttrs",
    "RecurrentAttrs",
    "ReduceAttrs",
    "RepeatAttrs",
    "ReshapeAttrs",
    "ReshapeLikeAttrs",
    "ReshapeTensorAttrs",
    "Resize1DAttrs",
    "Resize2DAttrs",
    "Resize3DAttrs",
    "ReverseAttrs",
    "ReverseSequenceAttrs",
    "ScanopAttrs",
    "ScatterAddAttrs",
    "ScatterAttrs",
    "ScatterNDAttrs",
    "SearchSortedAttrs",
    "SequenceMaskAttrs",
    "ShapeFuncAttrs",
    "ShapeOfAttrs",
    "SliceLikeAttrs",
    "SoftmaxAttrs",
    "SpaceToBatchNDAttrs",
    "SparseConv2DAttrs",
    "SparseDenseAttrs",
    "SparseToDenseAttrs",
    "SplitAttrs",
    "SqueezeAttrs",
    "StackAttrs",
    "StridedSliceAttrs",
    "SubPixelAttrs",
    "TakeAttrs",
    "ThreefryGenerateAttrs",
    "TileAttrs",
    "TopKAttrs",
    "TransposeAttrs",
    "UniformAttrs",
    "UniqueAttrs",
    "UpSampling3DAttrs",
    "UpSamplingAttrs",
    "VarianceAttrs",
    "YoloReorgAttrs",
]
