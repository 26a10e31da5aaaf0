#include "machines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../vm.h"
#include "modules.h"

#define MOST_DEVICES 8
#define MOST_PROFILE_BYTES ((size_t)1 << 28)

struct Machine {
  TilewrightVM* vm;
  /* What a machine that logs its kernels, which is slower, is made of. */
  TilewrightObject* code;
  const char* program;
  size_t size;
  DLDevice devices[MOST_DEVICES];
  int32_t num_devices;
};

static TilewrightObject* find_kernel(void* context, const char* name) { return module_function(context, name, true); }

Machine* machine_create(const char* program, uint64_t size, TilewrightObject* code, bool keeps_memory, const DLDevice* devices,
                        int32_t num_devices) {
  if (size > SIZE_MAX || num_devices > MOST_DEVICES) {
    tw_fail("ValueError", "a program that is too large, or for more than %d devices", MOST_DEVICES);
    return NULL;
  }
  Machine* machine = calloc(1, sizeof *machine);
  if (machine == NULL) {
    tw_fail("MemoryError", "no memory for a virtual machine");
    return NULL;
  }
  tilewright_object_retain(code);
  machine->code = code;
  machine->program = program;
  machine->size = (size_t)size;
  machine->num_devices = num_devices;
  if (num_devices > 0) memcpy(machine->devices, devices, (size_t)num_devices * sizeof *devices);
  if (tilewright_vm_create_on(program, machine->size, NULL, 0, find_kernel, code, keeps_memory, devices, num_devices, &machine->vm) == 0) {
    return machine;
  }
  machine_release(machine);
  return NULL;
}

void machine_release(Machine* machine) {
  if (machine == NULL) return;
  if (machine->vm != NULL) tilewright_vm_release(machine->vm);
  tilewright_object_release(machine->code);
  free(machine);
}

TilewrightObject* machine_function(const Machine* machine, const char* name) {
  TilewrightObject* function = NULL;
  int32_t index = tilewright_vm_function_index(machine->vm, name);
  if (index < 0) return NULL;
  if (tilewright_vm_function(machine->vm, index, &function) == 0) return function;
  tilewright_clear_error();
  return NULL;
}

/* The number of the function that the first argument names; -1 with an error. */
static int32_t function_of(const Machine* machine, const TVMFFIAny* args, int32_t num_args) {
  const char* name;
  size_t size;
  if (num_args < 1) return tw_fail("TypeError", "the name of a function is needed");
  if (tilewright_get_bytes(&args[0], &name, &size) != 0) return -1;
  int32_t index = tilewright_vm_function_index(machine->vm, name);
  return index >= 0 ? index : tw_fail("AttributeError", "the program has no function %.200s", name);
}

int32_t machine_parameters(const Machine* machine, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  int32_t index = function_of(machine, args, num_args);
  if (index < 0) return -1;
  const TwVMFunction* function = &machine->vm->functions[index];
  TVMFFIAny* names = calloc((size_t)function->num_params + 1, sizeof *names);
  if (names == NULL) return tw_fail("MemoryError", "no memory for the names of parameters");
  TilewrightObject* list = NULL;
  int32_t status = 0;
  for (int32_t i = 0; status == 0 && i < function->num_params; ++i) {
    const char* name = function->params[i].name;
    status = tilewright_make_string(name, strlen(name), &names[i]);
  }
  if (status == 0) status = tilewright_data_create(0, names, function->num_params, &list);
  for (int32_t i = 0; i < function->num_params; ++i) tilewright_any_release(&names[i]);
  free(names);
  if (status == 0) *result = (TVMFFIAny){.type_index = TILEWRIGHT_DATA, .v_obj = list};
  return status;
}

/* ---- profiles ---- */

/* Where kernels are found while a machine that logs them is made: they are asked for in their order. */
typedef struct {
  TilewrightObject* code;
  TilewrightCallLog* log;
  int64_t count;
} Watching;

static TilewrightObject* find_watched(void* context, const char* name) {
  Watching* watching = context;
  TilewrightObject *function = module_function(watching->code, name, true), *watched = NULL;
  if (function == NULL) return NULL;
  tilewright_call_log_watch(watching->log, function, watching->count++, &watched);
  tilewright_object_release(function);
  return watched;
}

/* Text that grows; NULL once there is no memory for it. */
typedef struct {
  char* data;
  size_t size, room;
} Text;

static void append(Text* text, const char* more, size_t size) {
  if (text->size + size > text->room) {
    size_t room = 2 * (text->size + size) + 256;
    char* grown = text->data != NULL && room <= MOST_PROFILE_BYTES ? realloc(text->data, room) : NULL;
    if (grown == NULL) {
      free(text->data);
      *text = (Text){0};
      return;
    }
    text->data = grown;
    text->room = room;
  }
  memcpy(text->data + text->size, more, size);
  text->size += size;
}

static void append_string(Text* text, const char* value) {
  append(text, "\"", 1);
  for (; *value != 0 && text->data != NULL; ++value) {
    char escaped[8];
    bool is_special = *value == '"' || *value == '\\' || (unsigned char)*value < 0x20;
    int size = is_special ? snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned char)*value) : 0;
    append(text, is_special ? escaped : value, is_special ? (size_t)size : 1);
  }
  append(text, "\"", 1);
}

/* The calls of a log as JSON. */
static int32_t describe_calls(const TilewrightVM* vm, const TilewrightCallLog* log, TVMFFIAny* result) {
  size_t count;
  const int64_t* words = tilewright_call_log_words(log, &count);
  Text text = {malloc(256), 0, 256};
  append(&text, "[", 1);
  for (size_t at = 0; at < count && text.data != NULL;) {
    char numbers[80];
    int size = snprintf(numbers, sizeof numbers, ", %.9f, %.9f]", (double)words[at + 1] * 1e-9, (double)words[at + 2] * 1e-9);
    append(&text, at > 0 ? ", [" : "[", at > 0 ? 3 : 1);
    append_string(&text, vm->kernels[words[at]].name);
    append(&text, numbers, (size_t)size);
    int64_t tensors = words[at + 3];
    for (at += 4; tensors > 0; --tensors) at += 4 + (size_t)words[at + 3];
  }
  append(&text, "]", 1);
  int32_t status = text.data != NULL ? tilewright_make_bytes(text.data, text.size, result)
                                     : tw_fail("MemoryError", "no memory for the profile of a program");
  free(text.data);
  return status;
}

int32_t machine_profile(const Machine* machine, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  int32_t index = function_of(machine, args, num_args);
  if (index < 0) return -1;
  TilewrightVM* vm = NULL;
  Watching watching = {machine->code, NULL, 0};
  if (tilewright_call_log_create(&watching.log) != 0) return -1;
  int32_t status = tilewright_vm_create_on(machine->program, machine->size, NULL, 0, find_watched, &watching, 1, machine->devices,
                                           machine->num_devices, &vm);
  for (int run = 0; status == 0 && run < 2; ++run) {
    TVMFFIAny made = {0};
    tilewright_call_log_clear(watching.log);
    status = tilewright_vm_invoke(vm, index, args + 1, num_args - 1, &made);
    tilewright_any_release(&made);
  }
  if (status == 0) status = describe_calls(vm, watching.log, result);
  if (vm != NULL) tilewright_vm_release(vm);
  tilewright_call_log_release(watching.log);
  return status;
}
