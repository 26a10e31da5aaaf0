/* The virtual machine's instructions that take more than a line. `code` is the instruction, `registers` those of its
 * frame. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm.h"

#define ARGUMENTS_ON_STACK 32

/* ---- errors ---- */
/* The kernel's own error, with what it computes and who called it. */
static int32_t kernel_failed(const TwVMCall* call, const TwVMKernel* kernel) {
  tw_error_require();
  if (tilewright_error_payload() != 0) return -1; /* an exception of the host stays as it is */
  const char* caller = call->function->name;
  const char* reason = tilewright_error_message();
  size_t size = strlen(reason) + strlen(kernel->label) + strlen(kernel->name) + strlen(caller) + 64;
  char* message = malloc(size);
  if (message == NULL) return -1;
  size_t said = strlen(kernel->label); /* a condition of the operator begins with its name */
  bool is_named = strncmp(reason, kernel->label, said) == 0 && reason[said] == ':';
  snprintf(message, size, "%s%s%s (kernel %s, called by @%s)", is_named ? "" : kernel->label, is_named ? "" : ": ", reason, kernel->name,
           caller);
  tilewright_set_error(tilewright_error_kind(), message);
  free(message);
  return -1;
}

static int32_t wrong_kind(const TwVMCall* call, const char* expected, const TVMFFIAny* found) {
  return tw_fail("TypeError", "@%s: %s is needed, a value of type index %d is there", call->function->name, expected,
                 (int)found->type_index);
}

/* ---- values ---- */
static bool is_integer(DLDataType dtype) { return (dtype.code == kDLInt || dtype.code == kDLUInt) && dtype.lanes == 1; }

/* The bytes of a compact tensor that is no larger than `room`: where they are if the host can read them there, else copied
 * to `room`. NULL with an error. */
static const char* bytes_on_host(const DLTensor* tensor, uint64_t num_bytes, int64_t* room) {
  if (tw_host_reads(tensor->device)) return tw_data_of(tensor);
  int32_t status =
      tilewright_device_copy(tensor->data, tensor->byte_offset, tensor->device, room, 0, TW_HOST, num_bytes, NULL);
  return status == 0 ? (const char*)room : NULL;
}

/* Element `index` of integers that lie one behind the other. */
static int64_t integer_at(const char* data, DLDataType dtype, int64_t index) {
  bool is_signed = dtype.code == kDLInt;
  int64_t wide = 0;
  int32_t middle = 0;
  int16_t narrow = 0;
  switch (dtype.bits) {
    case 64:
      memcpy(&wide, data + 8 * index, 8);
      return wide;
    case 32:
      memcpy(&middle, data + 4 * index, 4);
      return is_signed ? middle : (int64_t)(uint32_t)middle;
    case 16:
      memcpy(&narrow, data + 2 * index, 2);
      return is_signed ? narrow : (int64_t)(uint16_t)narrow;
    default:
      return is_signed ? (int8_t)data[index] : (int64_t)(uint8_t)data[index];
  }
}

/* An integer, or the only element of a tensor of integers. */
static int32_t scalar_of(const TwVMCall* call, const TVMFFIAny* value, int64_t* out) {
  if (value->type_index == TILEWRIGHT_INT) {
    *out = value->v_int64;
    return 0;
  }
  const DLTensor* tensor = tw_tensor_of(value);
  uint64_t num_bytes;
  if (tensor == NULL || !tw_is_compact(tensor) || !is_integer(tensor->dtype) || tensor->dtype.bits == 4 ||
      !tw_tensor_bytes(tensor->shape, tensor->ndim, (DLDataType){kDLUInt, 8, 1}, &num_bytes) || num_bytes != 1) {
    return wrong_kind(call, "one integer or bool", value);
  }
  int64_t room;
  const char* data = bytes_on_host(tensor, ((uint64_t)tensor->dtype.bits + 7) / 8, &room);
  if (data == NULL) return -1;
  *out = integer_at(data, tensor->dtype, 0);
  return 0;
}

int32_t tw_vm_test(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers, bool* holds) {
  int64_t test, target;
  if (scalar_of(call, &registers[code[1]], &test) != 0 || scalar_of(call, &registers[code[2]], &target) != 0) return -1;
  *holds = test == target;
  return 0;
}

/* A vector of integers as a shape. */
static int32_t shape_of(const TwVMCall* call, const TVMFFIAny* value, int64_t* shape, int32_t* ndim) {
  const DLTensor* tensor = tw_tensor_of(value);
  if (tensor == NULL || tensor->ndim != 1 || !tw_is_compact(tensor) || !is_integer(tensor->dtype) || tensor->dtype.bits < 32 ||
      tensor->shape[0] > TW_MOST_DIMENSIONS) {
    return wrong_kind(call, "a shape, as a vector of integers,", value);
  }
  int64_t room[TW_MOST_DIMENSIONS];
  const char* data = bytes_on_host(tensor, (uint64_t)tensor->shape[0] * (tensor->dtype.bits / 8), room);
  if (data == NULL) return -1;
  *ndim = (int32_t)tensor->shape[0];
  for (int32_t i = 0; i < *ndim; ++i) {
    shape[i] = integer_at(data, tensor->dtype, i);
    if (shape[i] < 0) return tw_fail("ValueError", "dimension %d of a tensor would be negative: %lld", (int)i, (long long)shape[i]);
  }
  return 0;
}

/* ---- instructions that take some lines ---- */
int32_t tw_vm_invoke_packed(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  const TwVMKernel* kernel = &call->vm->kernels[code[1]];
  int64_t count = code[3];
  TVMFFIAny few[ARGUMENTS_ON_STACK];
  TVMFFIAny* args = count <= ARGUMENTS_ON_STACK ? few : malloc((size_t)count * sizeof *args);
  if (args == NULL) return tw_fail("MemoryError", "no memory for the arguments of a kernel");
  few[0] = (TVMFFIAny){0}; /* a kernel may have no arguments at all */
  int32_t status = 0;
  for (int64_t i = 0; i < count && status == 0; ++i) {
    DLTensor* tensor = tw_tensor_of(&registers[code[4 + i]]);
    if (tensor == NULL) status = wrong_kind(call, "a tensor", &registers[code[4 + i]]);
    args[i] = (TVMFFIAny){.type_index = TILEWRIGHT_DLTENSOR, .v_ptr = tensor};
  }
  TVMFFIAny result = {0};
  if (status == 0 && tilewright_function_call(kernel->function, args, (int32_t)count, &result) != 0) {
    status = kernel_failed(call, kernel);
  }
  tilewright_any_release(&result);
  if (args != few) free(args);
  return status;
}

/* A function of the host, or a closure of another machine. */
int32_t tw_vm_invoke_foreign(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  const TVMFFIAny callee = registers[code[2]];
  if (callee.type_index != TILEWRIGHT_FUNCTION) return wrong_kind(call, "a function", &callee);
  int64_t count = code[3];
  TVMFFIAny* args = malloc((size_t)(count + 1) * sizeof *args);
  if (args == NULL) return tw_fail("MemoryError", "no memory for the arguments of a function");
  for (int64_t i = 0; i < count; ++i) args[i] = registers[code[4 + i]];
  TVMFFIAny result = {0};
  int32_t status = tilewright_function_call(callee.v_obj, args, (int32_t)count, &result);
  free(args);
  if (status == 0) {
    tw_put(&registers[code[1]], result);
  } else {
    tilewright_any_release(&result);
  }
  return status;
}

int32_t tw_vm_make_data(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  (void)call;
  TwData* data = tw_data_create(code[2], code[3]);
  if (data == NULL) return -1;
  for (int64_t i = 0; i < code[3]; ++i) data->fields[i] = tw_copy_of(&registers[code[4 + i]]);
  tw_put_object(&registers[code[1]], &data->header);
  return 0;
}

int32_t tw_vm_make_closure(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  TwClosure* closure = tw_closure_create(call->vm, (int32_t)code[2], (int32_t)code[3]);
  if (closure == NULL) return -1;
  for (int64_t i = 0; i < code[3]; ++i) closure->captured[i] = tw_copy_of(&registers[code[4 + i]]);
  tw_put_object(&registers[code[1]], &closure->header);
  return 0;
}

int32_t tw_vm_get_field(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  const TVMFFIAny* value = &registers[code[2]];
  if (value->type_index != TILEWRIGHT_DATA) return wrong_kind(call, "a tuple or a value of a data type", value);
  TVMFFIAny field;
  if (tilewright_data_field(value->v_obj, code[3], &field) != 0) return -1;
  tw_put(&registers[code[1]], field);
  return 0;
}

int32_t tw_vm_get_tag(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  const TVMFFIAny* value = &registers[code[2]];
  if (value->type_index != TILEWRIGHT_DATA) return wrong_kind(call, "a value of a data type", value);
  tw_put_integer(&registers[code[1]], tilewright_data_tag(value->v_obj));
  return 0;
}

static DLDataType dtype_of(int64_t number) { return (DLDataType){(uint8_t)number, (uint8_t)(number >> 8), (uint16_t)(number >> 16)}; }

int32_t tw_vm_make_storage(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  uint64_t num_bytes = (uint64_t)code[3];
  if (code[2] >= 0) {
    int64_t shape[TW_MOST_DIMENSIONS];
    int32_t ndim;
    if (shape_of(call, &registers[code[2]], shape, &ndim) != 0) return -1;
    if (!tw_tensor_bytes(shape, ndim, dtype_of(code[4]), &num_bytes)) return tw_fail("MemoryError", "no memory for a tensor of this shape");
  }
  int32_t place = code[0] == TW_VM_ALLOC_STORAGE_ON ? tw_vm_place(call->vm, code[5], code[6]) : 0;
  TilewrightObject* storage;
  if (tw_pool_storage(call->vm->pool, place, num_bytes, &storage) != 0) return -1;
  tw_put_object(&registers[code[1]], storage);
  return 0;
}

int32_t tw_vm_make_tensor(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  const TVMFFIAny* storage = &registers[code[2]];
  if (storage->type_index != TILEWRIGHT_STORAGE) return wrong_kind(call, "a storage", storage);
  int64_t computed[TW_MOST_DIMENSIONS];
  const int64_t* shape = code + 6;
  int32_t ndim = (int32_t)code[5];
  if (code[0] == TW_VM_ALLOC_TENSOR_REG) {
    if (shape_of(call, &registers[code[5]], computed, &ndim) != 0) return -1;
    shape = computed;
  }
  TilewrightObject* tensor;
  if (tw_storage_tensor(storage->v_obj, (uint64_t)code[3], shape, ndim, dtype_of(code[4]), &tensor) != 0) return -1;
  tw_put_object(&registers[code[1]], tensor);
  return 0;
}

int32_t tw_vm_make_shape(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  const DLTensor* tensor = tw_tensor_of(&registers[code[2]]);
  if (tensor == NULL) return wrong_kind(call, "a tensor", &registers[code[2]]);
  int64_t length = tensor->ndim;
  TilewrightObject* vector;
  if (tw_pool_tensor(call->vm->pool, 0, &length, 1, (DLDataType){kDLInt, 64, 1}, &vector) != 0) return -1;
  if (length > 0) memcpy(tilewright_tensor_dltensor(vector)->data, tensor->shape, 8 * (size_t)length);
  tw_put_object(&registers[code[1]], vector);
  return 0;
}

static void release_object(void* object) { tilewright_object_release(object); }

int32_t tw_vm_reshape(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  const TVMFFIAny* value = &registers[code[2]];
  const DLTensor* tensor = tw_tensor_of(value);
  int64_t shape[TW_MOST_DIMENSIONS];
  int32_t ndim;
  uint64_t before, after;
  if (tensor == NULL || !tw_is_compact(tensor)) return wrong_kind(call, "a compact tensor", value);
  if (shape_of(call, &registers[code[3]], shape, &ndim) != 0) return -1;
  if (!tw_tensor_bytes(tensor->shape, tensor->ndim, tensor->dtype, &before) || !tw_tensor_bytes(shape, ndim, tensor->dtype, &after) ||
      before != after) {
    return tw_fail("ValueError", "reshape: the new shape has another number of elements");
  }
  DLTensor view = {tensor->data, tensor->device, ndim, tensor->dtype, shape, NULL, tensor->byte_offset};
  TilewrightObject* made;
  tilewright_object_retain(value->v_obj);
  if (tilewright_tensor_wrap(&view, value->v_obj, release_object, &made) != 0) {
    tilewright_object_release(value->v_obj);
    return -1;
  }
  tw_put_object(&registers[code[1]], made);
  return 0;
}

int32_t tw_copy_tensor(TwPool* pool, int32_t place, const DLTensor* tensor, TilewrightObject** out) {
  if (tensor->ndim > TW_MOST_DIMENSIONS) return tw_fail("ValueError", "a tensor cannot have %d dimensions", (int)tensor->ndim);
  if (tw_pool_tensor(pool, place, tensor->shape, tensor->ndim, tensor->dtype, out) != 0) return -1;
  if (tilewright_tensor_copy(tensor, tilewright_tensor_dltensor(*out)) == 0) return 0;
  tilewright_object_release(*out);
  return -1;
}

int32_t tw_vm_device_copy(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  const DLTensor* tensor = tw_tensor_of(&registers[code[2]]);
  if (tensor == NULL) return wrong_kind(call, "a tensor", &registers[code[2]]);
  TilewrightObject* copy; /* from wherever the tensor is: its own device says so better than the instruction */
  if (tw_copy_tensor(call->vm->pool, tw_vm_place(call->vm, code[5], code[6]), tensor, &copy) != 0) return -1;
  tw_put_object(&registers[code[1]], copy);
  return 0;
}

int32_t tw_vm_load_placed(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  TilewrightObject* constant = call->vm->placed[tw_vm_place(call->vm, code[3], code[4])][code[2]];
  tilewright_object_retain(constant);
  tw_put_object(&registers[code[1]], constant);
  return 0;
}

int32_t tw_vm_make_reference(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  (void)call;
  TilewrightObject* reference;
  if (tilewright_reference_create(&registers[code[2]], &reference) != 0) return -1;
  tw_put_object(&registers[code[1]], reference);
  return 0;
}

static TwReference* reference_of(const TwVMCall* call, const TVMFFIAny* value) {
  if (value->type_index == TILEWRIGHT_REFERENCE) return (TwReference*)value->v_obj;
  wrong_kind(call, "a reference", value);
  return NULL;
}

int32_t tw_vm_read_reference(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  const TwReference* reference = reference_of(call, &registers[code[2]]);
  if (reference == NULL) return -1;
  tw_put(&registers[code[1]], tw_copy_of(&reference->value));
  return 0;
}

int32_t tw_vm_write_reference(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers) {
  TwReference* reference = reference_of(call, &registers[code[1]]);
  if (reference == NULL) return -1;
  tw_put(&reference->value, tw_copy_of(&registers[code[2]]));
  return 0;
}
