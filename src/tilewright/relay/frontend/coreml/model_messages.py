"""The messages of models and of what goes in and out: the fields that are read, by number."""

from __future__ import annotations

from typing import Final

MODEL: Final[dict[str, str]] = {
    "Model": (
        "specificationVersion 1 int, description 2 ModelDescription, "
        "neuralNetworkRegressor 303 NeuralNetworkRegressor, "
        "neuralNetworkClassifier 403 NeuralNetworkClassifier, neuralNetwork 500 NeuralNetwork, "
        "mlProgram 502 MILProgram"
    ),
    "ModelDescription": (
        "input 1 FeatureDescription*, output 10 FeatureDescription*, predictedFeatureName 11 string, "
        "predictedProbabilitiesName 12 string, state 13 FeatureDescription*, "
        "defaultFunctionName 21 string, metadata 100 Metadata"
    ),
    "FeatureDescription": "name 1 string, shortDescription 2 string, type 3 FeatureType",
    "Metadata": "shortDescription 1 string, versionString 2 string, author 3 string, license 4 string",
    "FeatureType": (
        "imageType 4 ImageFeatureType, multiArrayType 5 ArrayFeatureType, stateType 8 StateFeatureType, "
        "isOptional 1000 bool"
    ),
    "ImageFeatureType": (
        "width 1 int, height 2 int, "
        "colorSpace 3 INVALID_COLOR_SPACE=0|GRAYSCALE=10|RGB=20|BGR=30|GRAYSCALE_FLOAT16=40, "
        "enumeratedSizes 21 EnumeratedImageSizes, imageSizeRange 31 ImageSizeRange"
    ),
    "ArrayFeatureType": (
        "shape 1 int*, "
        "dataType 2 INVALID_ARRAY_DATA_TYPE=0|FLOAT32=65568|DOUBLE=65600|INT32=131104|INT8=131080|"
        "FLOAT16=65552, enumeratedShapes 21 EnumeratedShapes, shapeRange 31 ShapeRange, "
        "intDefaultValue 41 int, floatDefaultValue 51 float, doubleDefaultValue 61 double"
    ),
    "StateFeatureType": "arrayType 1 ArrayFeatureType",
    "EnumeratedImageSizes": "sizes 1 ImageSize*",
    "ImageSizeRange": "widthRange 1 SizeRange, heightRange 2 SizeRange",
    "EnumeratedShapes": "shapes 1 Shape*",
    "ShapeRange": "sizeRanges 1 SizeRange*",
    "ImageSize": "width 1 uint, height 2 uint",
    "SizeRange": "lowerBound 1 uint, upperBound 2 int",
    "Shape": "shape 1 int*",
}
