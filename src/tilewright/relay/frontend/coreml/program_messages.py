"""The messages of ML programs: the fields that are read, by number."""

from __future__ import annotations

from typing import Final

PROGRAM: Final[dict[str, str]] = {
    "MILProgram": "version 1 int, functions 2 MILFunction%",
    "MILFunction": "inputs 1 MILNamedValueType*, opset 2 string, block_specializations 3 MILBlock%",
    "MILNamedValueType": "name 1 string, type 2 MILValueType",
    "MILBlock": "inputs 1 MILNamedValueType*, outputs 2 string*, operations 3 MILOperation*",
    "MILValueType": (
        "tensorType 1 MILTensorType, listType 2 MILListType, tupleType 3 MILTupleType, "
        "dictionaryType 4 MILDictionaryType, stateType 5 MILStateType"
    ),
    "MILOperation": (
        "type 1 string, inputs 2 MILArgument%, outputs 3 MILNamedValueType*, blocks 4 MILBlock*, "
        "attributes 5 MILValue%"
    ),
    "MILTensorType": (
        "dataType 1 UNUSED_TYPE=0|BOOL=1|STRING=2|FLOAT8E4M3FN=40|FLOAT8E5M2=41|FLOAT16=10|FLOAT32=11|"
        "FLOAT64=12|BFLOAT16=13|INT8=21|INT16=22|INT32=23|INT64=24|INT4=25|UINT8=31|UINT16=32|UINT32=33|"
        "UINT64=34|UINT4=35|UINT2=36|UINT1=37|UINT6=38|UINT3=39, rank 2 int, dimensions 3 MILDimension*"
    ),
    "MILListType": "type 1 MILValueType, length 2 MILDimension",
    "MILTupleType": "types 1 MILValueType*",
    "MILDictionaryType": "keyType 1 MILValueType, valueType 2 MILValueType",
    "MILStateType": "wrappedType 1 MILValueType",
    "MILArgument": "arguments 1 MILArgument_Binding*",
    "MILValue": (
        "docString 1 string, type 2 MILValueType, immediateValue 3 MILValue_ImmediateValue, "
        "blobFileValue 5 MILValue_BlobFileValue"
    ),
    "MILDimension": "constant 1 MILDimension_ConstantDimension, unknown 2 MILDimension_UnknownDimension",
    "MILArgument_Binding": "name 1 string, value 2 MILValue",
    "MILValue_ImmediateValue": (
        "tensor 1 MILTensorValue, tuple 2 MILTupleValue, list 3 MILListValue, dictionary 4 MILDictionaryValue"
    ),
    "MILValue_BlobFileValue": "fileName 1 string, offset 2 uint",
    "MILDimension_ConstantDimension": "size 1 uint",
    "MILDimension_UnknownDimension": "variadic 1 bool",
    "MILTensorValue": (
        "floats 1 MILTensorValue_RepeatedFloats, ints 2 MILTensorValue_RepeatedInts, "
        "bools 3 MILTensorValue_RepeatedBools, strings 4 MILTensorValue_RepeatedStrings, "
        "longInts 5 MILTensorValue_RepeatedLongInts, doubles 6 MILTensorValue_RepeatedDoubles, "
        "bytes 7 MILTensorValue_RepeatedBytes"
    ),
    "MILTupleValue": "values 1 MILValue*",
    "MILListValue": "values 1 MILValue*",
    "MILDictionaryValue": "values 1 MILDictionaryValue_KeyValuePair*",
    "MILTensorValue_RepeatedFloats": "values 1 float*",
    "MILTensorValue_RepeatedInts": "values 1 int*",
    "MILTensorValue_RepeatedBools": "values 1 bool*",
    "MILTensorValue_RepeatedStrings": "values 1 string*",
    "MILTensorValue_RepeatedLongInts": "values 1 int*",
    "MILTensorValue_RepeatedDoubles": "values 1 double*",
    "MILTensorValue_RepeatedBytes": "values 1 bytes",
    "MILDictionaryValue_KeyValuePair": "key 1 MILValue, value 2 MILValue",
}
