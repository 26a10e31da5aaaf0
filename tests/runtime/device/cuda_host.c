/* Host code around the kernels of cuda_kernels.py, with the calling convention and the symbols that a code generator uses. */
#include <stdint.h>

#include "tilewright.h"

#define EXPORTED __attribute__((visibility("default")))

__attribute__((visibility("default"), weak)) const char __tilewright_functions[] = "sum,sum_twice";
EXPORTED void* __tilewright_packed_add;

static int64_t size_of(const DLTensor* tensor) {
  int64_t size = 1;
  for (int32_t i = 0; i < tensor->ndim; ++i) size *= tensor->shape[i];
  return size;
}

static const DLTensor* tensor_of(const TVMFFIAny* value) {
  return value->type_index == TILEWRIGHT_TENSOR ? (const DLTensor*)((char*)value->v_obj + 24) : value->v_ptr;
}

static TVMFFIAny pointer(const void* address) { return (TVMFFIAny){.type_index = TILEWRIGHT_POINTER, .v_ptr = (void*)address}; }
static TVMFFIAny data_of(const TVMFFIAny* value) { return pointer((char*)tensor_of(value)->data + tensor_of(value)->byte_offset); }

static int32_t launch(TVMFFIAny a, TVMFFIAny b, TVMFFIAny c, int64_t size) {
  static void* device_slot;
  TVMFFIAny device[2] = {{.type_index = TILEWRIGHT_INT, .v_int64 = kDLCUDA}, {.type_index = TILEWRIGHT_INT, .v_int64 = 0}};
  TVMFFIAny args[5] = {a, b, c, {.type_index = TILEWRIGHT_INT, .v_int64 = size}, {.type_index = TILEWRIGHT_INT, .v_int64 = 1}};
  TVMFFIAny result = {0};
  if (tilewright_call_packed("__tvm_set_device", &device_slot, device, 2, &result) != 0) return -1;
  return tilewright_call_packed("add", &__tilewright_packed_add, args, 5, &result);
}

/* c = a + b */
EXPORTED int32_t __tvm_ffi_sum(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)num_args, (void)result;
  return launch(data_of(&args[0]), data_of(&args[1]), data_of(&args[2]), size_of(tensor_of(&args[2])));
}

/* c = a + b + b, with memory for the sum in between */
EXPORTED int32_t __tvm_ffi_sum_twice(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)num_args, (void)result;
  int64_t size = size_of(tensor_of(&args[2]));
  void* sum = tilewright_workspace_alloc(kDLCUDA, 0, (uint64_t)size * 4);
  if (sum == NULL) return -1;
  int32_t status = launch(data_of(&args[0]), data_of(&args[1]), pointer(sum), size);
  if (status == 0) status = launch(pointer(sum), data_of(&args[1]), data_of(&args[2]), size);
  return tilewright_workspace_free(kDLCUDA, 0, sum) | status;
}
