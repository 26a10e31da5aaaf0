/* Running programs of the virtual machine: one loop over instructions. The frames of calls are on a stack of their own, so
 * that deep recursion costs heap alone; a call whose result is returned at once takes the place of its caller. */
#include "vm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Registers of all frames together: 1 GiB. */
#define MOST_VALUES ((int64_t)1 << 26)
#define ARGUMENTS_ON_STACK 32

typedef struct {
  int32_t function;
  int64_t at;   /* the instruction to go on with */
  int64_t base; /* the first register */
} Frame;

typedef struct {
  TilewrightVM* vm;
  TVMFFIAny* values; /* the registers of all frames; those from `num_values` on are None */
  int64_t num_values, capacity;
  Frame* frames;
  int64_t num_frames, frame_capacity;
} Machine;

/* ---- errors ---- */
static const char* caller_of(const Machine* machine) {
  return machine->vm->functions[machine->frames[machine->num_frames - 1].function].name;
}

/* The kernel's own error, with what it computes and who called it. */
static int32_t kernel_failed(const Machine* machine, const TwVMKernel* kernel) {
  tw_error_require();
  if (tilewright_error_payload() != 0) return -1; /* an exception of the host stays as it is */
  const char* caller = caller_of(machine);
  const char* reason = tilewright_error_message();
  size_t size = strlen(reason) + strlen(kernel->label) + strlen(kernel->name) + strlen(caller) + 64;
  char* message = malloc(size);
  if (message == NULL) return -1;
  snprintf(message, size, "%s: %s (kernel %s, called by @%s)", kernel->label, reason, kernel->name, caller);
  tilewright_set_error(tilewright_error_kind(), message);
  free(message);
  return -1;
}

static int32_t wrong_kind(const Machine* machine, const char* expected, const TVMFFIAny* found) {
  return tw_fail("TypeError", "@%s: %s is needed, a value of type index %d is there", caller_of(machine), expected,
                 (int)found->type_index);
}

/* ---- values ---- */
static void put(TVMFFIAny* slot, TVMFFIAny value) {
  TVMFFIAny before = *slot;
  *slot = value;
  if (before.type_index >= TILEWRIGHT_FIRST_OBJECT) tilewright_object_release(before.v_obj);
}

static void put_object(TVMFFIAny* slot, TilewrightObject* object) {
  put(slot, (TVMFFIAny){.type_index = object->type_index, .v_obj = object});
}

static void put_integer(TVMFFIAny* slot, int64_t number) { put(slot, (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = number}); }

static TVMFFIAny copy_of(const TVMFFIAny* value) {
  tw_retain_any(value);
  return *value;
}

static DLTensor* tensor_of(const TVMFFIAny* value) {
  return value->type_index == TILEWRIGHT_TENSOR ? tilewright_tensor_dltensor(value->v_obj) : NULL;
}

static char* data_of(const DLTensor* tensor) { return (char*)tensor->data + tensor->byte_offset; }

/* True if the elements lie one behind the other, where the host can read them. */
static bool is_compact(const DLTensor* tensor) {
  int64_t expected = 1;
  for (int32_t i = tensor->ndim - 1; tensor->strides != NULL && i >= 0; --i) {
    if (tensor->shape[i] != 1 && tensor->strides[i] != expected) return false;
    expected *= tensor->shape[i];
  }
  return tensor->device.device_type == kDLCPU;
}

static bool is_integer(DLDataType dtype) { return (dtype.code == kDLInt || dtype.code == kDLUInt) && dtype.lanes == 1; }

/* Element `index` of a compact tensor of integers. */
static int64_t integer_at(const DLTensor* tensor, int64_t index) {
  const char* data = data_of(tensor);
  bool is_signed = tensor->dtype.code == kDLInt;
  int64_t wide = 0;
  int32_t middle = 0;
  int16_t narrow = 0;
  switch (tensor->dtype.bits) {
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
static int32_t scalar_of(const Machine* machine, const TVMFFIAny* value, int64_t* out) {
  if (value->type_index == TILEWRIGHT_INT) {
    *out = value->v_int64;
    return 0;
  }
  const DLTensor* tensor = tensor_of(value);
  uint64_t num_bytes;
  if (tensor == NULL || !is_compact(tensor) || !is_integer(tensor->dtype) || tensor->dtype.bits == 4 ||
      !tw_tensor_bytes(tensor->shape, tensor->ndim, (DLDataType){kDLUInt, 8, 1}, &num_bytes) || num_bytes != 1) {
    return wrong_kind(machine, "one integer or bool", value);
  }
  *out = integer_at(tensor, 0);
  return 0;
}

/* A vector of integers as a shape. */
static int32_t shape_of(const Machine* machine, const TVMFFIAny* value, int64_t* shape, int32_t* ndim) {
  const DLTensor* tensor = tensor_of(value);
  if (tensor == NULL || tensor->ndim != 1 || !is_compact(tensor) || !is_integer(tensor->dtype) || tensor->dtype.bits < 32 ||
      tensor->shape[0] > TW_MOST_DIMENSIONS) {
    return wrong_kind(machine, "a shape, as a vector of integers,", value);
  }
  *ndim = (int32_t)tensor->shape[0];
  for (int32_t i = 0; i < *ndim; ++i) {
    shape[i] = integer_at(tensor, i);
    if (shape[i] < 0) return tw_fail("ValueError", "dimension %d of a tensor would be negative: %lld", (int)i, (long long)shape[i]);
  }
  return 0;
}

/* ---- the stacks ---- */
static int32_t reserve_values(Machine* machine, int64_t count) {
  int64_t needed = machine->num_values + count;
  if (needed <= machine->capacity) return 0;
  if (needed > MOST_VALUES) return tw_fail("RuntimeError", "recursion takes more registers than %lld", (long long)MOST_VALUES);
  int64_t capacity = machine->capacity * 2 > needed ? machine->capacity * 2 : needed + 64;
  TVMFFIAny* values = realloc(machine->values, (size_t)capacity * sizeof *values);
  if (values == NULL) return tw_fail("MemoryError", "no memory for the registers of a call");
  memset(values + machine->capacity, 0, (size_t)(capacity - machine->capacity) * sizeof *values);
  machine->values = values;
  machine->capacity = capacity;
  return 0;
}

/* Ends all registers from `base` on. */
static void drop_values(Machine* machine, int64_t base) {
  for (int64_t i = base; i < machine->num_values; ++i) {
    if (machine->values[i].type_index != TILEWRIGHT_NONE) put(&machine->values[i], (TVMFFIAny){0});
  }
  machine->num_values = base;
}

/* A frame for a function whose arguments stand above the registers in use. */
static int32_t push_frame(Machine* machine, int32_t function) {
  if (machine->num_frames >= machine->vm->most_frames) {
    return tw_fail("RuntimeError", "calls are nested more than %lld deep: @%s does not end, or recursion has to be written as a loop",
                   (long long)machine->vm->most_frames, machine->vm->functions[function].name);
  }
  if (machine->num_frames == machine->frame_capacity) {
    int64_t capacity = machine->frame_capacity == 0 ? 16 : machine->frame_capacity * 2;
    Frame* frames = realloc(machine->frames, (size_t)capacity * sizeof *frames);
    if (frames == NULL) return tw_fail("MemoryError", "no memory for the frame of a call");
    machine->frames = frames;
    machine->frame_capacity = capacity;
  }
  machine->frames[machine->num_frames++] = (Frame){function, 0, machine->num_values};
  machine->num_values += machine->vm->functions[function].num_registers;
  return 0;
}

/* Calls a function: `captured` and the registers `arguments` of the present frame. A call in tail position replaces the
 * frame. */
static int32_t enter(Machine* machine, int32_t function, const TVMFFIAny* captured, int64_t num_captured, const int64_t* arguments,
                     int64_t num_arguments, bool tail) {
  int64_t num_registers = machine->vm->functions[function].num_registers;
  if (reserve_values(machine, num_registers) != 0) return -1;
  Frame* frame = &machine->frames[machine->num_frames - 1];
  TVMFFIAny* registers = machine->values + frame->base;
  TVMFFIAny* place = machine->values + machine->num_values;
  for (int64_t i = 0; i < num_captured; ++i) place[i] = copy_of(&captured[i]);
  for (int64_t i = 0; i < num_arguments; ++i) place[num_captured + i] = copy_of(&registers[arguments[i]]);
  if (!tail) return push_frame(machine, function);
  int64_t base = frame->base;
  drop_values(machine, base);
  memmove(registers, place, (size_t)(num_captured + num_arguments) * sizeof *place);
  int64_t given = num_captured + num_arguments;
  TVMFFIAny* first_free = place > registers + given ? place : registers + given;
  memset(first_free, 0, (size_t)(place + given - first_free) * sizeof *place);
  machine->num_values = base + num_registers;
  *frame = (Frame){function, 0, base};
  return 0;
}

/* ---- instructions that take some lines ---- */
static int32_t invoke_packed(const Machine* machine, const int64_t* code, TVMFFIAny* registers) {
  const TwVMKernel* kernel = &machine->vm->kernels[code[1]];
  int64_t count = code[3];
  TVMFFIAny few[ARGUMENTS_ON_STACK];
  TVMFFIAny* args = count <= ARGUMENTS_ON_STACK ? few : malloc((size_t)count * sizeof *args);
  if (args == NULL) return tw_fail("MemoryError", "no memory for the arguments of a kernel");
  int32_t status = 0;
  for (int64_t i = 0; i < count && status == 0; ++i) {
    DLTensor* tensor = tensor_of(&registers[code[4 + i]]);
    if (tensor == NULL) status = wrong_kind(machine, "a tensor", &registers[code[4 + i]]);
    args[i] = (TVMFFIAny){.type_index = TILEWRIGHT_DLTENSOR, .v_ptr = tensor};
  }
  TVMFFIAny result = {0};
  if (status == 0 && tilewright_function_call(kernel->function, args, (int32_t)count, &result) != 0) {
    status = kernel_failed(machine, kernel);
  }
  tilewright_any_release(&result);
  if (args != few) free(args);
  return status;
}

/* A function of the host, or a closure of another machine. */
static int32_t invoke_foreign(const Machine* machine, const int64_t* code, TVMFFIAny* registers) {
  const TVMFFIAny callee = registers[code[2]];
  if (callee.type_index != TILEWRIGHT_FUNCTION) return wrong_kind(machine, "a function", &callee);
  int64_t count = code[3];
  TVMFFIAny* args = malloc((size_t)(count + 1) * sizeof *args);
  if (args == NULL) return tw_fail("MemoryError", "no memory for the arguments of a function");
  for (int64_t i = 0; i < count; ++i) args[i] = registers[code[4 + i]];
  TVMFFIAny result = {0};
  int32_t status = tilewright_function_call(callee.v_obj, args, (int32_t)count, &result);
  free(args);
  if (status == 0) {
    put(&registers[code[1]], result);
  } else {
    tilewright_any_release(&result);
  }
  return status;
}

static int32_t make_data(const int64_t* code, TVMFFIAny* registers) {
  TwData* data = tw_data_create(code[2], code[3]);
  if (data == NULL) return -1;
  for (int64_t i = 0; i < code[3]; ++i) data->fields[i] = copy_of(&registers[code[4 + i]]);
  put_object(&registers[code[1]], &data->header);
  return 0;
}

static int32_t make_closure(const Machine* machine, const int64_t* code, TVMFFIAny* registers) {
  TwClosure* closure = tw_closure_create(machine->vm, (int32_t)code[2], (int32_t)code[3]);
  if (closure == NULL) return -1;
  for (int64_t i = 0; i < code[3]; ++i) closure->captured[i] = copy_of(&registers[code[4 + i]]);
  put_object(&registers[code[1]], &closure->header);
  return 0;
}

static int32_t get_field(const Machine* machine, const int64_t* code, TVMFFIAny* registers) {
  const TVMFFIAny* value = &registers[code[2]];
  if (value->type_index != TILEWRIGHT_DATA) return wrong_kind(machine, "a tuple or a value of a data type", value);
  TVMFFIAny field;
  if (tilewright_data_field(value->v_obj, code[3], &field) != 0) return -1;
  put(&registers[code[1]], field);
  return 0;
}

static DLDataType dtype_of(int64_t number) { return (DLDataType){(uint8_t)number, (uint8_t)(number >> 8), (uint16_t)(number >> 16)}; }

static int32_t make_storage(const Machine* machine, const int64_t* code, TVMFFIAny* registers) {
  uint64_t num_bytes = (uint64_t)code[3];
  if (code[2] >= 0) {
    int64_t shape[TW_MOST_DIMENSIONS];
    int32_t ndim;
    if (shape_of(machine, &registers[code[2]], shape, &ndim) != 0) return -1;
    if (!tw_tensor_bytes(shape, ndim, dtype_of(code[4]), &num_bytes)) return tw_fail("MemoryError", "no memory for a tensor of this shape");
  }
  TilewrightObject* storage;
  if (tw_pool_storage(machine->vm->pool, num_bytes, &storage) != 0) return -1;
  put_object(&registers[code[1]], storage);
  return 0;
}

static int32_t make_tensor(const Machine* machine, const int64_t* code, TVMFFIAny* registers) {
  const TVMFFIAny* storage = &registers[code[2]];
  if (storage->type_index != TILEWRIGHT_STORAGE) return wrong_kind(machine, "a storage", storage);
  int64_t computed[TW_MOST_DIMENSIONS];
  const int64_t* shape = code + 6;
  int32_t ndim = (int32_t)code[5];
  if (code[0] == TW_VM_ALLOC_TENSOR_REG) {
    if (shape_of(machine, &registers[code[5]], computed, &ndim) != 0) return -1;
    shape = computed;
  }
  TilewrightObject* tensor;
  if (tw_storage_tensor(storage->v_obj, (uint64_t)code[3], shape, ndim, dtype_of(code[4]), &tensor) != 0) return -1;
  put_object(&registers[code[1]], tensor);
  return 0;
}

static int32_t make_shape(const Machine* machine, const int64_t* code, TVMFFIAny* registers) {
  const DLTensor* tensor = tensor_of(&registers[code[2]]);
  if (tensor == NULL) return wrong_kind(machine, "a tensor", &registers[code[2]]);
  int64_t length = tensor->ndim;
  TilewrightObject* vector;
  if (tw_pool_tensor(machine->vm->pool, &length, 1, (DLDataType){kDLInt, 64, 1}, &vector) != 0) return -1;
  if (length > 0) memcpy(tilewright_tensor_dltensor(vector)->data, tensor->shape, 8 * (size_t)length);
  put_object(&registers[code[1]], vector);
  return 0;
}

static void release_object(void* object) { tilewright_object_release(object); }

static int32_t reshape(const Machine* machine, const int64_t* code, TVMFFIAny* registers) {
  const TVMFFIAny* value = &registers[code[2]];
  const DLTensor* tensor = tensor_of(value);
  int64_t shape[TW_MOST_DIMENSIONS];
  int32_t ndim;
  uint64_t before, after;
  if (tensor == NULL || !is_compact(tensor)) return wrong_kind(machine, "a compact tensor", value);
  if (shape_of(machine, &registers[code[3]], shape, &ndim) != 0) return -1;
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
  put_object(&registers[code[1]], made);
  return 0;
}

static int32_t copy_tensor(TwPool* pool, const DLTensor* tensor, TilewrightObject** out) {
  if (tensor->ndim > TW_MOST_DIMENSIONS) return tw_fail("ValueError", "a tensor cannot have %d dimensions", (int)tensor->ndim);
  if (tw_pool_tensor(pool, tensor->shape, tensor->ndim, tensor->dtype, out) != 0) return -1;
  if (tilewright_tensor_copy(tensor, tilewright_tensor_dltensor(*out)) == 0) return 0;
  tilewright_object_release(*out);
  return -1;
}

static int32_t device_copy(const Machine* machine, const int64_t* code, TVMFFIAny* registers) {
  const DLTensor* tensor = tensor_of(&registers[code[2]]);
  if (tensor == NULL) return wrong_kind(machine, "a tensor", &registers[code[2]]);
  if (code[3] != kDLCPU || code[5] != kDLCPU) {
    return tw_fail("RuntimeError", "cannot copy between devices of types %d and %d: the runtime has no driver for them", (int)code[3],
                   (int)code[5]);
  }
  TilewrightObject* copy;
  if (copy_tensor(machine->vm->pool, tensor, &copy) != 0) return -1;
  put_object(&registers[code[1]], copy);
  return 0;
}

static int32_t make_reference(const int64_t* code, TVMFFIAny* registers) {
  TilewrightObject* reference;
  if (tilewright_reference_create(&registers[code[2]], &reference) != 0) return -1;
  put_object(&registers[code[1]], reference);
  return 0;
}

static TwReference* reference_of(const Machine* machine, const TVMFFIAny* value) {
  if (value->type_index == TILEWRIGHT_REFERENCE) return (TwReference*)value->v_obj;
  wrong_kind(machine, "a reference", value);
  return NULL;
}

/* ---- the loop ---- */
static bool is_returned(const int64_t* next, int64_t result) { return next[0] == TW_VM_RET && next[1] == result; }

static int32_t run(Machine* machine, TVMFFIAny* result) {
  TilewrightVM* vm = machine->vm;
  int64_t left = vm->most_instructions > 0 ? vm->most_instructions : INT64_MAX;
  const int64_t* code;
  TVMFFIAny* registers;
#define RESUME()                                                             \
  do {                                                                       \
    const Frame* frame = &machine->frames[machine->num_frames - 1];          \
    code = vm->functions[frame->function].code + frame->at;                  \
    registers = machine->values + frame->base;                               \
  } while (0)
#define SUSPEND()                                                            \
  do {                                                                       \
    Frame* frame = &machine->frames[machine->num_frames - 1];                \
    frame->at = code - vm->functions[frame->function].code;                  \
  } while (0)
#define TRY(call)               \
  do {                          \
    if ((call) != 0) return -1; \
  } while (0)
  RESUME();
  for (;;) {
    if (--left < 0) return tw_fail("RuntimeError", "the program took more than %lld instructions", (long long)vm->most_instructions);
    switch (code[0]) {
      case TW_VM_MOVE:
        put(&registers[code[1]], copy_of(&registers[code[2]]));
        code += 3;
        break;
      case TW_VM_RET: {
        TVMFFIAny value = registers[code[1]];
        registers[code[1]] = (TVMFFIAny){0};
        drop_values(machine, machine->frames[--machine->num_frames].base);
        if (machine->num_frames == 0) {
          *result = value;
          return 0;
        }
        RESUME();
        put(&registers[code[1]], value); /* of the call, which all keep there */
        code += 4 + code[3];
        break;
      }
      case TW_VM_INVOKE:
        SUSPEND();
        TRY(enter(machine, (int32_t)code[2], NULL, 0, code + 4, code[3], is_returned(code + 4 + code[3], code[1])));
        RESUME();
        break;
      case TW_VM_INVOKE_CLOSURE: {
        const int64_t* next = code + 4 + code[3];
        const TwClosure* closure = tw_closure_of(vm, &registers[code[2]]);
        if (closure == NULL) {
          TRY(invoke_foreign(machine, code, registers));
          code = next;
          break;
        }
        if (closure->num_captured + code[3] != vm->functions[closure->function].num_params) {
          return tw_fail("TypeError", "a closure of @%s is called with %lld arguments", vm->functions[closure->function].name,
                         (long long)code[3]);
        }
        SUSPEND();
        TRY(enter(machine, closure->function, closure->captured, closure->num_captured, code + 4, code[3], is_returned(next, code[1])));
        RESUME();
        break;
      }
      case TW_VM_INVOKE_PACKED:
        TRY(invoke_packed(machine, code, registers));
        code += 4 + code[3];
        break;
      case TW_VM_ALLOC_TENSOR:
        TRY(make_tensor(machine, code, registers));
        code += 6 + code[5];
        break;
      case TW_VM_ALLOC_TENSOR_REG:
        TRY(make_tensor(machine, code, registers));
        code += 6;
        break;
      case TW_VM_ALLOC_DATA:
        TRY(make_data(code, registers));
        code += 4 + code[3];
        break;
      case TW_VM_ALLOC_CLOSURE:
        TRY(make_closure(machine, code, registers));
        code += 4 + code[3];
        break;
      case TW_VM_GET_FIELD:
        TRY(get_field(machine, code, registers));
        code += 4;
        break;
      case TW_VM_IF: {
        int64_t test, target;
        TRY(scalar_of(machine, &registers[code[1]], &test));
        TRY(scalar_of(machine, &registers[code[2]], &target));
        code += test == target ? code[3] : code[4];
        break;
      }
      case TW_VM_LOAD_CONST:
        tilewright_object_retain(vm->constants[code[2]]);
        put_object(&registers[code[1]], vm->constants[code[2]]);
        code += 3;
        break;
      case TW_VM_GOTO:
        code += code[1];
        break;
      case TW_VM_GET_TAG: {
        const TVMFFIAny* value = &registers[code[2]];
        if (value->type_index != TILEWRIGHT_DATA) return wrong_kind(machine, "a value of a data type", value);
        put_integer(&registers[code[1]], tilewright_data_tag(value->v_obj));
        code += 3;
        break;
      }
      case TW_VM_LOAD_CONSTI:
        put_integer(&registers[code[1]], code[2]);
        code += 3;
        break;
      case TW_VM_FATAL:
        return tw_fail("RuntimeError", "%s", vm->texts[code[1]]);
      case TW_VM_ALLOC_STORAGE:
        TRY(make_storage(machine, code, registers));
        code += 5;
        break;
      case TW_VM_SHAPE_OF:
        TRY(make_shape(machine, code, registers));
        code += 3;
        break;
      case TW_VM_RESHAPE_TENSOR:
        TRY(reshape(machine, code, registers));
        code += 4;
        break;
      case TW_VM_DEVICE_COPY:
        TRY(device_copy(machine, code, registers));
        code += 7;
        break;
      case TW_VM_ALLOC_REF:
        TRY(make_reference(code, registers));
        code += 3;
        break;
      case TW_VM_REF_READ: {
        const TwReference* reference = reference_of(machine, &registers[code[2]]);
        if (reference == NULL) return -1;
        put(&registers[code[1]], copy_of(&reference->value));
        code += 3;
        break;
      }
      case TW_VM_REF_WRITE: {
        TwReference* reference = reference_of(machine, &registers[code[1]]);
        if (reference == NULL) return -1;
        put(&reference->value, copy_of(&registers[code[2]]));
        code += 3;
        break;
      }
      default: /* TW_VM_KILL: the reader lets no other through */
        for (int64_t i = 0; i < code[1]; ++i) put(&registers[code[2 + i]], (TVMFFIAny){0});
        code += 2 + code[1];
        break;
    }
  }
#undef RESUME
#undef SUSPEND
#undef TRY
}

/* ---- calls from outside ---- */
static bool same_dtype(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

static int32_t check_argument(const TwVMFunction* function, int32_t index, const DLTensor* tensor) {
  const TwVMParam* param = &function->params[index];
  if (!param->is_tensor) return 0;
  if (tensor == NULL) {
    return tw_fail("TypeError", "the argument %s of @%s is not a tensor, which is expected", param->name, function->name);
  }
  if (!same_dtype(tensor->dtype, param->dtype)) {
    return tw_fail("TypeError", "the argument %s of @%s is of another data type (code %d of %d bits; %d of %d is expected)", param->name,
                   function->name, (int)tensor->dtype.code, (int)tensor->dtype.bits, (int)param->dtype.code, (int)param->dtype.bits);
  }
  if (tensor->ndim != param->ndim) {
    return tw_fail("ValueError", "the argument %s of @%s has %d dimensions; %d are expected", param->name, function->name,
                   (int)tensor->ndim, (int)param->ndim);
  }
  for (int32_t i = 0; i < param->ndim; ++i) {
    if (param->shape[i] >= 0 && tensor->shape[i] != param->shape[i]) {
      return tw_fail("ValueError", "the argument %s of @%s has the extent %lld in dimension %d; %lld is expected", param->name,
                     function->name, (long long)tensor->shape[i], (int)i, (long long)param->shape[i]);
    }
  }
  return 0;
}

static bool is_usable(const DLTensor* tensor) { return is_compact(tensor) && (uintptr_t)data_of(tensor) % TW_ALIGNMENT == 0; }

/* An argument as the program takes it. A tensor that the caller only lends, or that kernels cannot read in place, is
 * copied. */
static int32_t take_argument(TilewrightVM* vm, const TwVMFunction* function, int32_t index, const TVMFFIAny* argument, TVMFFIAny* out) {
  DLTensor lent;
  const DLTensor* tensor = tensor_of(argument);
  bool copies = tensor != NULL && !is_usable(tensor);
  if (argument->type_index == TILEWRIGHT_DLTENSOR) {
    lent = *(const DLTensor*)argument->v_ptr;
    if (lent.dtype.code == kDLBool && lent.dtype.bits == 8) lent.dtype = (DLDataType){kDLUInt, 1, lent.dtype.lanes};
    tensor = &lent;
    copies = true;
  }
  if (check_argument(function, index, tensor) != 0) return -1;
  if (!copies) {
    if (argument->type_index < TILEWRIGHT_FIRST_OBJECT) {
      return tw_fail("TypeError", "the argument %s of @%s is neither a tensor nor another value of the program",
                     function->params[index].name, function->name);
    }
    *out = copy_of(argument);
    return 0;
  }
  TilewrightObject* copy;
  if (copy_tensor(vm->pool, tensor, &copy) != 0) return -1;
  *out = (TVMFFIAny){.type_index = TILEWRIGHT_TENSOR, .v_obj = copy};
  return 0;
}

static int32_t call(TilewrightVM* vm, int32_t index, const TVMFFIAny* captured, int32_t num_captured, const TVMFFIAny* args,
                    int32_t num_args, TVMFFIAny* result) {
  const TwVMFunction* function = &vm->functions[index];
  if (num_captured + num_args != function->num_params) {
    return tw_fail("TypeError", "@%s takes %d arguments, %d were given", function->name, (int)(function->num_params - num_captured),
                   (int)num_args);
  }
  Machine machine = {.vm = vm};
  int32_t status = reserve_values(&machine, function->num_registers);
  for (int32_t i = 0; status == 0 && i < num_captured; ++i) machine.values[i] = copy_of(&captured[i]);
  for (int32_t i = 0; status == 0 && i < num_args; ++i) {
    status = take_argument(vm, function, num_captured + i, &args[i], &machine.values[num_captured + i]);
  }
  if (status == 0) status = push_frame(&machine, index);
  if (status == 0) status = run(&machine, result);
  machine.num_values = machine.capacity; /* after an error, arguments may stand above the last frame */
  drop_values(&machine, 0);
  free(machine.values);
  free(machine.frames);
  return status;
}

int32_t tw_vm_call_closure(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  TwClosure* closure = self;
  tilewright_object_retain(&closure->header); /* the program may drop the last reference to what runs */
  int32_t status = call(closure->vm, closure->function, closure->captured, closure->num_captured, args, num_args, result);
  tilewright_object_release(&closure->header);
  return status;
}

int32_t tilewright_vm_invoke(TilewrightVM* vm, int32_t function, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  if (function < 0 || function >= vm->num_functions) {
    return tw_fail("IndexError", "the program has %d functions; there is no function %d", (int)vm->num_functions, (int)function);
  }
  return call(vm, function, NULL, 0, args, num_args, result);
}

int32_t tilewright_vm_function(TilewrightVM* vm, int32_t function, TilewrightObject** out) {
  if (function < 0 || function >= vm->num_functions) {
    return tw_fail("IndexError", "the program has %d functions; there is no function %d", (int)vm->num_functions, (int)function);
  }
  TwClosure* closure = tw_closure_create(vm, function, 0);
  if (closure == NULL) return -1;
  *out = &closure->header;
  return 0;
}
