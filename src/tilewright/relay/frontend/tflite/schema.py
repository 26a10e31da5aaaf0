"""TFLite's schema: the operators by number, and where the options of each are.

Options are named as TensorFlow names the attributes that mean the same, so that one converter serves both.
"""

from __future__ import annotations

from typing import Final

TENSOR_TYPES: Final = (
    "float32", "float16", "int32", "uint8", "int64", "string", "bool", "int16", "complex64", "int8", "float64",
    "complex128", "uint64", "resource", "variant", "uint32", "uint16", "int4", "bfloat16",
)  # fmt: skip
"""Element types by number."""

ACTIVATIONS: Final = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
"""Activations that other operators include, by number."""

CUSTOM: Final = 32
"""The number of operators that are known by a name instead."""

_OPERATORS: Final = """
ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM
MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS
SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND
SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN
EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2
GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG
SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT
UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU
SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE
MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND
SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D
IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE
READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU
DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2
UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT
"""
OPERATORS: Final = tuple(_OPERATORS.split())
"""Operators by number."""

_WINDOW: Final = "padding:pad stride_w:int32 stride_h:int32"
_OPTIONS: Final = {
    "ADD SUB MUL DIV L2_NORMALIZATION": "activation:act",
    "CONV_2D": f"{_WINDOW} activation:act dilation_w:int32=1 dilation_h:int32=1",
    "DEPTHWISE_CONV_2D": f"{_WINDOW} multiplier:int32 activation:act dilation_w:int32=1 dilation_h:int32=1",
    "CONV_3D CONV_3D_TRANSPOSE": "padding:pad stride_d:int32 stride_w:int32 stride_h:int32 activation:act "
    "dilation_d:int32=1 dilation_w:int32=1 dilation_h:int32=1",
    "AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D": f"{_WINDOW} filter_w:int32 filter_h:int32 activation:act",
    "TRANSPOSE_CONV": f"{_WINDOW} activation:act",
    "FULLY_CONNECTED": "activation:act weights_format:int8 keep_num_dims:bool asymmetric_quantize_inputs:bool",
    "CONCATENATION": "axis:int32 activation:act",
    "SOFTMAX": "beta:float32",
    "LOCAL_RESPONSE_NORMALIZATION": "depth_radius:int32 bias:float32 alpha:float32 beta:float32",
    "RESIZE_BILINEAR": "- - align_corners:bool half_pixel_centers:bool",
    "RESIZE_NEAREST_NEIGHBOR": "align_corners:bool half_pixel_centers:bool",
    "RESHAPE": "new_shape:int32s",
    "SPACE_TO_DEPTH DEPTH_TO_SPACE": "block_size:int32",
    "GATHER": "axis:int32 batch_dims:int32",
    "MEAN SUM REDUCE_PROD REDUCE_MAX REDUCE_MIN REDUCE_ANY REDUCE_ALL": "keep_dims:bool",
    "SQUEEZE": "squeeze_dims:int32s",
    "STRIDED_SLICE": "begin_mask:int32 end_mask:int32 ellipsis_mask:int32 new_axis_mask:int32 "
    "shrink_axis_mask:int32 offset:bool",
    "SPLIT SPLIT_V": "num_split:int32",
    "CAST": "SrcT:type DstT:type",
    "ARG_MAX ARG_MIN": "output_type:type",
    "SHAPE": "out_type:type",
    "FAKE_QUANT": "min:float32 max:float32 num_bits:int32 narrow_range:bool",
    "PACK": "values_count:int32 axis:int32",
    "ONE_HOT": "axis:int32",
    "UNPACK": "num:int32 axis:int32",
    "LEAKY_RELU": "alpha:float32",
    "MIRROR_PAD": "mode:mirror",
    "UNIQUE": "out_idx:type=2",
    "REVERSE_SEQUENCE": "seq_dim:int32 batch_dim:int32",
    "IF": "then_subgraph:int32 else_subgraph:int32",
    "WHILE": "cond_subgraph:int32 body_subgraph:int32",
    "CALL_ONCE": "init_subgraph:int32",
    "BATCH_MATMUL": "adj_x:bool adj_y:bool asymmetric_quantize_inputs:bool",
    "CUMSUM": "exclusive:bool reverse:bool",
    "BUCKETIZE": "boundaries:float32s",
    "GELU": "approximate:bool",
    "SVDF": "rank:int32 activation:act asymmetric_quantize_inputs:bool",
    "RNN": "activation:act asymmetric_quantize_inputs:bool",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "time_major:bool activation:act asymmetric_quantize_inputs:bool",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "activation:act cell_clip:float32 proj_clip:float32 time_major:bool",
    "VAR_HANDLE": "container:text shared_name:text",
}

Field = tuple[int, str, str, int]
"""A field's number, its name, its kind, and its default."""


def _parsed(text: str) -> tuple[Field, ...]:
    fields = []
    for number, item in enumerate(text.split()):
        if item != "-":
            name, _, kind = item.partition(":")
            kind, _, default = kind.partition("=")
            fields.append((number, name, kind, int(default or 0)))
    return tuple(fields)


OPTIONS: Final[dict[str, tuple[Field, ...]]] = {
    name: _parsed(fields) for names, fields in _OPTIONS.items() for name in names.split()
}
"""The options of each operator that has any."""
