/* Reading a program of the virtual machine. Nothing in its bytes is trusted: every register, function, constant, text,
 * data type and jump is checked here, so that running it only has to check values.
 *
 * The form, all numbers of 64 bits, little endian; a text is its length and its bytes:
 *   "TWVM0001"
 *   texts:     count, texts
 *   kernels:   count, for each its name and what it computes
 *   constants: count, for each 0 (the host gives it) or 1, data type, number of dimensions, extents, size, bytes
 *   functions: count, for each its name, number of registers, parameters and code
 *     parameters: count, for each its name and 0 (any value) or 1, data type, number of dimensions, extents or -1; or 2, the
 *                 same, and the device that the tensor is to be on (kind and position) instead of the host
 *     code:       count, words
 *   outputs:   the tensors that `main` returns, tuples flattened, in the form of parameters; may be left out
 *   names:     count, for each a tensor's name, the number of its dimensions and a name for each, which may be empty; only
 *              for people who look at the file; may be left out
 */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "vm.h"

#define MAGIC "TWVM0001"
#define MOST_ITEMS ((uint64_t)1 << 24)
#define MOST_REGISTERS ((uint64_t)1 << 18)
#define MOST_PARAMS ((uint64_t)1 << 16)

/* One block of the program's own memory. */
typedef struct TwVMMemory {
  struct TwVMMemory* next;
  _Alignas(16) char content[];
} Memory;

typedef struct {
  TilewrightVM* vm;
  const char* at;
  const char* end;
} Reader;

static int32_t damaged(const char* what) { return tw_fail("ValueError", "the program of the virtual machine is damaged: %s", what); }

static void* allocate(TilewrightVM* vm, uint64_t count, uint64_t size) {
  uint64_t num_bytes;
  Memory* memory = NULL;
  if (!__builtin_mul_overflow(count, size, &num_bytes) && num_bytes < SIZE_MAX / 2) {
    memory = calloc(1, sizeof *memory + (size_t)num_bytes + 1);
  }
  if (memory == NULL) {
    tw_fail("MemoryError", "no memory for a program of the virtual machine");
    return NULL;
  }
  memory->next = vm->memory;
  vm->memory = memory;
  return memory->content;
}

static uint64_t bytes_left(const Reader* reader) { return (uint64_t)(reader->end - reader->at); }

static bool read_number(Reader* reader, int64_t* out) {
  if (bytes_left(reader) < 8) return false;
  memcpy(out, reader->at, 8);
  reader->at += 8;
  return true;
}

/* A number of items, each of which takes `least` bytes or more of what is left. */
static bool read_count(Reader* reader, uint64_t most, uint64_t least, int64_t* out) {
  return read_number(reader, out) && *out >= 0 && (uint64_t)*out <= most && (uint64_t)*out <= bytes_left(reader) / least;
}

static int32_t read_text(Reader* reader, const char** out) {
  int64_t size;
  if (!read_count(reader, UINT64_MAX, 1, &size)) return damaged("a text is cut short");
  if (memchr(reader->at, 0, (size_t)size) != NULL) return damaged("a text has a zero byte");
  char* copy = allocate(reader->vm, (uint64_t)size + 1, 1);
  if (copy == NULL) return -1;
  memcpy(copy, reader->at, (size_t)size);
  reader->at += size;
  *out = copy;
  return 0;
}

/* Code, bits and lanes in one number. */
static bool unpack_dtype(int64_t number, DLDataType* out) {
  if (number < 0 || number >> 32 != 0) return false;
  *out = (DLDataType){(uint8_t)number, (uint8_t)(number >> 8), (uint16_t)(number >> 16)};
  bool known = out->code <= kDLBfloat;
  bool size = out->bits == 1 || out->bits == 4 || out->bits == 8 || out->bits == 16 || out->bits == 32 || out->bits == 64;
  return known && size && out->lanes >= 1;
}

static bool read_dtype(Reader* reader, DLDataType* out) {
  int64_t number;
  return read_number(reader, &number) && unpack_dtype(number, out);
}

/* Extents no smaller than `least`. */
static int32_t read_shape(Reader* reader, int64_t least, int32_t* ndim, int64_t** out) {
  int64_t count;
  if (!read_count(reader, TW_MOST_DIMENSIONS, 8, &count)) return damaged("a shape is cut short");
  int64_t* shape = allocate(reader->vm, (uint64_t)count, 8);
  if (shape == NULL) return -1;
  for (int64_t i = 0; i < count; ++i) {
    if (!read_number(reader, &shape[i]) || shape[i] < least) return damaged("a shape has an extent that is none");
  }
  *ndim = (int32_t)count;
  *out = shape;
  return 0;
}

static int32_t read_texts(Reader* reader) {
  TilewrightVM* vm = reader->vm;
  int64_t count;
  if (!read_count(reader, MOST_ITEMS, 8, &count)) return damaged("it is cut short");
  vm->texts = allocate(vm, (uint64_t)count, sizeof *vm->texts);
  if (vm->texts == NULL) return -1;
  vm->num_texts = (int32_t)count;
  for (int64_t i = 0; i < count; ++i) {
    if (read_text(reader, &vm->texts[i]) != 0) return -1;
  }
  return 0;
}

static int32_t read_kernels(Reader* reader, TilewrightFind find, void* context) {
  TilewrightVM* vm = reader->vm;
  int64_t count;
  if (!read_count(reader, MOST_ITEMS, 16, &count)) return damaged("it is cut short");
  vm->kernels = allocate(vm, (uint64_t)count, sizeof *vm->kernels);
  if (vm->kernels == NULL) return -1;
  vm->num_kernels = (int32_t)count;
  for (int64_t i = 0; i < count; ++i) {
    TwVMKernel* kernel = &vm->kernels[i];
    if (read_text(reader, &kernel->name) != 0 || read_text(reader, &kernel->label) != 0) return -1;
    kernel->function = find(context, kernel->name);
    if (kernel->function != NULL) continue;
    if (tilewright_error_kind() != NULL) return -1;
    return tw_fail("ValueError", "the program calls the kernel %s, and the module has no such function", kernel->name);
  }
  return 0;
}

static int32_t read_constant(Reader* reader, TilewrightObject** out) {
  DLDataType dtype;
  int32_t ndim;
  int64_t* shape;
  int64_t size;
  uint64_t expected;
  if (!read_dtype(reader, &dtype)) return damaged("a constant has no data type");
  if (read_shape(reader, 0, &ndim, &shape) != 0) return -1;
  if (!read_count(reader, UINT64_MAX, 1, &size) || !tw_tensor_bytes(shape, ndim, dtype, &expected) || expected != (uint64_t)size) {
    return damaged("a constant does not have the size of its shape");
  }
  if (tilewright_tensor_create(shape, ndim, dtype, TW_HOST, out) != 0) return -1;
  memcpy(tilewright_tensor_dltensor(*out)->data, reader->at, (size_t)size);
  reader->at += size;
  return 0;
}

static int32_t read_constants(Reader* reader, TilewrightObject* const* given, int32_t num_given) {
  TilewrightVM* vm = reader->vm;
  int64_t count, kind;
  if (!read_count(reader, MOST_ITEMS, 8, &count)) return damaged("it is cut short");
  vm->constants = allocate(vm, (uint64_t)count, sizeof *vm->constants);
  if (vm->constants == NULL) return -1;
  vm->num_constants = (int32_t)count;
  for (int64_t i = 0; i < count; ++i) {
    if (!read_number(reader, &kind) || kind < 0 || kind > 1) return damaged("a constant is of no known kind");
    if (kind == 1) {
      if (read_constant(reader, &vm->constants[i]) != 0) return -1;
      continue;
    }
    if (i >= num_given || given[i] == NULL || given[i]->type_index != TILEWRIGHT_TENSOR) return damaged("a constant is missing");
    tilewright_object_retain(given[i]);
    vm->constants[i] = given[i];
  }
  return 0;
}

/* ---- devices ---- */
int32_t tw_vm_place(const TilewrightVM* vm, int64_t device_type, int64_t position) {
  for (int32_t place = 0; place < vm->num_devices; ++place) {
    if (vm->devices[place].device_type == device_type && position-- == 0) return place;
  }
  return -1;
}

static int32_t no_device(int64_t device_type, int64_t position) {
  TwDeviceKind kind;
  return tw_fail("ValueError", "the program uses device %lld of the kind %s, and the machine was not given it", (long long)position,
                 tw_device_kind(&kind, (int32_t)device_type));
}

static int32_t read_place(Reader* reader, int32_t* out) {
  int64_t device_type, position;
  if (!read_number(reader, &device_type) || !read_number(reader, &position)) return damaged("a device is cut short");
  *out = tw_vm_place(reader->vm, device_type, position);
  return *out >= 0 ? 0 : no_device(device_type, position);
}

/* The machine's devices: the host first, so that a place of 0 is there without being asked for. */
static int32_t take_devices(TilewrightVM* vm, const DLDevice* devices, int32_t num_devices) {
  DLDevice* places = allocate(vm, (uint64_t)num_devices + 1, sizeof *places);
  if (places == NULL) return -1;
  places[0] = TW_HOST;
  vm->num_devices = 1;
  for (int32_t i = 0; i < num_devices; ++i) {
    if (tilewright_device_require(devices[i]) != 0) return -1;
    if (!tw_is_host(devices[i])) places[vm->num_devices++] = devices[i];
  }
  vm->devices = places;
  vm->placed = allocate(vm, (uint64_t)vm->num_devices, sizeof *vm->placed);
  return vm->placed != NULL ? 0 : -1;
}

/* Has a constant on a device before any code asks for it there. */
static int32_t place_constant(TilewrightVM* vm, int64_t constant, int32_t place) {
  if (vm->placed[place] == NULL) vm->placed[place] = allocate(vm, (uint64_t)vm->num_constants, sizeof **vm->placed);
  if (vm->placed[place] == NULL) return -1;
  TilewrightObject** slot = &vm->placed[place][constant];
  if (*slot != NULL) return 0;
  const DLTensor* from = tilewright_tensor_dltensor(vm->constants[constant]);
  TilewrightObject* made;
  if (tilewright_tensor_create(from->shape, from->ndim, from->dtype, vm->devices[place], &made) != 0) return -1;
  if (tilewright_tensor_copy(from, tilewright_tensor_dltensor(made)) != 0) {
    tilewright_object_release(made);
    return -1;
  }
  *slot = made;
  return 0;
}

static int32_t read_params(Reader* reader, TwVMParam** out, int32_t* num_params) {
  int64_t count, kind;
  if (!read_count(reader, MOST_PARAMS, 16, &count)) return damaged("it is cut short");
  *out = allocate(reader->vm, (uint64_t)count, sizeof **out);
  if (*out == NULL) return -1;
  *num_params = (int32_t)count;
  for (int64_t i = 0; i < count; ++i) {
    TwVMParam* param = &(*out)[i];
    if (read_text(reader, &param->name) != 0) return -1;
    if (!read_number(reader, &kind) || kind < 0 || kind > 2) return damaged("a parameter is of no known kind");
    param->is_tensor = kind != 0;
    if (!param->is_tensor) continue;
    if (!read_dtype(reader, &param->dtype)) return damaged("a parameter has no data type");
    if (read_shape(reader, -1, &param->ndim, &param->shape) != 0) return -1;
    if (kind == 2 && read_place(reader, &param->place) != 0) return -1;
  }
  return 0;
}

static int32_t read_functions(Reader* reader) {
  TilewrightVM* vm = reader->vm;
  int64_t count, number;
  if (!read_count(reader, MOST_ITEMS, 32, &count)) return damaged("it is cut short");
  vm->functions = allocate(vm, (uint64_t)count, sizeof *vm->functions);
  if (vm->functions == NULL) return -1;
  vm->num_functions = (int32_t)count;
  for (int64_t i = 0; i < count; ++i) {
    TwVMFunction* function = &vm->functions[i];
    if (read_text(reader, &function->name) != 0) return -1;
    if (!read_number(reader, &number) || number < 0 || (uint64_t)number > MOST_REGISTERS) {
      return damaged("a function has too many registers");
    }
    function->num_registers = (int32_t)number;
    if (read_params(reader, &function->params, &function->num_params) != 0) return -1;
    if (function->num_params > function->num_registers) return damaged("a function has more parameters than registers");
    if (!read_count(reader, UINT64_MAX, 8, &function->num_words)) return damaged("the code of a function is cut short");
    function->code = allocate(vm, (uint64_t)function->num_words, 8);
    if (function->code == NULL) return -1;
    memcpy(function->code, reader->at, 8 * (size_t)function->num_words);
    reader->at += 8 * function->num_words;
  }
  return 0;
}

static bool skip_text(Reader* reader) {
  int64_t size;
  if (!read_count(reader, UINT64_MAX, 1, &size)) return false;
  reader->at += size;
  return true;
}

/* The names of dimensions, which nothing here needs. */
static int32_t skip_names(Reader* reader) {
  int64_t count, num_dimensions;
  bool complete = read_count(reader, MOST_ITEMS, 16, &count);
  for (int64_t i = 0; complete && i < count; ++i) {
    complete = skip_text(reader) && read_count(reader, MOST_ITEMS, 8, &num_dimensions);
    for (int64_t k = 0; complete && k < num_dimensions; ++k) complete = skip_text(reader);
  }
  return complete ? 0 : damaged("the names of dimensions are cut short");
}

/* Programs that were written before there was a list of outputs end before it. */
static int32_t read_outputs(Reader* reader) {
  if (reader->at == reader->end) return 0;
  if (read_params(reader, &reader->vm->outputs, &reader->vm->num_outputs) != 0) return -1;
  if (reader->at != reader->end && skip_names(reader) != 0) return -1;
  return reader->at == reader->end ? 0 : damaged("there are bytes after its end");
}

/* ---- instructions ---- */
typedef struct {
  const TilewrightVM* vm;
  const TwVMFunction* function;
  unsigned char* is_start; /* for each word, whether an instruction begins there */
} Checker;

static bool is_below(int64_t number, int64_t limit) { return number >= 0 && number < limit; }

static bool is_valid_operand(const Checker* checker, char kind, int64_t value) {
  DLDataType dtype;
  switch (kind) {
    case 'd':
    case 'r':
      return is_below(value, checker->function->num_registers);
    case 'o':
      return value == -1 || is_below(value, checker->function->num_registers);
    case 'f':
      return is_below(value, checker->vm->num_functions);
    case 'k':
      return is_below(value, checker->vm->num_kernels);
    case 'c':
      return is_below(value, checker->vm->num_constants);
    case 's':
      return is_below(value, checker->vm->num_texts);
    case 't':
      return unpack_dtype(value, &dtype);
    case 'n':
      return value >= 0;
    default: /* 'i'; and 'j', which is looked at when all beginnings are known */
      return true;
  }
}

/* The number of words of the instruction at `at`; 0 when it is none. */
static int64_t instruction_words(const Checker* checker, int64_t at) {
  static const char* const layouts[] = TW_VM_LAYOUTS;
  const TwVMFunction* function = checker->function;
  const int64_t* code = function->code;
  if (!is_below(code[at], TW_VM_NUM_OPCODES)) return 0;
  int64_t next = at + 1;
  for (const char* kind = layouts[code[at]]; *kind != 0; ++kind) {
    if (next >= function->num_words) return 0;
    if (*kind != 'R' && *kind != 'N') {
      if (!is_valid_operand(checker, *kind, code[next++])) return 0;
      continue;
    }
    int64_t count = code[next++];
    if (count < 0 || count > function->num_words - next) return 0;
    for (int64_t i = 0; i < count; ++i) {
      if (!is_valid_operand(checker, *kind == 'R' ? 'r' : 'n', code[next++])) return 0;
    }
  }
  return next - at;
}

/* What the layout does not tell. */
static bool is_valid_instruction(const Checker* checker, int64_t at) {
  const int64_t* code = checker->function->code + at;
  const TwVMFunction* functions = checker->vm->functions;
  int64_t left = checker->function->num_words - at;
  switch (code[0]) {
    case TW_VM_INVOKE:
      return code[3] == functions[code[2]].num_params;
    case TW_VM_ALLOC_CLOSURE:
      return code[3] <= functions[code[2]].num_params;
    case TW_VM_INVOKE_PACKED:
      return code[2] <= code[3];
    case TW_VM_ALLOC_TENSOR:
      return code[3] % TW_ALIGNMENT == 0 && code[5] <= TW_MOST_DIMENSIONS;
    case TW_VM_ALLOC_TENSOR_REG:
      return code[3] % TW_ALIGNMENT == 0;
    case TW_VM_IF:
      return is_below(code[3], left) && is_below(code[4], left) && code[3] > 0 && code[4] > 0 && checker->is_start[at + code[3]] &&
             checker->is_start[at + code[4]];
    case TW_VM_GOTO:
      return is_below(code[1], left) && code[1] > 0 && checker->is_start[at + code[1]];
    default:
      return true;
  }
}

static int32_t check_function(const Checker* checker) {
  const TwVMFunction* function = checker->function;
  int64_t last = -1;
  for (int64_t at = 0, size; at < function->num_words; at += size) {
    size = instruction_words(checker, at);
    if (size == 0) {
      return tw_fail("ValueError", "the program of the virtual machine is damaged: word %lld of %s is not an instruction", (long long)at,
                     function->name);
    }
    checker->is_start[at] = 1;
    last = at;
  }
  if (last < 0 || (function->code[last] != TW_VM_RET && function->code[last] != TW_VM_FATAL)) {
    return damaged("a function does not end with a return");
  }
  for (int64_t at = 0; at < function->num_words; ++at) {
    if (checker->is_start[at] && !is_valid_instruction(checker, at)) {
      return tw_fail("ValueError", "the program of the virtual machine is damaged: the instruction at word %lld of %s does not hold together",
                     (long long)at, function->name);
    }
  }
  return 0;
}

/* Finds the devices that an instruction names, and puts the constant that it loads on one. */
static int32_t prepare_devices(TilewrightVM* vm, const int64_t* code) {
  static const struct {
    int64_t opcode;
    int at;
  } named[] = {{TW_VM_DEVICE_COPY, 3}, {TW_VM_DEVICE_COPY, 5}, {TW_VM_ALLOC_STORAGE_ON, 5}, {TW_VM_LOAD_CONST_ON, 3}};
  for (size_t i = 0; i < sizeof named / sizeof named[0]; ++i) {
    if (code[0] != named[i].opcode) continue;
    const int64_t* device = code + named[i].at;
    int32_t place = tw_vm_place(vm, device[0], device[1]);
    if (place < 0) return no_device(device[0], device[1]);
    if (code[0] == TW_VM_LOAD_CONST_ON && place_constant(vm, code[2], place) != 0) return -1;
  }
  return 0;
}

static int32_t check_functions(TilewrightVM* vm) {
  for (int32_t i = 0; i < vm->num_functions; ++i) {
    Checker checker = {vm, &vm->functions[i], calloc((size_t)vm->functions[i].num_words + 1, 1)};
    if (checker.is_start == NULL) return tw_fail("MemoryError", "no memory to check a program of the virtual machine");
    int32_t status = check_function(&checker);
    for (int64_t at = 0; status == 0 && at < checker.function->num_words; ++at) {
      if (checker.is_start[at]) status = prepare_devices(vm, checker.function->code + at);
    }
    free(checker.is_start);
    if (status != 0) return -1;
  }
  return 0;
}

int32_t tw_vm_read(TilewrightVM* vm, const char* data, size_t size, TilewrightObject* const* constants, int32_t num_constants,
                   TilewrightFind find, void* context) {
  Reader reader = {vm, data, data + size};
  tilewright_clear_error(); /* so that an error after a look-up is the look-up's */
  if (size < 8 || memcmp(data, MAGIC, 8) != 0) return damaged("it does not begin as one");
  reader.at += 8;
  if (read_texts(&reader) != 0 || read_kernels(&reader, find, context) != 0) return -1;
  if (read_constants(&reader, constants, num_constants) != 0 || read_functions(&reader) != 0) return -1;
  if (read_outputs(&reader) != 0) return -1;
  return check_functions(vm);
}

/* ---- life ---- */
int32_t tilewright_vm_create(const char* data, size_t size, TilewrightObject* const* constants, int32_t num_constants,
                             TilewrightFind find, void* context, int32_t keeps_memory, TilewrightVM** out) {
  return tilewright_vm_create_on(data, size, constants, num_constants, find, context, keeps_memory, NULL, 0, out);
}

int32_t tilewright_vm_create_on(const char* data, size_t size, TilewrightObject* const* constants, int32_t num_constants,
                                TilewrightFind find, void* context, int32_t keeps_memory, const DLDevice* devices, int32_t num_devices,
                                TilewrightVM** out) {
  TilewrightVM* vm = calloc(1, sizeof *vm);
  if (vm == NULL) return tw_fail("MemoryError", "no memory for a virtual machine");
  atomic_store(&vm->references, 1);
  vm->most_frames = (int64_t)1 << 20;
  if (take_devices(vm, devices, num_devices) == 0) vm->pool = tw_pool_create(keeps_memory != 0, vm->devices, vm->num_devices);
  if (vm->pool == NULL || tw_vm_read(vm, data, size, constants, num_constants, find, context) != 0) {
    tilewright_vm_release(vm);
    return -1;
  }
  *out = vm;
  return 0;
}

void tilewright_vm_retain(TilewrightVM* vm) { atomic_fetch_add(&vm->references, 1); }

void tilewright_vm_release(TilewrightVM* vm) {
  if (vm == NULL || atomic_fetch_sub(&vm->references, 1) != 1) return;
  for (int32_t i = 0; i < vm->num_kernels; ++i) tilewright_object_release(vm->kernels[i].function);
  for (int32_t i = 0; i < vm->num_constants; ++i) {
    tilewright_object_release(vm->constants[i]);
    for (int32_t place = 0; place < vm->num_devices; ++place) {
      if (vm->placed[place] != NULL) tilewright_object_release(vm->placed[place][i]);
    }
  }
  tw_pool_release(vm->pool);
  tilewright_call_log_release(vm->log);
  while (vm->memory != NULL) {
    Memory* memory = vm->memory;
    vm->memory = memory->next;
    free(memory);
  }
  free(vm);
}

int32_t tilewright_vm_num_functions(const TilewrightVM* vm) { return vm->num_functions; }

int32_t tilewright_vm_function_index(const TilewrightVM* vm, const char* name) {
  for (int32_t i = 0; i < vm->num_functions; ++i) {
    if (strcmp(vm->functions[i].name, name) == 0) return i;
  }
  return -1;
}

int32_t tilewright_vm_num_params(const TilewrightVM* vm, int32_t function) {
  return function >= 0 && function < vm->num_functions ? vm->functions[function].num_params : -1;
}

void tilewright_vm_set_call_log(TilewrightVM* vm, TilewrightCallLog* log) {
  if (log != NULL) tw_call_log_retain(log);
  tilewright_call_log_release(vm->log);
  vm->log = log;
}

void tilewright_vm_set_limits(TilewrightVM* vm, int64_t most_frames, int64_t most_instructions, uint64_t most_bytes) {
  vm->most_frames = most_frames;
  vm->most_instructions = most_instructions;
  tw_pool_set_limit(vm->pool, most_bytes);
}
