/* The CUDA driver: its library, found when it is first asked for, its devices, and its errors in words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

#if defined(_WIN32)
#define DRIVER_LIBRARY "nvcuda.dll"
#else
#define DRIVER_LIBRARY "libcuda.so.1"
#endif

/* Names another library to use as the driver: tests have one without a GPU. */
#define DRIVER_OPTION "TILEWRIGHT_CUDA_DRIVER"

TwCudaFunctions tw_cu;

static TwMutex lock = TW_MUTEX_INIT;
static _Atomic bool is_loaded; /* and initialised, with `num_devices` known */
static bool is_forked;         /* since it was loaded */
static int32_t num_devices;
static TwCudaDevice devices[TW_MOST_CUDA_DEVICES];

/* ---- errors ---- */
bool tw_cuda_is_fatal(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
      return true;
    default: /* a broken stack, instruction, address or counter, and every other failure of a kernel */
      return result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED;
  }
}

void tw_cuda_describe(CUresult result, char* text, size_t size) {
  const char *name = NULL, *words = NULL;
  if (tw_cu.GetErrorName == NULL || tw_cu.GetErrorName(result, &name) != CUDA_SUCCESS) name = NULL;
  if (tw_cu.GetErrorString == NULL || tw_cu.GetErrorString(result, &words) != CUDA_SUCCESS) words = NULL;
  if (name != NULL) {
    snprintf(text, size, "%s: %s", name, words != NULL ? words : "no more is known");
  } else {
    snprintf(text, size, "error %d of the CUDA driver", (int)result);
  }
}

int32_t tw_cuda_fail(int32_t device_id, CUresult result, const char* doing) {
  char words[256], message[1200];
  tw_cuda_describe(result, words, sizeof words);
  const char* kernel = atomic_load(&devices[device_id].last_kernel);
  int length = snprintf(message, sizeof message, "cuda(%d) could not %.400s: %s", (int)device_id, doing, words);
  if (tw_cuda_is_fatal(result)) {
    snprintf(message + length, sizeof message - (size_t)length,
             ". A kernel has crashed; the last one that was launched is %.200s. The device is lost to this process, with all that was "
             "in its memory: start another process to use it again",
             kernel != NULL ? kernel : "not one of this runtime's");
  }
  tilewright_set_error("RuntimeError", message);
  return -1;
}

/* ---- loading ---- */
static const char* library_name(void) {
  const char* name = tw_environment(DRIVER_OPTION);
  return name != NULL && *name != 0 ? name : DRIVER_LIBRARY;
}

/* Fills `tw_cu`; the name of a function that the library lacks, or NULL. */
static const char* find_functions(void* library) {
  void* found;
#define FIND(name, symbol, arguments)       \
  found = tw_find_symbol(library, symbol);  \
  memcpy(&tw_cu.name, &found, sizeof found);
#define REQUIRE(name, symbol, arguments) \
  FIND(name, symbol, arguments)          \
  if (found == NULL) return symbol;
  TW_CUDA_FUNCTIONS(REQUIRE)
  TW_CUDA_NEWER_FUNCTIONS(FIND)
#undef REQUIRE
#undef FIND
  return NULL;
}

/* The driver's handles are not those of a child that is forked. */
static void note_fork(void) { is_forked = true; }

/* The lock is held. */
static int32_t load(void) {
  const char* name = library_name();
  void* library = tw_open_library(name);
  if (library == NULL) return tw_fail("RuntimeError", "there is no CUDA driver here: %s", tw_open_problem());
  const char* missing = find_functions(library);
  if (missing != NULL) {
    return tw_fail("RuntimeError", "%s has no function %s: this is not a CUDA driver, or an older one than CUDA 11", name, missing);
  }
  int count = 0;
  char words[256];
  CUresult result = tw_cu.Init(0);
  if (result == CUDA_SUCCESS) result = tw_cu.DeviceGetCount(&count);
  if (count > TW_MOST_CUDA_DEVICES) count = TW_MOST_CUDA_DEVICES;
  for (int32_t i = 0; i < count && result == CUDA_SUCCESS; ++i) result = tw_cuda_learn(&devices[i], i);
  if (result != CUDA_SUCCESS) {
    tw_cuda_describe(result, words, sizeof words);
    return tw_fail("RuntimeError", "the CUDA driver %s cannot be used: %s", name, words);
  }
  num_devices = count;
  for (int32_t i = 0; i < num_devices; ++i) {
    tw_mutex_init(&devices[i].lock);
    tw_mutex_init(&devices[i].pool.lock);
    tw_mutex_init(&devices[i].stage.lock);
  }
  tw_at_fork(NULL, NULL, note_fork);
  atomic_store_explicit(&is_loaded, true, memory_order_release);
  return 0;
}

bool tw_cuda_load(bool says_why) {
  if (atomic_load_explicit(&is_loaded, memory_order_acquire)) return true;
  tw_mutex_lock(&lock);
  bool loaded = atomic_load(&is_loaded) || load() == 0;
  tw_mutex_unlock(&lock);
  if (!loaded && !says_why) tilewright_clear_error();
  return loaded;
}

int32_t tw_cuda_count(void) { return tw_cuda_load(true) ? num_devices : 0; }

/* ---- devices ---- */
TwCudaDevice* tw_cuda_device(int32_t device_id) { return &devices[device_id]; }

/* The context of a device that is used for the first time. */
static CUcontext make_context(int32_t device_id) {
  TwCudaDevice* device = &devices[device_id];
  tw_mutex_lock(&device->lock);
  CUcontext context = atomic_load(&device->context);
  CUresult result = context == NULL ? tw_cu.DevicePrimaryCtxRetain(&context, device->device) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) {
    atomic_store_explicit(&device->context, context, memory_order_release);
  } else {
    context = NULL;
  }
  tw_mutex_unlock(&device->lock);
  if (context == NULL) tw_cuda_fail(device_id, result, "be opened");
  return context;
}

TwCudaDevice* tw_cuda_find(int32_t device_id) {
  if (!tw_cuda_load(true)) {
    char why[512];
    snprintf(why, sizeof why, "%s", tilewright_error_message());
    tw_fail("RuntimeError", "cuda(%d) cannot be used: %s", (int)device_id, why);
    return NULL;
  }
  if (device_id < 0 || device_id >= num_devices) {
    tw_fail("ValueError", "there is no cuda(%d): this process has %d such device%s", (int)device_id, (int)num_devices,
            num_devices == 1 ? "" : "s");
    return NULL;
  }
  return &devices[device_id];
}

TwCudaDevice* tw_cuda_enter(int32_t device_id) {
  if (tw_cuda_find(device_id) == NULL) return NULL;
  if (is_forked) {
    tw_fail("RuntimeError", "cuda(%d) cannot be used in a process that was forked from one with its driver; start a new one (spawn)",
            (int)device_id);
    return NULL;
  }
  CUcontext context = atomic_load_explicit(&devices[device_id].context, memory_order_acquire);
  if (context == NULL) context = make_context(device_id);
  if (context == NULL) return NULL;
  CUcontext current = NULL; /* another library of the process may have changed it */
  CUresult result = tw_cu.CtxGetCurrent(&current);
  if (result == CUDA_SUCCESS && current != context) result = tw_cu.CtxSetCurrent(context);
  if (result == CUDA_SUCCESS) return &devices[device_id];
  tw_cuda_fail(device_id, result, "be made current");
  return NULL;
}

/* ---- names of kernels ---- */
typedef struct Name {
  struct Name* next;
  char text[];
} Name;

/* A crash is reported long after the launch, when the module may be gone: names are kept. */
const char* tw_cuda_intern(const char* name) {
  static Name* names;
  tw_mutex_lock(&lock);
  Name* found = names;
  while (found != NULL && strcmp(found->text, name) != 0) found = found->next;
  if (found == NULL) {
    size_t size = strlen(name) + 1;
    found = malloc(sizeof *found + size);
    if (found != NULL) {
      memcpy(found->text, name, size);
      found->next = names;
      names = found;
    }
  }
  tw_mutex_unlock(&lock);
  if (found != NULL) return found->text;
  tw_fail("MemoryError", "no memory for the name of the kernel %s", name);
  return NULL;
}
