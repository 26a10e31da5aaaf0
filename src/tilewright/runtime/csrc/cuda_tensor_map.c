/* Tensor maps: what the copy engine of sm_90 and later is told of a tensor. */
#include <stdio.h>

#include "cuda.h"

/* The driver's number for a data type, of which only the size matters but to NaN and to reductions; -1: none. */
static int type_of(DLDataType type) {
  if (type.lanes != 1) return -1;
  if (type.bits == 8 || type.bits == 1) return 0;
  if (type.code == kDLFloat) return type.bits == 16 ? 6 : type.bits == 32 ? 7 : type.bits == 64 ? 8 : -1;
  if (type.code == kDLBfloat) return type.bits == 16 ? 9 : -1;
  if (type.code == kDLUInt) return type.bits == 16 ? 1 : type.bits == 32 ? 2 : type.bits == 64 ? 4 : -1;
  if (type.code == kDLInt) return type.bits == 16 ? 1 : type.bits == 32 ? 3 : type.bits == 64 ? 5 : -1;
  return -1;
}

/* The place of a number of bytes among those that can be asked for; -1: none. */
static int choice_of(int32_t bytes, const int32_t choices[4]) {
  for (int i = 0; i < 4; ++i) {
    if (choices[i] == bytes) return i;
  }
  return -1;
}

static int32_t refused(int32_t device_id, const TilewrightTensor* tensor, CUresult result) {
  TwDataTypeName type;
  char doing[380];
  int length = snprintf(doing, sizeof doing, "describe a tensor of %s at %p with swizzle %d to its copy engine:",
                        tw_data_type_name(&type, tensor->dtype), tensor->base, (int)tensor->swizzle);
  for (int32_t i = 0; i < tensor->rank; ++i) {
    length += snprintf(doing + length, sizeof doing - (size_t)length, "%s %llu by %llu bytes in boxes of %u", i > 0 ? "," : "",
                       (unsigned long long)tensor->dims[i], (unsigned long long)(i > 0 ? tensor->strides[i - 1] : tensor->dtype.bits / 8u),
                       (unsigned)tensor->box[i]);
    if (length >= (int)sizeof doing) break;
  }
  return tw_cuda_fail(device_id, result, doing);
}

int32_t tw_cuda_tensor_map(int32_t device_id, const TilewrightTensor* tensor, void* out) {
  static const int32_t interleaves[4] = {0, 16, 32, -1}, swizzles[4] = {0, 32, 64, 128}, promotions[4] = {0, 64, 128, 256};
  if (tw_cuda_enter(device_id) == NULL) return -1;
  if (tw_cu.TensorMapEncodeTiled == NULL) {
    return tw_fail("RuntimeError", "the driver of cuda(%d) has no tensor maps: it is older than CUDA 12", (int)device_id);
  }
  int type = type_of(tensor->dtype), interleave = choice_of(tensor->interleave, interleaves), swizzle = choice_of(tensor->swizzle, swizzles);
  int promotion = choice_of(tensor->promotion, promotions);
  if (type < 0 || interleave < 0 || swizzle < 0 || promotion < 0) {
    TwDataTypeName name;
    return tw_fail("ValueError", "no tensor map of cuda(%d) is of %s with interleave %d, swizzle %d and promotion %d", (int)device_id,
                   tw_data_type_name(&name, tensor->dtype), (int)tensor->interleave, (int)tensor->swizzle, (int)tensor->promotion);
  }
  CUresult result = tw_cu.TensorMapEncodeTiled(out, type, (uint32_t)tensor->rank, tensor->base, tensor->dims, tensor->strides, tensor->box,
                                               tensor->element_strides, interleave, swizzle, promotion, tensor->fills_nan != 0);
  return result == CUDA_SUCCESS ? 0 : refused(device_id, tensor, result);
}
