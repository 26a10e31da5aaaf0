"""The messages of Caffe's networks: the fields that are read, by number."""

from __future__ import annotations

from typing import Final

from tilewright.relay.frontend.common.protobuf import Schema

_OLD_TYPES: Final = (
    "NONE=0|ACCURACY=1|BNLL=2|CONCAT=3|CONVOLUTION=4|DATA=5|DROPOUT=6|EUCLIDEAN_LOSS=7|FLATTEN=8|HDF5_DATA=9|"
    "HDF5_OUTPUT=10|IM2COL=11|IMAGE_DATA=12|INFOGAIN_LOSS=13|INNER_PRODUCT=14|LRN=15|MULTINOMIAL_LOGISTIC_LOSS=16|"
    "POOLING=17|RELU=18|SIGMOID=19|SOFTMAX=20|SOFTMAX_LOSS=21|SPLIT=22|TANH=23|WINDOW_DATA=24|ELTWISE=25|POWER=26|"
    "SIGMOID_CROSS_ENTROPY_LOSS=27|HINGE_LOSS=28|MEMORY_DATA=29|ARGMAX=30|THRESHOLD=31|DUMMY_DATA=32|SLICE=33|MVN=34|"
    "ABSVAL=35|SILENCE=36|CONTRASTIVE_LOSS=37|EXP=38|DECONVOLUTION=39"
)
_WINDOW: Final = "pad {0} uint*, pad_h 9 uint, pad_w 10 uint, kernel_size {1} uint*, stride {2} uint*"
_POWERS: Final = "scale 2 float 1.0, shift 3 float"
SCHEMA: Final = Schema(
    {
        "NetParameter": (
            "name 1 string, layers 2 OldLayer*, input 3 string*, input_dim 4 int*, input_shape 8 BlobShape*, "
            "layer 100 Layer*"
        ),
        "BlobShape": "dim 1 int*",
        "Blob": (
            "shape 7 BlobShape, data 5 float*, double_data 8 double*, num 1 int, channels 2 int, height 3 int, "
            "width 4 int"
        ),
        "StateRule": "phase 1 TRAIN|TEST",
        "Layer": (
            "name 1 string, type 2 string, bottom 3 string*, top 4 string*, blobs 7 Blob*, include 8 StateRule*, "
            "exclude 9 StateRule*, phase 10 TRAIN|TEST TEST, argmax_param 103 ArgMax, batch_norm_param 139 BatchNorm, "
            "bias_param 141 Bias, concat_param 104 Concat, convolution_param 106 Convolution, crop_param 144 Crop, "
            "dropout_param 108 Dropout, eltwise_param 110 Eltwise, elu_param 140 ELU, embed_param 137 Embed, "
            "exp_param 111 Exp, flatten_param 135 Flatten, inner_product_param 117 InnerProduct, "
            "input_param 143 Input, log_param 134 Log, lrn_param 118 LRN, mvn_param 120 MVN, norm_param 206 Normalize, "
            "permute_param 202 Permute, pooling_param 121 Pooling, power_param 122 Power, prelu_param 131 PReLU, "
            "reduction_param 136 Reduction, relu_param 123 ReLU, reshape_param 133 Reshape, scale_param 142 Scale, "
            "slice_param 126 Slice, softmax_param 125 Softmax, threshold_param 128 Threshold, tile_param 138 Tile"
        ),
        "OldLayer": (
            f"bottom 2 string*, top 3 string*, name 4 string, type 5 {_OLD_TYPES}, blobs 6 Blob*, "
            "include 32 StateRule*, exclude 33 StateRule*, concat_param 9 Concat, convolution_param 10 Convolution, "
            "dropout_param 12 Dropout, inner_product_param 17 InnerProduct, lrn_param 18 LRN, "
            "pooling_param 19 Pooling, power_param 21 Power, argmax_param 23 ArgMax, eltwise_param 24 Eltwise, "
            "threshold_param 25 Threshold, "
            "relu_param 30 ReLU, slice_param 31 Slice, mvn_param 34 MVN, softmax_param 39 Softmax, exp_param 41 Exp"
        ),
        "ArgMax": "out_max_val 1 bool, top_k 2 uint 1, axis 3 int",
        "BatchNorm": "use_global_stats 1 bool true, eps 3 float 1e-5",
        "Bias": "axis 1 int 1, num_axes 2 int 1",
        "Concat": "concat_dim 1 uint 1, axis 2 int 1",
        "Convolution": (
            "num_output 1 uint, bias_term 2 bool true, group 5 uint 1, kernel_h 11 uint, kernel_w 12 uint, "
            f"stride_h 13 uint, stride_w 14 uint, axis 16 int 1, dilation 18 uint*, {_WINDOW.format(3, 4, 6)}"
        ),
        "Crop": "axis 1 int 2, offset 2 uint*",
        "Dropout": "dropout_ratio 1 float 0.5, scale_train 2 bool true",
        "Eltwise": "operation 1 PROD|SUM|MAX SUM, coeff 2 float*",
        "ELU": "alpha 1 float 1.0",
        "Embed": "num_output 1 uint, input_dim 2 uint, bias_term 3 bool true",
        "Exp": f"base 1 float -1.0, {_POWERS}",
        "Log": f"base 1 float -1.0, {_POWERS}",
        "Power": f"power 1 float 1.0, {_POWERS}",
        "Flatten": "axis 1 int 1, end_axis 2 int -1",
        "InnerProduct": "num_output 1 uint, bias_term 2 bool true, axis 5 int 1, transpose 6 bool",
        "Input": "shape 1 BlobShape*",
        "LRN": (
            "local_size 1 uint 5, alpha 2 float 1.0, beta 3 float 0.75, "
            "norm_region 4 ACROSS_CHANNELS|WITHIN_CHANNEL, k 5 float 1.0"
        ),
        "MVN": "normalize_variance 1 bool true, across_channels 2 bool, eps 3 float 1e-9",
        "Normalize": "across_spatial 1 bool true, channel_shared 3 bool true, eps 4 float 1e-10",
        "Permute": "order 1 uint*",
        "Pooling": (
            "pool 1 MAX|AVE|STOCHASTIC, kernel_h 5 uint, kernel_w 6 uint, stride_h 7 uint, stride_w 8 uint, "
            f"global_pooling 12 bool, round_mode 13 CEIL|FLOOR, {_WINDOW.format(4, 2, 3)}"
        ),
        "PReLU": "channel_shared 2 bool",
        "Reduction": "operation 1 SUM=1|ASUM=2|SUMSQ=3|MEAN=4, axis 2 int, coeff 3 float 1.0",
        "ReLU": "negative_slope 1 float",
        "Reshape": "shape 1 BlobShape, axis 2 int, num_axes 3 int -1",
        "Scale": "axis 1 int 1, num_axes 2 int 1, bias_term 4 bool",
        "Slice": "slice_dim 1 uint 1, slice_point 2 uint*, axis 3 int 1",
        "Softmax": "axis 2 int 1",
        "Threshold": "threshold 1 float",
        "Tile": "axis 1 int 1, tiles 2 int",
    }
)
