/* Arguments of the functions that the runtime offers to compiled code: tensors in host memory, and numbers. */
#include "host_tensors.h"

#include <string.h>

const DLTensor* tw_host_tensor(const char* function, const TVMFFIAny* args, int32_t num_args, int32_t position) {
  if (position >= num_args) {
    tw_fail("TypeError", "%s takes a tensor as argument %d, and has %d arguments", function, (int)position, (int)num_args);
    return NULL;
  }
  const TVMFFIAny* value = &args[position];
  const DLTensor* tensor = NULL;
  if (value->type_index == TILEWRIGHT_DLTENSOR) tensor = value->v_ptr;
  if (value->type_index == TILEWRIGHT_TENSOR) tensor = tilewright_tensor_dltensor(value->v_obj);
  if (tensor == NULL) {
    tw_fail("TypeError", "argument %d of %s is %s, not a tensor", (int)position, function, tw_argument_kind(value->type_index));
    return NULL;
  }
  if (!tw_host_reads(tensor->device)) {
    TwDeviceKind kind;
    tw_fail("ValueError", "argument %d of %s is on %s; it works on host memory", (int)position, function,
            tw_device_kind(&kind, tensor->device.device_type));
    return NULL;
  }
  if (!tw_is_compact(tensor)) {
    tw_fail("ValueError", "argument %d of %s has strides; it takes compact tensors", (int)position, function);
    return NULL;
  }
  return tensor;
}

int32_t tw_number(const char* function, const TVMFFIAny* args, int32_t num_args, int32_t position, double* out) {
  int32_t kind = position < num_args ? args[position].type_index : TILEWRIGHT_NONE;
  if (kind == TILEWRIGHT_INT || kind == TILEWRIGHT_BOOL) {
    *out = (double)args[position].v_int64;
  } else if (kind == TILEWRIGHT_FLOAT) {
    *out = args[position].v_float64;
  } else {
    return tw_fail("TypeError", "argument %d of %s is %s, not a number", (int)position, function, tw_argument_kind(kind));
  }
  return 0;
}

int64_t tw_num_elements(const DLTensor* tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor->ndim; ++i) count *= tensor->shape[i];
  return count;
}

/* The nearest float16, ties to even; what is too large is infinity. */
static uint16_t half_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
  if (magnitude < 0x38800000u) {
    /* Subnormal: adding 0.5 leaves the rounded value in the low bits, in units of 2**-24. */
    float shifted;
    memcpy(&shifted, &magnitude, sizeof shifted);
    shifted += 0.5f;
    memcpy(&magnitude, &shifted, sizeof magnitude);
    return (uint16_t)(sign | (magnitude - 0x3f000000u));
  }
  return (uint16_t)(sign | ((magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13));
}

bool tw_store(const DLTensor* tensor, int64_t index, double value) {
  void* data = tw_elements(tensor);
  if (tensor->dtype.lanes != 1) return false;
  if (tensor->dtype.code == kDLFloat) {
    if (tensor->dtype.bits == 64) ((double*)data)[index] = value;
    else if (tensor->dtype.bits == 32) ((float*)data)[index] = (float)value;
    else if (tensor->dtype.bits == 16) ((uint16_t*)data)[index] = half_of((float)value);
    else return false;
    return true;
  }
  if (tensor->dtype.code != kDLInt && tensor->dtype.code != kDLUInt && tensor->dtype.code != kDLBool) return false;
  /* A number below zero in an unsigned type is what its signed bits are. */
  int64_t whole = value >= 9.2e18 ? (int64_t)(uint64_t)value : (int64_t)value;
  if (tensor->dtype.bits <= 8) ((int8_t*)data)[index] = (int8_t)whole;
  else if (tensor->dtype.bits == 16) ((int16_t*)data)[index] = (int16_t)whole;
  else if (tensor->dtype.bits == 32) ((int32_t*)data)[index] = (int32_t)whole;
  else if (tensor->dtype.bits == 64) ((int64_t*)data)[index] = whole;
  else return false;
  return true;
}
