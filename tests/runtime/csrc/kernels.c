/* Compiled functions written by hand, with the calling convention and the symbols that a code generator uses. */
#include <stdint.h>

#include "tilewright.h"

#define EXPORTED __attribute__((visibility("default")))
#define WEAK __attribute__((visibility("default"), weak))

WEAK const char __tilewright_functions[] = "add_one,fail,fill,call_back,sum_workspace,describe,give_back";
#ifdef FEATURES
WEAK const char __tilewright_features[] = FEATURES;
#endif

static const DLTensor* tensor_of(const TVMFFIAny* value) {
  if (value->type_index == TILEWRIGHT_DLTENSOR) return value->v_ptr;
  if (value->type_index == TILEWRIGHT_TENSOR) return (const DLTensor*)((char*)value->v_obj + 24);
  return NULL;
}

static float* floats(const DLTensor* tensor) { return (float*)((char*)tensor->data + tensor->byte_offset); }

/* b[i] = a[i] + 1 */
EXPORTED int32_t __tvm_ffi_add_one(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)result;
  const DLTensor* a = num_args == 2 ? tensor_of(&args[0]) : NULL;
  const DLTensor* b = num_args == 2 ? tensor_of(&args[1]) : NULL;
  if (a == NULL || b == NULL) {
    tilewright_set_error("TypeError", "add_one takes two tensors");
    return -1;
  }
  if (a->ndim != 1 || b->ndim != 1 || a->shape[0] != b->shape[0] || a->dtype.bits != 32 || a->dtype.code != kDLFloat) {
    tilewright_set_error("ValueError", "add_one takes float32 vectors of one length");
    return -1;
  }
  for (int64_t i = 0; i < a->shape[0]; ++i) floats(b)[i * b->strides[0]] = floats(a)[i * a->strides[0]] + 1.0f;
  return 0;
}

/* Fails with the kind given. */
EXPORTED int32_t __tvm_ffi_fail(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)num_args;
  (void)result;
  tilewright_set_error(args[0].v_c_str, "asked to fail");
  return -1;
}

static int32_t fill_part(int32_t task, int32_t num_tasks, void* closure) {
  const DLTensor* tensor = closure;
  int64_t size = tensor->shape[0];
  for (int64_t i = size * task / num_tasks; i < size * (task + 1) / num_tasks; ++i) floats(tensor)[i] = (float)i;
  return 0;
}

/* a[i] = i, in parallel */
EXPORTED int32_t __tvm_ffi_fill(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)num_args;
  (void)result;
  return tilewright_parallel_launch(fill_part, (void*)tensor_of(&args[0]), 0);
}

static int32_t call_from_task(int32_t task, int32_t num_tasks, void* closure) {
  (void)num_tasks;
  static void* cache;
  TVMFFIAny args[2] = {{.type_index = TILEWRIGHT_INT, .v_int64 = task}, {.type_index = TILEWRIGHT_DLTENSOR, .v_ptr = closure}};
  TVMFFIAny result = {0};
  int32_t status = tilewright_call_packed("test.runtime.callback", &cache, args, 2, &result);
  tilewright_any_release(&result);
  return status;
}

/* Calls test.runtime.callback(task, tensor) from four tasks. */
EXPORTED int32_t __tvm_ffi_call_back(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)num_args;
  (void)result;
  return tilewright_parallel_launch(call_from_task, (void*)tensor_of(&args[0]), 4);
}

/* The sum of 0 .. n-1, through scratch memory. */
EXPORTED int32_t __tvm_ffi_sum_workspace(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)num_args;
  int64_t size = args[0].v_int64, sum = 0;
  int64_t* scratch = tilewright_workspace_alloc(kDLCPU, 0, (uint64_t)size * 8);
  if (scratch == NULL) return -1;
  for (int64_t i = 0; i < size; ++i) scratch[i] = i;
  for (int64_t i = 0; i < size; ++i) sum += scratch[i];
  *result = (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = sum};
  return tilewright_workspace_free(kDLCPU, 0, scratch);
}

/* The type index of the argument. */
EXPORTED int32_t __tvm_ffi_describe(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)num_args;
  *result = (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = args[0].type_index};
  return 0;
}

/* The argument itself, for values that are no objects. */
EXPORTED int32_t __tvm_ffi_give_back(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)num_args;
  *result = args[0];
  return 0;
}
