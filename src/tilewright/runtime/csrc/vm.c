/* Running programs of the virtual machine: one loop over instructions. The frames of calls are on a stack of their own, so
 * that deep recursion takes only heap; a call whose result is returned at once replaces its caller. */
#include "vm.h"

#include <stdlib.h>
#include <string.h>

#include "guard.h"

/* Registers of all frames together: 1 GiB. */
#define MOST_VALUES ((int64_t)1 << 26)

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
    if (machine->values[i].type_index != TILEWRIGHT_NONE) tw_put(&machine->values[i], (TVMFFIAny){0});
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
  for (int64_t i = 0; i < num_captured; ++i) place[i] = tw_copy_of(&captured[i]);
  for (int64_t i = 0; i < num_arguments; ++i) place[num_captured + i] = tw_copy_of(&registers[arguments[i]]);
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

/* ---- the loop ---- */
static bool is_returned(const int64_t* next, int64_t result) { return next[0] == TW_VM_RET && next[1] == result; }

static int32_t run(Machine* machine, TVMFFIAny* result) {
  TilewrightVM* vm = machine->vm;
  int64_t left = vm->most_instructions > 0 ? vm->most_instructions : INT64_MAX;
  TwVMCall call = {vm, NULL};
  TwInterrupts interrupts = {0};
  const int64_t* code;
  TVMFFIAny* registers;
#define RESUME()                                                    \
  do {                                                              \
    const Frame* frame = &machine->frames[machine->num_frames - 1]; \
    call.function = &vm->functions[frame->function];                \
    code = call.function->code + frame->at;                         \
    registers = machine->values + frame->base;                      \
  } while (0)
#define SUSPEND() machine->frames[machine->num_frames - 1].at = code - call.function->code
#define TRY(action)               \
  do {                            \
    if ((action) != 0) return -1; \
  } while (0)
/* The same for an instruction that profiles show. */
#define TRY_LOGGED(action)                                                                       \
  do {                                                                                           \
    int64_t logged = vm->log == NULL ? 0 : tw_call_log_begin(vm->log, -1 - (int64_t)code[0]);    \
    if (logged < 0 || (action) != 0) return -1;                                                  \
    if (vm->log != NULL) tw_call_log_end(vm->log, logged);                                       \
  } while (0)
  RESUME();
  for (;;) {
    if (--left < 0) return tw_fail("RuntimeError", "the program took more than %lld instructions", (long long)vm->most_instructions);
    TRY(tw_interrupted(&interrupts));
    switch (code[0]) {
      case TW_VM_MOVE:
        tw_put(&registers[code[1]], tw_copy_of(&registers[code[2]]));
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
        tw_put(&registers[code[1]], value); /* of the call, which all keep there */
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
          TRY(tw_vm_invoke_foreign(&call, code, registers));
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
        TRY(tw_vm_invoke_packed(&call, code, registers));
        code += 4 + code[3];
        break;
      case TW_VM_ALLOC_TENSOR:
        TRY_LOGGED(tw_vm_make_tensor(&call, code, registers));
        code += 6 + code[5];
        break;
      case TW_VM_ALLOC_TENSOR_REG:
        TRY_LOGGED(tw_vm_make_tensor(&call, code, registers));
        code += 6;
        break;
      case TW_VM_ALLOC_DATA:
        TRY(tw_vm_make_data(&call, code, registers));
        code += 4 + code[3];
        break;
      case TW_VM_ALLOC_CLOSURE:
        TRY(tw_vm_make_closure(&call, code, registers));
        code += 4 + code[3];
        break;
      case TW_VM_GET_FIELD:
        TRY(tw_vm_get_field(&call, code, registers));
        code += 4;
        break;
      case TW_VM_IF: {
        bool holds;
        TRY(tw_vm_test(&call, code, registers, &holds));
        code += holds ? code[3] : code[4];
        break;
      }
      case TW_VM_LOAD_CONST:
        tilewright_object_retain(vm->constants[code[2]]);
        tw_put_object(&registers[code[1]], vm->constants[code[2]]);
        code += 3;
        break;
      case TW_VM_GOTO:
        code += code[1];
        break;
      case TW_VM_GET_TAG:
        TRY(tw_vm_get_tag(&call, code, registers));
        code += 3;
        break;
      case TW_VM_LOAD_CONSTI:
        tw_put_integer(&registers[code[1]], code[2]);
        code += 3;
        break;
      case TW_VM_FATAL:
        return tw_fail("RuntimeError", "%s", vm->texts[code[1]]);
      case TW_VM_ALLOC_STORAGE:
        TRY_LOGGED(tw_vm_make_storage(&call, code, registers));
        code += 5;
        break;
      case TW_VM_SHAPE_OF:
        TRY_LOGGED(tw_vm_make_shape(&call, code, registers));
        code += 3;
        break;
      case TW_VM_RESHAPE_TENSOR:
        TRY_LOGGED(tw_vm_reshape(&call, code, registers));
        code += 4;
        break;
      case TW_VM_DEVICE_COPY:
        TRY_LOGGED(tw_vm_device_copy(&call, code, registers));
        code += 7;
        break;
      case TW_VM_ALLOC_REF:
        TRY(tw_vm_make_reference(&call, code, registers));
        code += 3;
        break;
      case TW_VM_REF_READ:
        TRY(tw_vm_read_reference(&call, code, registers));
        code += 3;
        break;
      case TW_VM_REF_WRITE:
        TRY(tw_vm_write_reference(&call, code, registers));
        code += 3;
        break;
      case TW_VM_KILL:
        for (int64_t i = 0; i < code[1]; ++i) tw_put(&registers[code[2 + i]], (TVMFFIAny){0});
        code += 2 + code[1];
        break;
      case TW_VM_ALLOC_STORAGE_ON:
        TRY_LOGGED(tw_vm_make_storage(&call, code, registers));
        code += 7;
        break;
      default: /* TW_VM_LOAD_CONST_ON: the reader lets no other through */
        TRY_LOGGED(tw_vm_load_placed(&call, code, registers));
        code += 5;
        break;
    }
  }
#undef RESUME
#undef SUSPEND
#undef TRY
#undef TRY_LOGGED
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
    TwDataTypeName given, expected;
    return tw_fail("TypeError", "the argument %s of @%s is %s; %s is expected", param->name, function->name,
                   tw_data_type_name(&given, tensor->dtype), tw_data_type_name(&expected, param->dtype));
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

static bool is_usable(const DLTensor* tensor, DLDevice device) {
  return tw_same_device(tensor->device, device) && tw_is_compact(tensor) && (uintptr_t)tw_data_of(tensor) % tw_alignment_in_place() == 0;
}

/* An argument as the program takes it. A tensor that the caller only lends, that is on another device, or that kernels
 * cannot read in place, is copied. */
static int32_t take_argument(TilewrightVM* vm, const TwVMFunction* function, int32_t index, const TVMFFIAny* argument, TVMFFIAny* out) {
  DLTensor lent;
  const DLTensor* tensor = tw_tensor_of(argument);
  int32_t place = function->params[index].place;
  bool copies = tensor != NULL && !is_usable(tensor, vm->devices[place]);
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
    *out = tw_copy_of(argument);
    return 0;
  }
  TilewrightObject* copy;
  if (tw_copy_tensor(vm->pool, place, tensor, &copy) != 0) return -1;
  *out = (TVMFFIAny){.type_index = TILEWRIGHT_TENSOR, .v_obj = copy};
  return 0;
}

/* Waits for devices that may still be at work and whose memory the host reads in place. Of others, a copy to the host waits. */
static int32_t finish(const TilewrightVM* vm, TVMFFIAny* result) {
  for (int32_t place = 1; place < vm->num_devices; ++place) {
    uint32_t flags = tilewright_device_flags(vm->devices[place].device_type);
    if ((flags & TILEWRIGHT_DEVICE_HOST_READS) && tw_device_wait(vm->devices[place]) != 0) {
      tilewright_any_release(result);
      return -1;
    }
  }
  return 0;
}

static int32_t call_function(TilewrightVM* vm, int32_t index, const TVMFFIAny* captured, int32_t num_captured, const TVMFFIAny* args,
                    int32_t num_args, TVMFFIAny* result) {
  const TwVMFunction* function = &vm->functions[index];
  if (num_captured + num_args != function->num_params) {
    return tw_fail("TypeError", "@%s takes %d arguments, %d were given", function->name, (int)(function->num_params - num_captured),
                   (int)num_args);
  }
  Machine machine = {.vm = vm};
  int32_t status = reserve_values(&machine, function->num_registers);
  for (int32_t i = 0; status == 0 && i < num_captured; ++i) machine.values[i] = tw_copy_of(&captured[i]);
  for (int32_t i = 0; status == 0 && i < num_args; ++i) {
    status = take_argument(vm, function, num_captured + i, &args[i], &machine.values[num_captured + i]);
  }
  if (status == 0) status = push_frame(&machine, index);
  if (status == 0) status = run(&machine, result);
  if (status == 0) status = finish(vm, result);
  machine.num_values = machine.capacity; /* after an error, arguments may stand above the last frame */
  drop_values(&machine, 0);
  free(machine.values);
  free(machine.frames);
  return status;
}

int32_t tw_vm_call_closure(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  TwClosure* closure = self;
  tilewright_object_retain(&closure->header); /* the program may drop the last reference to what runs */
  int32_t status = call_function(closure->vm, closure->function, closure->captured, closure->num_captured, args, num_args, result);
  tilewright_object_release(&closure->header);
  return status;
}

int32_t tilewright_vm_invoke(TilewrightVM* vm, int32_t function, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  if (function < 0 || function >= vm->num_functions) {
    return tw_fail("IndexError", "the program has %d functions; there is no function %d", (int)vm->num_functions, (int)function);
  }
  return call_function(vm, function, NULL, 0, args, num_args, result);
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
