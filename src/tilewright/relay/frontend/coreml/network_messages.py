"""The messages of neural networks: the fields that are read, by number."""

from __future__ import annotations

from typing import Final

NETWORK: Final[dict[str, str]] = {
    "NeuralNetwork": (
        "layers 1 NeuralNetworkLayer*, preprocessing 2 NeuralNetworkPreprocessing*, "
        "arrayInputShapeMapping 5 RANK5_ARRAY_MAPPING|EXACT_ARRAY_MAPPING, "
        "imageInputShapeMapping 6 RANK5_IMAGE_MAPPING|RANK4_IMAGE_MAPPING"
    ),
    "NeuralNetworkClassifier": (
        "layers 1 NeuralNetworkLayer*, preprocessing 2 NeuralNetworkPreprocessing*, "
        "arrayInputShapeMapping 5 RANK5_ARRAY_MAPPING|EXACT_ARRAY_MAPPING, "
        "imageInputShapeMapping 6 RANK5_IMAGE_MAPPING|RANK4_IMAGE_MAPPING, "
        "labelProbabilityLayerName 200 string"
    ),
    "NeuralNetworkRegressor": (
        "layers 1 NeuralNetworkLayer*, preprocessing 2 NeuralNetworkPreprocessing*, "
        "arrayInputShapeMapping 5 RANK5_ARRAY_MAPPING|EXACT_ARRAY_MAPPING, "
        "imageInputShapeMapping 6 RANK5_IMAGE_MAPPING|RANK4_IMAGE_MAPPING"
    ),
    "NeuralNetworkLayer": (
        "name 1 string, input 2 string*, output 3 string*, convolution 100 ConvolutionLayerParams, "
        "pooling 120 PoolingLayerParams, activation 130 ActivationParams, "
        "innerProduct 140 InnerProductLayerParams, embedding 150 EmbeddingLayerParams, "
        "batchnorm 160 BatchnormLayerParams, mvn 165 MeanVarianceNormalizeLayerParams, "
        "l2normalize 170 L2NormalizeLayerParams, softmax 175 SoftmaxLayerParams, lrn 180 LRNLayerParams, "
        "crop 190 CropLayerParams, padding 200 PaddingLayerParams, upsample 210 UpsampleLayerParams, "
        "resizeBilinear 211 ResizeBilinearLayerParams, cropResize 212 CropResizeLayerParams, "
        "unary 220 UnaryFunctionLayerParams, add 230 AddLayerParams, multiply 231 MultiplyLayerParams, "
        "average 240 AverageLayerParams, scale 245 ScaleLayerParams, bias 250 BiasLayerParams, "
        "max 260 MaxLayerParams, min 261 MinLayerParams, dot 270 DotProductLayerParams, "
        "reduce 280 ReduceLayerParams, loadConstant 290 LoadConstantLayerParams, "
        "reshape 300 ReshapeLayerParams, flatten 301 FlattenLayerParams, permute 310 PermuteLayerParams, "
        "concat 320 ConcatLayerParams, split 330 SplitLayerParams, "
        "sequenceRepeat 340 SequenceRepeatLayerParams, reorganizeData 345 ReorganizeDataLayerParams, "
        "slice 350 SliceLayerParams, simpleRecurrent 400 SimpleRecurrentLayerParams, "
        "gru 410 GRULayerParams, uniDirectionalLSTM 420 UniDirectionalLSTMLayerParams, "
        "biDirectionalLSTM 430 BiDirectionalLSTMLayerParams, custom 500 CopyLayerParams, "
        "copy 600 CopyLayerParams, branch 605 CopyLayerParams, loop 615 CopyLayerParams, "
        "loopBreak 620 LoopBreakLayerParams, loopContinue 625 LoopContinueLayerParams, "
        "rangeStatic 635 RangeStaticLayerParams, rangeDynamic 640 RangeDynamicLayerParams, "
        "clip 660 ClipLayerParams, ceil 665 CeilLayerParams, floor 670 FloorLayerParams, "
        "sign 680 SignLayerParams, round 685 RoundLayerParams, exp2 700 Exp2LayerParams, "
        "sin 710 SinLayerParams, cos 715 CosLayerParams, tan 720 TanLayerParams, "
        "asin 730 AsinLayerParams, acos 735 AcosLayerParams, atan 740 AtanLayerParams, "
        "sinh 750 SinhLayerParams, cosh 755 CoshLayerParams, tanh 760 TanhLayerParams, "
        "asinh 770 AsinhLayerParams, acosh 775 AcoshLayerParams, atanh 780 AtanhLayerParams, "
        "erf 790 ErfLayerParams, gelu 795 GeluLayerParams, equal 815 EqualLayerParams, "
        "notEqual 820 NotEqualLayerParams, lessThan 825 LessThanLayerParams, "
        "lessEqual 827 LessEqualLayerParams, greaterThan 830 GreaterThanLayerParams, "
        "greaterEqual 832 GreaterEqualLayerParams, logicalOr 840 LogicalOrLayerParams, "
        "logicalXor 845 LogicalXorLayerParams, logicalNot 850 LogicalNotLayerParams, "
        "logicalAnd 855 LogicalAndLayerParams, modBroadcastable 865 ModBroadcastableLayerParams, "
        "minBroadcastable 870 MinBroadcastableLayerParams, "
        "maxBroadcastable 875 MaxBroadcastableLayerParams, "
        "addBroadcastable 880 AddBroadcastableLayerParams, "
        "powBroadcastable 885 PowBroadcastableLayerParams, "
        "divideBroadcastable 890 DivideBroadcastableLayerParams, "
        "floorDivBroadcastable 895 FloorDivBroadcastableLayerParams, "
        "multiplyBroadcastable 900 MultiplyBroadcastableLayerParams, "
        "subtractBroadcastable 905 SubtractBroadcastableLayerParams, tile 920 TileLayerParams, "
        "stack 925 StackLayerParams, gather 930 GatherLayerParams, scatter 935 ScatterLayerParams, "
        "gatherND 940 GatherNDLayerParams, scatterND 945 ScatterNDLayerParams, "
        "softmaxND 950 SoftmaxNDLayerParams, gatherAlongAxis 952 GatherAlongAxisLayerParams, "
        "scatterAlongAxis 954 ScatterAlongAxisLayerParams, reverse 960 ReverseLayerParams, "
        "reverseSeq 965 ReverseSeqLayerParams, splitND 975 SplitNDLayerParams, "
        "concatND 980 ConcatNDLayerParams, transpose 985 TransposeLayerParams, "
        "sliceStatic 995 SliceStaticLayerParams, sliceDynamic 1000 SliceDynamicLayerParams, "
        "slidingWindows 1005 SlidingWindowsLayerParams, topK 1015 TopKLayerParams, "
        "argMin 1020 ArgMinLayerParams, argMax 1025 ArgMaxLayerParams, "
        "embeddingND 1040 EmbeddingNDLayerParams, batchedMatmul 1045 BatchedMatMulLayerParams, "
        "getShape 1065 GetShapeLayerParams, loadConstantND 1070 LoadConstantNDLayerParams, "
        "fillLike 1080 FillLikeLayerParams, fillStatic 1085 FillStaticLayerParams, "
        "fillDynamic 1090 FillDynamicLayerParams, broadcastToLike 1100 BroadcastToLikeLayerParams, "
        "broadcastToStatic 1105 BroadcastToStaticLayerParams, "
        "broadcastToDynamic 1110 BroadcastToDynamicLayerParams, squeeze 1120 SqueezeLayerParams, "
        "expandDims 1125 ExpandDimsLayerParams, flattenTo2D 1130 FlattenTo2DLayerParams, "
        "reshapeLike 1135 ReshapeLikeLayerParams, reshapeStatic 1140 ReshapeStaticLayerParams, "
        "reshapeDynamic 1145 ReshapeDynamicLayerParams, "
        "rankPreservingReshape 1150 RankPreservingReshapeLayerParams, "
        "constantPad 1155 ConstantPaddingLayerParams, randomNormalLike 1170 RandomNormalLikeLayerParams, "
        "randomNormalStatic 1175 RandomNormalStaticLayerParams, "
        "randomNormalDynamic 1180 RandomNormalDynamicLayerParams, "
        "randomUniformLike 1190 RandomUniformLikeLayerParams, "
        "randomUniformStatic 1195 RandomUniformStaticLayerParams, "
        "randomUniformDynamic 1200 RandomUniformDynamicLayerParams, "
        "randomBernoulliLike 1210 RandomBernoulliLikeLayerParams, "
        "randomBernoulliStatic 1215 RandomBernoulliStaticLayerParams, "
        "randomBernoulliDynamic 1220 RandomBernoulliDynamicLayerParams, "
        "categoricalDistribution 1230 CategoricalDistributionLayerParams, "
        "reduceL1 1250 ReduceL1LayerParams, reduceL2 1255 ReduceL2LayerParams, "
        "reduceMax 1260 ReduceMaxLayerParams, reduceMin 1265 ReduceMinLayerParams, "
        "reduceSum 1270 ReduceSumLayerParams, reduceProd 1275 ReduceProdLayerParams, "
        "reduceMean 1280 ReduceMeanLayerParams, reduceLogSum 1285 ReduceLogSumLayerParams, "
        "reduceSumSquare 1290 ReduceSumSquareLayerParams, "
        "reduceLogSumExp 1295 ReduceLogSumExpLayerParams, whereNonZero 1313 WhereNonZeroLayerParams, "
        "matrixBandPart 1315 MatrixBandPartLayerParams, lowerTriangular 1320 LowerTriangularLayerParams, "
        "upperTriangular 1325 UpperTriangularLayerParams, "
        "whereBroadcastable 1330 WhereBroadcastableLayerParams, "
        "layerNormalization 1350 LayerNormalizationLayerParams, "
        "NonMaximumSuppression 1400 NonMaximumSuppressionLayerParams, oneHot 1450 OneHotLayerParams, "
        "cumSum 1455 CumSumLayerParams, clampedReLU 1460 ClampedReLULayerParams, "
        "argSort 1461 ArgSortLayerParams, pooling3d 1465 Pooling3DLayerParams, "
        "globalPooling3d 1466 GlobalPooling3DLayerParams, sliceBySize 1470 SliceBySizeLayerParams, "
        "convolution3d 1471 Convolution3DLayerParams"
    ),
    "NeuralNetworkPreprocessing": (
        "featureName 1 string, scaler 10 NeuralNetworkImageScaler, meanImage 11 NeuralNetworkMeanImage"
    ),
    "ConvolutionLayerParams": (
        "outputChannels 1 uint, kernelChannels 2 uint, nGroups 10 uint, kernelSize 20 uint*, "
        "stride 30 uint*, dilationFactor 40 uint*, valid 50 ValidPadding, same 51 SamePadding, "
        "isDeconvolution 60 bool, hasBias 70 bool, weights 90 WeightParams, bias 91 WeightParams, "
        "outputShape 100 uint*"
    ),
    "PoolingLayerParams": (
        "type 1 MAX|AVERAGE|L2, kernelSize 10 uint*, stride 20 uint*, valid 30 ValidPadding, "
        "same 31 SamePadding, includeLastPixel 32 ValidCompletePadding, avgPoolExcludePadding 50 bool, "
        "globalPooling 60 bool"
    ),
    "ActivationParams": (
        "linear 5 ActivationLinear, ReLU 10 ActivationReLU, leakyReLU 15 ActivationLeakyReLU, "
        "thresholdedReLU 20 ActivationThresholdedReLU, PReLU 25 ActivationPReLU, tanh 30 ActivationTanh, "
        "scaledTanh 31 ActivationScaledTanh, sigmoid 40 ActivationSigmoid, "
        "sigmoidHard 41 ActivationSigmoidHard, ELU 50 ActivationELU, softsign 60 ActivationSoftsign, "
        "softplus 70 ActivationSoftplus, parametricSoftplus 71 ActivationParametricSoftplus"
    ),
    "InnerProductLayerParams": (
        "inputChannels 1 uint, outputChannels 2 uint, hasBias 10 bool, weights 20 WeightParams, "
        "bias 21 WeightParams, int8DynamicQuantize 22 bool"
    ),
    "EmbeddingLayerParams": (
        "inputDim 1 uint, outputChannels 2 uint, hasBias 10 bool, weights 20 WeightParams, "
        "bias 21 WeightParams"
    ),
    "BatchnormLayerParams": (
        "channels 1 uint, computeMeanVar 5 bool, instanceNormalization 6 bool, epsilon 10 float, "
        "gamma 15 WeightParams, beta 16 WeightParams, mean 17 WeightParams, variance 18 WeightParams"
    ),
    "MeanVarianceNormalizeLayerParams": "acrossChannels 1 bool, normalizeVariance 2 bool, epsilon 3 float",
    "L2NormalizeLayerParams": "epsilon 1 float",
    "SoftmaxLayerParams": "",
    "LRNLayerParams": "alpha 1 float, beta 2 float, localSize 3 uint, k 4 float",
    "CropLayerParams": "cropAmounts 1 BorderAmounts, offset 5 uint*",
    "PaddingLayerParams": (
        "constant 1 PaddingConstant, reflection 2 PaddingReflection, replication 3 PaddingReplication, "
        "paddingAmounts 10 BorderAmounts"
    ),
    "UpsampleLayerParams": (
        "scalingFactor 1 uint*, mode 5 NN|BILINEAR, "
        "linearUpsampleMode 6 DEFAULT|ALIGN_CORNERS_TRUE|ALIGN_CORNERS_FALSE, "
        "fractionalScalingFactor 7 float*"
    ),
    "ResizeBilinearLayerParams": "targetSize 1 uint*, mode 2 SamplingMode",
    "CropResizeLayerParams": (
        "targetSize 1 uint*, normalizedCoordinates 2 bool, mode 3 SamplingMode, "
        "boxIndicesMode 4 BoxCoordinatesMode, spatialScale 5 float"
    ),
    "UnaryFunctionLayerParams": (
        "type 1 SQRT|RSQRT|INVERSE|POWER|EXP|LOG|ABS|THRESHOLD, alpha 2 float, epsilon 3 float, "
        "shift 4 float, scale 5 float"
    ),
    "AddLayerParams": "alpha 1 float",
    "MultiplyLayerParams": "alpha 1 float",
    "AverageLayerParams": "",
    "ScaleLayerParams": (
        "shapeScale 1 uint*, scale 2 WeightParams, hasBias 3 bool, shapeBias 4 uint*, bias 5 WeightParams"
    ),
    "BiasLayerParams": "shape 1 uint*, bias 2 WeightParams",
    "MaxLayerParams": "",
    "MinLayerParams": "",
    "DotProductLayerParams": "cosineSimilarity 1 bool",
    "ReduceLayerParams": (
        "mode 1 SUM|AVG|PROD|LOGSUM|SUMSQUARE|L1|L2|MAX|MIN|ARGMAX, epsilon 2 float, axis 3 CHW|HW|C|H|W"
    ),
    "LoadConstantLayerParams": "shape 1 uint*, data 2 WeightParams",
    "ReshapeLayerParams": "targetShape 1 int*, mode 2 CHANNEL_FIRST|CHANNEL_LAST",
    "FlattenLayerParams": "mode 1 CHANNEL_FIRST|CHANNEL_LAST",
    "PermuteLayerParams": "axis 1 uint*",
    "ConcatLayerParams": "sequenceConcat 100 bool",
    "SplitLayerParams": "nOutputs 1 uint",
    "SequenceRepeatLayerParams": "nRepetitions 1 uint",
    "ReorganizeDataLayerParams": "mode 1 SPACE_TO_DEPTH|DEPTH_TO_SPACE|PIXEL_SHUFFLE, blockSize 2 uint",
    "SliceLayerParams": (
        "startIndex 1 int, endIndex 2 int, stride 3 uint, axis 4 CHANNEL_AXIS|HEIGHT_AXIS|WIDTH_AXIS"
    ),
    "SimpleRecurrentLayerParams": (
        "inputVectorSize 1 uint, outputVectorSize 2 uint, activation 10 ActivationParams, "
        "sequenceOutput 15 bool, hasBiasVector 20 bool, weightMatrix 30 WeightParams, "
        "recursionMatrix 31 WeightParams, biasVector 32 WeightParams, reverseInput 100 bool"
    ),
    "GRULayerParams": (
        "inputVectorSize 1 uint, outputVectorSize 2 uint, activations 10 ActivationParams*, "
        "sequenceOutput 15 bool, hasBiasVectors 20 bool, updateGateWeightMatrix 30 WeightParams, "
        "resetGateWeightMatrix 31 WeightParams, outputGateWeightMatrix 32 WeightParams, "
        "updateGateRecursionMatrix 50 WeightParams, resetGateRecursionMatrix 51 WeightParams, "
        "outputGateRecursionMatrix 52 WeightParams, updateGateBiasVector 70 WeightParams, "
        "resetGateBiasVector 71 WeightParams, outputGateBiasVector 72 WeightParams, reverseInput 100 bool"
    ),
    "UniDirectionalLSTMLayerParams": (
        "inputVectorSize 1 uint, outputVectorSize 2 uint, activations 10 ActivationParams*, "
        "params 15 LSTMParams, weightParams 20 LSTMWeightParams, reverseInput 100 bool"
    ),
    "BiDirectionalLSTMLayerParams": (
        "inputVectorSize 1 uint, outputVectorSize 2 uint, activationsForwardLSTM 10 ActivationParams*, "
        "activationsBackwardLSTM 11 ActivationParams*, params 15 LSTMParams, "
        "weightParams 20 LSTMWeightParams*"
    ),
    "CopyLayerParams": "",
    "LoopBreakLayerParams": "",
    "LoopContinueLayerParams": "",
    "RangeStaticLayerParams": "endValue 1 float, startValue 2 float, stepSizeValue 3 float",
    "RangeDynamicLayerParams": "startValue 2 float, stepSizeValue 3 float",
    "ClipLayerParams": "minVal 1 float, maxVal 2 float",
    "CeilLayerParams": "",
    "FloorLayerParams": "",
    "SignLayerParams": "",
    "RoundLayerParams": "",
    "Exp2LayerParams": "",
    "SinLayerParams": "",
    "CosLayerParams": "",
    "TanLayerParams": "",
    "AsinLayerParams": "",
    "AcosLayerParams": "",
    "AtanLayerParams": "",
    "SinhLayerParams": "",
    "CoshLayerParams": "",
    "TanhLayerParams": "",
    "AsinhLayerParams": "",
    "AcoshLayerParams": "",
    "AtanhLayerParams": "",
    "ErfLayerParams": "",
    "GeluLayerParams": "mode 1 EXACT|TANH_APPROXIMATION|SIGMOID_APPROXIMATION",
    "EqualLayerParams": "alpha 1 float",
    "NotEqualLayerParams": "alpha 1 float",
    "LessThanLayerParams": "alpha 2 float",
    "LessEqualLayerParams": "alpha 2 float",
    "GreaterThanLayerParams": "alpha 2 float",
    "GreaterEqualLayerParams": "alpha 2 float",
    "LogicalOrLayerParams": "",
    "LogicalXorLayerParams": "",
    "LogicalNotLayerParams": "",
    "LogicalAndLayerParams": "",
    "ModBroadcastableLayerParams": "",
    "MinBroadcastableLayerParams": "",
    "MaxBroadcastableLayerParams": "",
    "AddBroadcastableLayerParams": "",
    "PowBroadcastableLayerParams": "",
    "DivideBroadcastableLayerParams": "",
    "FloorDivBroadcastableLayerParams": "",
    "MultiplyBroadcastableLayerParams": "",
    "SubtractBroadcastableLayerParams": "",
    "TileLayerParams": "reps 1 uint*",
    "StackLayerParams": "axis 1 int",
    "GatherLayerParams": "axis 1 int",
    "ScatterLayerParams": (
        "axis 1 int, "
        "mode 2 SCATTER_UPDATE|SCATTER_ADD|SCATTER_SUB|SCATTER_MUL|SCATTER_DIV|SCATTER_MAX|SCATTER_MIN"
    ),
    "GatherNDLayerParams": "",
    "ScatterNDLayerParams": (
        "mode 1 SCATTER_UPDATE|SCATTER_ADD|SCATTER_SUB|SCATTER_MUL|SCATTER_DIV|SCATTER_MAX|SCATTER_MIN"
    ),
    "SoftmaxNDLayerParams": "axis 1 int",
    "GatherAlongAxisLayerParams": "axis 1 int",
    "ScatterAlongAxisLayerParams": (
        "axis 1 int, "
        "mode 2 SCATTER_UPDATE|SCATTER_ADD|SCATTER_SUB|SCATTER_MUL|SCATTER_DIV|SCATTER_MAX|SCATTER_MIN"
    ),
    "ReverseLayerParams": "reverseDim 1 bool*",
    "ReverseSeqLayerParams": "batchAxis 1 int, sequenceAxis 2 int",
    "SplitNDLayerParams": "axis 1 int, numSplits 2 uint, splitSizes 3 uint*",
    "ConcatNDLayerParams": "axis 1 int, interleave 2 bool",
    "TransposeLayerParams": "axes 1 uint*",
    "SliceStaticLayerParams": (
        "beginIds 1 int*, beginMasks 2 bool*, endIds 3 int*, endMasks 4 bool*, strides 5 int*, "
        "squeezeMasks 6 bool*"
    ),
    "SliceDynamicLayerParams": (
        "beginMasks 2 bool*, endIds 3 int*, endMasks 4 bool*, strides 5 int*, squeezeMasks 6 bool*"
    ),
    "SlidingWindowsLayerParams": "axis 1 int, windowSize 2 uint, step 3 uint",
    "TopKLayerParams": "axis 1 int, K 2 uint, useBottomK 3 bool",
    "ArgMinLayerParams": "axis 1 int, removeDim 2 bool",
    "ArgMaxLayerParams": "axis 1 int, removeDim 2 bool",
    "EmbeddingNDLayerParams": (
        "vocabSize 1 uint, embeddingSize 2 uint, hasBias 3 bool, weights 20 WeightParams, "
        "bias 21 WeightParams"
    ),
    "BatchedMatMulLayerParams": (
        "transposeA 1 bool, transposeB 2 bool, weightMatrixFirstDimension 5 uint, "
        "weightMatrixSecondDimension 6 uint, hasBias 7 bool, weights 8 WeightParams, "
        "bias 9 WeightParams, int8DynamicQuantize 10 bool"
    ),
    "GetShapeLayerParams": "",
    "LoadConstantNDLayerParams": "shape 1 uint*, data 2 WeightParams",
    "FillLikeLayerParams": "value 1 float",
    "FillStaticLayerParams": "value 1 float, targetShape 2 uint*",
    "FillDynamicLayerParams": "value 1 float",
    "BroadcastToLikeLayerParams": "",
    "BroadcastToStaticLayerParams": "targetShape 1 uint*",
    "BroadcastToDynamicLayerParams": "",
    "SqueezeLayerParams": "axes 1 int*, squeezeAll 2 bool",
    "ExpandDimsLayerParams": "axes 1 int*",
    "FlattenTo2DLayerParams": "axis 1 int",
    "ReshapeLikeLayerParams": "",
    "ReshapeStaticLayerParams": "targetShape 1 int*",
    "ReshapeDynamicLayerParams": "",
    "RankPreservingReshapeLayerParams": "targetShape 1 int*",
    "ConstantPaddingLayerParams": "value 1 float, padAmounts 2 uint*, padToGivenOutputSizeMode 3 bool",
    "RandomNormalLikeLayerParams": "seed 1 int, mean 2 float, stdDev 3 float",
    "RandomNormalStaticLayerParams": "seed 1 int, mean 2 float, stdDev 3 float, outputShape 4 uint*",
    "RandomNormalDynamicLayerParams": "seed 1 int, mean 2 float, stdDev 3 float",
    "RandomUniformLikeLayerParams": "seed 1 int, minVal 2 float, maxVal 3 float",
    "RandomUniformStaticLayerParams": "seed 1 int, minVal 2 float, maxVal 3 float, outputShape 4 uint*",
    "RandomUniformDynamicLayerParams": "seed 1 int, minVal 2 float, maxVal 3 float",
    "RandomBernoulliLikeLayerParams": "seed 1 int, prob 2 float",
    "RandomBernoulliStaticLayerParams": "seed 1 int, prob 2 float, outputShape 3 uint*",
    "RandomBernoulliDynamicLayerParams": "seed 1 int, prob 2 float",
    "CategoricalDistributionLayerParams": (
        "seed 1 int, numSamples 2 int, isLogits 3 bool, eps 4 float, temperature 5 float"
    ),
    "ReduceL1LayerParams": "axes 1 int*, keepDims 2 bool, reduceAll 3 bool",
    "ReduceL2LayerParams": "axes 1 int*, keepDims 2 bool, reduceAll 3 bool",
    "ReduceMaxLayerParams": "axes 1 int*, keepDims 2 bool, reduceAll 3 bool",
    "ReduceMinLayerParams": "axes 1 int*, keepDims 2 bool, reduceAll 3 bool",
    "ReduceSumLayerParams": "axes 1 int*, keepDims 2 bool, reduceAll 3 bool",
    "ReduceProdLayerParams": "axes 1 int*, keepDims 2 bool, reduceAll 3 bool",
    "ReduceMeanLayerParams": "axes 1 int*, keepDims 2 bool, reduceAll 3 bool",
    "ReduceLogSumLayerParams": "axes 1 int*, keepDims 2 bool, reduceAll 3 bool",
    "ReduceSumSquareLayerParams": "axes 1 int*, keepDims 2 bool, reduceAll 3 bool",
    "ReduceLogSumExpLayerParams": "axes 1 int*, keepDims 2 bool, reduceAll 3 bool",
    "WhereNonZeroLayerParams": "",
    "MatrixBandPartLayerParams": "numLower 1 int, numUpper 2 int",
    "LowerTriangularLayerParams": "k 1 int",
    "UpperTriangularLayerParams": "k 1 int",
    "WhereBroadcastableLayerParams": "",
    "LayerNormalizationLayerParams": (
        "normalizedShape 1 int*, eps 2 float, gamma 3 WeightParams, beta 4 WeightParams"
    ),
    "NonMaximumSuppressionLayerParams": (
        "iouThreshold 1 float, scoreThreshold 2 float, maxBoxes 3 uint, perClassSuppression 4 bool"
    ),
    "OneHotLayerParams": "oneHotVectorSize 1 uint, axis 2 int, onValue 3 float, offValue 4 float",
    "CumSumLayerParams": "axis 1 int, excludeFinalSum 2 bool, reverse 3 bool",
    "ClampedReLULayerParams": "alpha 1 float, beta 2 float",
    "ArgSortLayerParams": "axis 1 int, descending 2 bool",
    "Pooling3DLayerParams": (
        "type 1 MAX|AVERAGE, kernelDepth 2 int, kernelHeight 3 int, kernelWidth 4 int, "
        "strideDepth 5 int, strideHeight 6 int, strideWidth 7 int, customPaddingFront 8 int, "
        "customPaddingBack 9 int, customPaddingTop 10 int, customPaddingBottom 11 int, "
        "customPaddingLeft 12 int, customPaddingRight 13 int, countExcludePadding 14 bool, "
        "paddingType 15 CUSTOM|VALID|SAME"
    ),
    "GlobalPooling3DLayerParams": "type 1 MAX|AVERAGE",
    "SliceBySizeLayerParams": "size 2 int, axis 3 int",
    "Convolution3DLayerParams": (
        "outputChannels 1 int, inputChannels 2 int, nGroups 10 int, kernelDepth 20 int, "
        "kernelHeight 21 int, kernelWidth 22 int, strideDepth 31 int, strideHeight 32 int, "
        "strideWidth 33 int, dilationDepth 40 int, dilationHeight 41 int, dilationWidth 42 int, "
        "hasBias 50 bool, weights 60 WeightParams, bias 61 WeightParams, "
        "paddingType 70 CUSTOM|VALID|SAME, customPaddingFront 80 int, customPaddingBack 81 int, "
        "customPaddingTop 82 int, customPaddingBottom 83 int, customPaddingLeft 84 int, "
        "customPaddingRight 85 int, isDeconvolution 86 bool, outputShape 87 uint*"
    ),
    "NeuralNetworkImageScaler": (
        "channelScale 10 float, blueBias 20 float, greenBias 21 float, redBias 22 float, grayBias 30 float"
    ),
    "NeuralNetworkMeanImage": "meanImage 1 float*",
    "ValidPadding": "paddingAmounts 1 BorderAmounts",
    "SamePadding": "asymmetryMode 1 BOTTOM_RIGHT_HEAVY|TOP_LEFT_HEAVY",
    "WeightParams": (
        "floatValue 1 float*, float16Value 2 bytes, rawValue 30 bytes, int8RawValue 31 bytes, "
        "quantization 40 QuantizationParams"
    ),
    "ValidCompletePadding": "paddingAmounts 10 uint*",
    "ActivationLinear": "alpha 1 float, beta 2 float",
    "ActivationReLU": "",
    "ActivationLeakyReLU": "alpha 1 float",
    "ActivationThresholdedReLU": "alpha 1 float",
    "ActivationPReLU": "alpha 1 WeightParams",
    "ActivationTanh": "",
    "ActivationScaledTanh": "alpha 1 float, beta 2 float",
    "ActivationSigmoid": "",
    "ActivationSigmoidHard": "alpha 1 float, beta 2 float",
    "ActivationELU": "alpha 1 float",
    "ActivationSoftsign": "",
    "ActivationSoftplus": "",
    "ActivationParametricSoftplus": "alpha 1 WeightParams, beta 2 WeightParams",
    "BorderAmounts": "borderAmounts 10 EdgeSizes*",
    "PaddingConstant": "value 1 float",
    "PaddingReflection": "",
    "PaddingReplication": "",
    "SamplingMode": (
        "samplingMethod 1 STRICT_ALIGN_ENDPOINTS_MODE|ALIGN_ENDPOINTS_MODE|UPSAMPLE_MODE|ROI_ALIGN_MODE"
    ),
    "BoxCoordinatesMode": (
        "boxMode 1 CORNERS_HEIGHT_FIRST|CORNERS_WIDTH_FIRST|CENTER_SIZE_HEIGHT_FIRST|CENTER_SIZE_WIDTH_FIRST"
    ),
    "LSTMParams": (
        "sequenceOutput 10 bool, hasBiasVectors 20 bool, forgetBias 30 bool, hasPeepholeVectors 40 bool, "
        "coupledInputAndForgetGate 50 bool, cellClipThreshold 60 float"
    ),
    "LSTMWeightParams": (
        "inputGateWeightMatrix 1 WeightParams, forgetGateWeightMatrix 2 WeightParams, "
        "blockInputWeightMatrix 3 WeightParams, outputGateWeightMatrix 4 WeightParams, "
        "inputGateRecursionMatrix 20 WeightParams, forgetGateRecursionMatrix 21 WeightParams, "
        "blockInputRecursionMatrix 22 WeightParams, outputGateRecursionMatrix 23 WeightParams, "
        "inputGateBiasVector 40 WeightParams, forgetGateBiasVector 41 WeightParams, "
        "blockInputBiasVector 42 WeightParams, outputGateBiasVector 43 WeightParams, "
        "inputGatePeepholeVector 60 WeightParams, forgetGatePeepholeVector 61 WeightParams, "
        "outputGatePeepholeVector 62 WeightParams"
    ),
    "QuantizationParams": (
        "numberOfBits 1 uint, linearQuantization 101 LinearQuantizationParams, "
        "lookupTableQuantization 102 LookUpTableQuantizationParams"
    ),
    "EdgeSizes": "startEdgeSize 1 uint, endEdgeSize 2 uint",
    "LinearQuantizationParams": "scale 1 float*, bias 2 float*",
    "LookUpTableQuantizationParams": "floatValue 1 float*",
}
