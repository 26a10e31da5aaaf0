/* Modules of kernels: an image for a kind of device, and functions that launch what is in it. */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "device_tensor_map.h"

#define MOST_ARGS 256
#define MOST_AXES 9

typedef struct {
  TilewrightDeviceModule* module;
  char* name;
  DLDataType* arg_types;
  int32_t num_args, num_axes;
  int32_t axes[MOST_AXES]; /* 0 to 2: of the grid; 3 to 5: of the block; 6 to 8: of the cluster */
  bool has_shared_bytes;
  uint32_t flags;
  TwTensorMaps* maps; /* parameters that are made from the arguments; NULL: none */
} Kernel;

/* The image on one device; kernels are looked up when they are first launched. */
typedef struct Loaded {
  struct Loaded* next;
  int32_t device_id;
  void* module;
  _Atomic(void*) functions[];
} Loaded;

struct TilewrightDeviceModule {
  _Atomic int32_t references;
  int32_t device_type;
  const void* image;
  void* owned_image; /* NULL for an image of size 0 */
  size_t size;
  TwMutex lock; /* of loading */
  _Atomic(Loaded*) loaded;
  int32_t num_kernels;
  Kernel kernels[];
};

static const char* const axis_names[MOST_AXES] = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z",      "threadIdx.x",     "threadIdx.y",
                                                  "threadIdx.z", "clusterCtaIdx.x", "clusterCtaIdx.y", "clusterCtaIdx.z"};

/* ---- making and ending ---- */
void tilewright_device_module_release(TilewrightDeviceModule* module) {
  if (module == NULL || atomic_fetch_sub(&module->references, 1) != 1) return;
  for (Loaded* loaded = atomic_load(&module->loaded); loaded != NULL;) {
    Loaded* next = loaded->next;
    const TilewrightDeviceTable* table = tilewright_device_table(module->device_type);
    /* Whatever the driver says of it is not an error of whoever lets go of the last function. */
    if (table != NULL && table->module_unload != NULL) table->module_unload(loaded->device_id, loaded->module);
    free(loaded);
    loaded = next;
  }
  for (int32_t i = 0; i < module->num_kernels; ++i) {
    free(module->kernels[i].name);
    free(module->kernels[i].arg_types);
    tw_tensor_maps_free(module->kernels[i].maps);
  }
  free(module->owned_image);
  free(module);
}

static bool is_pointer(DLDataType type) { return type.code == kDLOpaqueHandle; }

static bool can_be_passed(DLDataType type) {
  if (type.lanes != 1) return false;
  if (is_pointer(type) || type.code == kDLBool) return true;
  if (type.code == kDLFloat) return type.bits == 32 || type.bits == 64;
  return (type.code == kDLInt || type.code == kDLUInt) && type.bits > 0 && type.bits <= 64;
}

static int32_t fill_kernel(Kernel* kernel, TilewrightDeviceModule* module, const TilewrightKernel* given) {
  kernel->module = module;
  const char* name = given->name != NULL ? given->name : "";
  if (*name == 0) return tw_fail("ValueError", "a kernel needs a name");
  for (int32_t other = 0; other < module->num_kernels; ++other) {
    if (strcmp(module->kernels[other].name, name) == 0) return tw_fail("ValueError", "there are two kernels called %s", name);
  }
  if (given->num_args < 0 || given->num_args > MOST_ARGS) {
    return tw_fail("ValueError", "%s has %d arguments; a kernel has up to %d", name, (int)given->num_args, MOST_ARGS);
  }
  if (given->num_axes < 0 || given->num_axes > MOST_AXES) {
    return tw_fail("ValueError", "%s has %d thread axes; a kernel has up to %d", name, (int)given->num_axes, MOST_AXES);
  }
  for (int32_t i = 0; i < given->num_args; ++i) {
    TwDataTypeName type;
    if (!can_be_passed(given->arg_types[i])) {
      return tw_fail("ValueError", "argument %d of %s is %s, which kernels cannot be given", (int)i, name,
                     tw_data_type_name(&type, given->arg_types[i]));
    }
  }
  for (int32_t i = 0; i < given->num_axes; ++i) {
    int32_t axis = 0;
    while (axis < MOST_AXES && strcmp(axis_names[axis], given->axes[i]) != 0) ++axis;
    if (axis == MOST_AXES) return tw_fail("ValueError", "%s has a thread axis %s, which kernels are not launched with", name, given->axes[i]);
    for (int32_t other = 0; other < i; ++other) {
      if (kernel->axes[other] == axis) return tw_fail("ValueError", "%s has the thread axis %s twice", name, given->axes[i]);
    }
    kernel->axes[i] = axis;
  }
  if (tw_tensor_maps_create(given, &kernel->maps) != 0) return -1;
  size_t length = strlen(name) + 1, types = (size_t)given->num_args * sizeof *given->arg_types;
  kernel->name = malloc(length);
  kernel->arg_types = malloc(types + 1);
  if (kernel->name == NULL || kernel->arg_types == NULL) {
    free(kernel->name);
    free(kernel->arg_types);
    tw_tensor_maps_free(kernel->maps);
    return tw_fail("MemoryError", "no memory for the kernel %s", name);
  }
  memcpy(kernel->name, name, length);
  if (types > 0) memcpy(kernel->arg_types, given->arg_types, types);
  kernel->num_args = given->num_args;
  kernel->num_axes = given->num_axes;
  kernel->has_shared_bytes = given->has_shared_bytes != 0;
  kernel->flags = given->launch_flags;
  return 0;
}

int32_t tilewright_device_module_create(int32_t device_type, const void* image, size_t size, const TilewrightKernel* kernels,
                                        int32_t num_kernels, TilewrightDeviceModule** out) {
  if (num_kernels < 0) return tw_fail("ValueError", "a module cannot have %d kernels", (int)num_kernels);
  TilewrightDeviceModule* module = calloc(1, sizeof *module + (size_t)num_kernels * sizeof *module->kernels);
  if (module == NULL) return tw_fail("MemoryError", "no memory for a module of %d kernels", (int)num_kernels);
  atomic_init(&module->references, 1);
  module->device_type = device_type;
  tw_mutex_init(&module->lock);
  module->size = size;
  module->image = image;
  if (size > 0) {
    module->image = module->owned_image = malloc(size);
    if (module->image == NULL) {
      tilewright_device_module_release(module);
      return tw_fail("MemoryError", "no memory for an image of %zu bytes", size);
    }
    memcpy(module->owned_image, image, size);
  }
  for (int32_t i = 0; i < num_kernels; ++i) {
    if (fill_kernel(&module->kernels[i], module, &kernels[i]) != 0) {
      tilewright_device_module_release(module);
      return -1;
    }
    module->num_kernels = i + 1;
  }
  *out = module;
  return 0;
}

/* ---- loading ---- */
static Loaded* find_loaded(TilewrightDeviceModule* module, int32_t device_id) {
  Loaded* at = atomic_load_explicit(&module->loaded, memory_order_acquire);
  while (at != NULL && at->device_id != device_id) at = at->next;
  return at;
}

/* The image on a device. The lock is held. */
static Loaded* load(TilewrightDeviceModule* module, DLDevice device) {
  Loaded* loaded = find_loaded(module, device.device_id);
  if (loaded != NULL) return loaded;
  loaded = calloc(1, sizeof *loaded + (size_t)module->num_kernels * sizeof *loaded->functions);
  if (loaded == NULL) {
    tw_fail("MemoryError", "no memory to load a module of %d kernels", (int)module->num_kernels);
    return NULL;
  }
  loaded->device_id = device.device_id;
  if (tilewright_module_load(device, module->image, module->size, &loaded->module) != 0) {
    free(loaded);
    return NULL;
  }
  loaded->next = atomic_load(&module->loaded);
  atomic_store_explicit(&module->loaded, loaded, memory_order_release);
  return loaded;
}

/* The kernel on a device, as its driver has it; NULL with an error. */
static void* find_function(Kernel* kernel, DLDevice device) {
  TilewrightDeviceModule* module = kernel->module;
  ptrdiff_t index = kernel - module->kernels;
  Loaded* loaded = find_loaded(module, device.device_id);
  void* function = loaded != NULL ? atomic_load_explicit(&loaded->functions[index], memory_order_acquire) : NULL;
  if (function != NULL) return function;
  tw_mutex_lock(&module->lock);
  loaded = load(module, device);
  if (loaded != NULL && tilewright_module_function(device, loaded->module, kernel->name, &function) == 0) {
    atomic_store_explicit(&loaded->functions[index], function, memory_order_release);
  } else {
    function = NULL;
  }
  tw_mutex_unlock(&module->lock);
  return function;
}

/* ---- launching ---- */
static int32_t wrong_kind(const Kernel* kernel, int32_t index, const char* wanted, const TVMFFIAny* given) {
  return tw_fail("TypeError", "argument %d of %s must be %s, not %s", (int)index, kernel->name, wanted, tw_argument_kind(given->type_index));
}

static int32_t pointer_of(const Kernel* kernel, int32_t index, const TVMFFIAny* given, DLDevice device, void** out) {
  if (given->type_index == TILEWRIGHT_POINTER || given->type_index == TILEWRIGHT_NONE) {
    *out = given->type_index == TILEWRIGHT_POINTER ? given->v_ptr : NULL;
    return 0;
  }
  const DLTensor* tensor = NULL;
  if (given->type_index == TILEWRIGHT_DLTENSOR) tensor = given->v_ptr;
  if (given->type_index == TILEWRIGHT_TENSOR) tensor = tilewright_tensor_dltensor(given->v_obj);
  if (tensor == NULL) return wrong_kind(kernel, index, "a tensor or a pointer", given);
  if (!tw_same_device(tensor->device, device)) {
    TwDeviceName wanted, found;
    return tw_fail("ValueError", "argument %d of %s must be on %s, not on %s", (int)index, kernel->name,
                   tw_device_name(&wanted, device), tw_device_name(&found, tensor->device));
  }
  *out = (char*)tensor->data + tensor->byte_offset;
  return 0;
}

/* Writes an argument as the kernel reads it: of the type's size, from the start of eight bytes. */
static int32_t convert(const Kernel* kernel, int32_t index, const TVMFFIAny* given, DLDevice device, void* out) {
  DLDataType type = kernel->arg_types[index];
  memset(out, 0, 8);
  if (is_pointer(type)) {
    void* pointer = NULL;
    if (pointer_of(kernel, index, given, device, &pointer) != 0) return -1;
    memcpy(out, &pointer, sizeof pointer);
    return 0;
  }
  bool is_integer = given->type_index == TILEWRIGHT_INT || given->type_index == TILEWRIGHT_BOOL;
  if (type.code == kDLFloat) {
    if (!is_integer && given->type_index != TILEWRIGHT_FLOAT) return wrong_kind(kernel, index, "a number", given);
    double value = is_integer ? (double)given->v_int64 : given->v_float64;
    float single = (float)value;
    memcpy(out, type.bits == 32 ? (void*)&single : (void*)&value, type.bits / 8);
    return 0;
  }
  if (!is_integer) return wrong_kind(kernel, index, "an integer", given);
  int64_t value = given->v_int64;
  int8_t truth = value != 0;
  int16_t narrow = (int16_t)value;
  int32_t medium = (int32_t)value;
  int8_t small = (int8_t)value;
  if (type.code == kDLBool || type.bits == 1) {
    memcpy(out, &truth, 1);
  } else if (type.bits <= 8) {
    memcpy(out, &small, 1);
  } else if (type.bits <= 16) {
    memcpy(out, &narrow, 2);
  } else if (type.bits <= 32) {
    memcpy(out, &medium, 4);
  } else {
    memcpy(out, &value, 8);
  }
  return 0;
}

/* The parameters that the kernel reads: its arguments, with its tensor maps, made in `maps`, in between. */
static int32_t place_maps(const Kernel* kernel, DLDevice device, const TVMFFIAny* args, void** pointers,
                          unsigned char maps[][TILEWRIGHT_TENSOR_MAP_BYTES]) {
  int32_t count = tw_tensor_maps_count(kernel->maps), arg = kernel->num_args;
  void* bases[TW_MOST_TENSOR_MAPS];
  for (int32_t i = 0; i < count; ++i) memcpy(&bases[i], pointers[tw_tensor_maps_base(kernel->maps, i)], sizeof bases[i]);
  for (int32_t i = count - 1, at = kernel->num_args + count - 1; i >= 0; --at) {
    if (at != tw_tensor_maps_position(kernel->maps, i)) {
      pointers[at] = pointers[--arg];
      continue;
    }
    if (tw_tensor_map_make(kernel->maps, i, kernel->name, device, args, bases[i], maps[i]) != 0) return -1;
    pointers[at] = maps[i--];
  }
  return 0;
}

static int32_t launch(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  Kernel* kernel = self;
  int32_t wanted = kernel->num_args + kernel->num_axes + kernel->has_shared_bytes;
  *result = (TVMFFIAny){0};
  if (num_args != wanted) {
    return tw_fail("TypeError", "%s takes %d arguments, then %d extents of thread axes%s; %d were given", kernel->name,
                   (int)kernel->num_args, (int)kernel->num_axes, kernel->has_shared_bytes ? " and the bytes of its shared memory" : "",
                   (int)num_args);
  }
  DLDevice device = {kernel->module->device_type, tilewright_current_device(kernel->module->device_type)};
  int64_t values[MOST_ARGS];
  void* pointers[MOST_ARGS + TW_MOST_TENSOR_MAPS];
  for (int32_t i = 0; i < kernel->num_args; ++i) {
    if (convert(kernel, i, &args[i], device, &values[i]) != 0) return -1;
    pointers[i] = &values[i];
  }
  int32_t extents[MOST_AXES] = {1, 1, 1, 1, 1, 1, 0, 0, 0};
  bool is_empty = false, has_cluster = false;
  for (int32_t i = 0; i < kernel->num_axes; ++i) {
    const TVMFFIAny* given = &args[kernel->num_args + i];
    const char* axis = axis_names[kernel->axes[i]];
    if (given->type_index != TILEWRIGHT_INT) return wrong_kind(kernel, kernel->num_args + i, "an integer", given);
    if (given->v_int64 < 0 || given->v_int64 > INT32_MAX) {
      return tw_fail("ValueError", "%s cannot be launched with %lld for %s", kernel->name, (long long)given->v_int64, axis);
    }
    extents[kernel->axes[i]] = (int32_t)given->v_int64;
    if (kernel->axes[i] >= 6) has_cluster = true;
    is_empty = is_empty || given->v_int64 == 0;
  }
  uint32_t shared_bytes = 0;
  if (kernel->has_shared_bytes) {
    const TVMFFIAny* given = &args[num_args - 1];
    if (given->type_index != TILEWRIGHT_INT) return wrong_kind(kernel, num_args - 1, "an integer", given);
    if (given->v_int64 < 0 || given->v_int64 > INT32_MAX) {
      return tw_fail("ValueError", "%s cannot have %lld bytes of shared memory", kernel->name, (long long)given->v_int64);
    }
    shared_bytes = (uint32_t)given->v_int64;
  }
  if (is_empty) return 0;
  void* function = find_function(kernel, device);
  if (function == NULL) return -1;
  int32_t num_params = kernel->num_args + tw_tensor_maps_count(kernel->maps);
  _Alignas(64) unsigned char maps[TW_MOST_TENSOR_MAPS][TILEWRIGHT_TENSOR_MAP_BYTES];
  if (kernel->maps != NULL && place_maps(kernel, device, args, pointers, maps) != 0) return -1;
  if (!has_cluster && kernel->flags == 0) {
    return tilewright_launch(device, function, pointers, num_params, extents, extents + 3, shared_bytes, NULL);
  }
  TilewrightLaunch how = {.shared_bytes = shared_bytes, .flags = kernel->flags};
  memcpy(how.grid, extents, sizeof how.grid);
  memcpy(how.block, extents + 3, sizeof how.block);
  for (int i = 0; has_cluster && i < 3; ++i) how.cluster[i] = extents[6 + i] > 0 ? extents[6 + i] : 1;
  return tilewright_launch_with(device, function, pointers, num_params, &how, NULL);
}

static void release_owner(void* owner) { tilewright_device_module_release(owner); }

static Kernel* kernel_named(TilewrightDeviceModule* module, const char* name) {
  for (int32_t i = 0; i < module->num_kernels; ++i) {
    if (strcmp(module->kernels[i].name, name) == 0) return &module->kernels[i];
  }
  tw_fail("ValueError", "the module has no kernel %s", name);
  return NULL;
}

int32_t tilewright_device_module_function(TilewrightDeviceModule* module, const char* name, TilewrightObject** out) {
  Kernel* kernel = kernel_named(module, name);
  if (kernel == NULL || tilewright_function_create(launch, kernel, module, release_owner, out) != 0) return -1;
  atomic_fetch_add(&module->references, 1);
  return 0;
}

int32_t tilewright_device_module_needs(TilewrightDeviceModule* module, const char* name, int32_t threads, uint32_t shared_bytes,
                                       TilewrightKernelNeeds* out) {
  Kernel* kernel = kernel_named(module, name);
  if (kernel == NULL) return -1;
  DLDevice device = {module->device_type, tilewright_current_device(module->device_type)};
  void* function = find_function(kernel, device);
  return function == NULL ? -1 : tilewright_kernel_needs(device, function, threads, shared_bytes, out);
}
