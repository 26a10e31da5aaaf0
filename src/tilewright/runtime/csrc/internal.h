/* What the runtime's files share with one another, and with nobody else. */
#ifndef TILEWRIGHT_INTERNAL_H_
#define TILEWRIGHT_INTERNAL_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "platform.h"
#include "tilewright.h"

/* An error as data: owned strings, or all zero for no error. */
typedef struct {
  char* kind;
  char* message;
  uint64_t payload;
} TwError;

#define TW_CACHED_BLOCKS 16

/* What each thread keeps. Zero-initialised; `tw_thread` arranges its release at thread exit. */
typedef struct {
  TwError error;
  struct {
    struct TwBlock* blocks[TW_CACHED_BLOCKS]; /* free blocks, the latest freed last */
    int32_t count;
    uint64_t num_bytes;
  } workspace;
  bool registered;
  bool in_parallel;
} TwThreadState;

TwThreadState* tw_thread(void);

/* Logs something other than a call of a function, from here to `end`: its place in the log, or -1 with an error. */
int64_t tw_call_log_begin(TilewrightCallLog* log, int64_t number);
void tw_call_log_end(TilewrightCallLog* log, int64_t at);
void tw_call_log_retain(TilewrightCallLog* log);

/* Sets a general error where a task failed without setting one. */
void tw_error_require(void);

/* Moves the thread's error out, a general one where none is set; moves it into the thread. */
TwError tw_error_take(void);
void tw_error_give(TwError error);

/* printf into the error slot; always returns -1, so that callers can `return tw_fail(...)`. */
int32_t tw_fail(const char* kind, const char* format, ...) __attribute__((format(printf, 2, 3)));

/* When a run last asked whether to go on; zero at its start. Not 0: it ends, with the error that is set. */
typedef struct {
  uint64_t asked;
  int32_t left;
} TwInterrupts;
int32_t tw_ask_interrupt(TwInterrupts* state);
static inline int32_t tw_interrupted(TwInterrupts* state) { return --state->left > 0 ? 0 : tw_ask_interrupt(state); }

/* The name of a data type for a message: "float32", "bool", "int8x4"; it stands in the caller's memory. */
typedef struct {
  char text[48];
} TwDataTypeName;
const char* tw_data_type_name(TwDataTypeName* name, DLDataType dtype);

/* The name of a kind of device: "cuda", "type 42". */
typedef struct {
  char text[40];
} TwDeviceKind;
const char* tw_device_kind(TwDeviceKind* kind, int32_t device_type);

/* What kind of argument a value is: "a tensor", "an integer". */
const char* tw_argument_kind(int32_t type_index);

/* Starts an object with one reference. `deleter(self, flags)`: bit 0 ends the value, bit 1 frees the memory. */
void tw_object_init(TilewrightObject* object, int32_t type_index, void (*deleter)(void* self, int flags));
enum { TW_DELETE_VALUE = 1, TW_DELETE_MEMORY = 2 };

/* Tensors of more are refused wherever they are read. */
#define TW_MOST_DIMENSIONS 64

/* True if the elements lie one behind the other, in row-major order. */
bool tw_is_compact(const DLTensor* tensor);

void tw_workspace_release_all(TwThreadState* state);

/* Default number of threads, and the CPUs of one speed class. Both look at the machine each time. */
int32_t tw_default_num_threads(void);
bool tw_restrict_to_speed_class(int32_t affinity_mode);

/* The CPU that this thread runs on, -1 where the system does not say; and its number for `tw_keep_off_cpu`. */
int32_t tw_current_cpu(void);
int32_t tw_thread_number(void);

/* CPUs that a thread may use, as the system keeps them. */
typedef struct {
  bool changed;
  unsigned char bits[128];
} TwCpus;

/* Keeps a thread (0: this one) off a CPU if it may use another; gives what to undo that with. */
TwCpus tw_keep_off_cpu(int32_t thread, int32_t cpu);
void tw_allow_cpus(const TwCpus* before); /* this thread again */

/* The slots of generated code are symbols: this, and the name of the function that is called. */
#define TW_SLOT_PREFIX "__tilewright_packed_"


/* Calls `visit` for each module that a library carries as data, until it fails: the kind of module, and its content. */
int32_t tw_for_each_import(void* library, const char* path,
                           int32_t (*visit)(void* context, const char* type_key, const char* content, uint64_t size), void* context);

/* Binds the code of a library to the modules of kernels that it carries. The slots hold them. */
int32_t tw_bind_imports(void* library, const char* path);

/* Functions of the runtime itself that the registry starts with. */
int32_t tw_cache_flush_cpu_non_first_arg(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
int32_t tw_set_device_packed(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
int32_t tw_random_seed(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
int32_t tw_random_integers(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
int32_t tw_random_uniform(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
int32_t tw_random_normal(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
int32_t tw_random_fill(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
int32_t tw_argsort(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
int32_t tw_argsort_valid(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
int32_t tw_sort(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
int32_t tw_topk(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

/* The table of the runtime that loaded this artefact, or NULL: an artefact then stands on its own copy. */
#ifdef TILEWRIGHT_EMBEDDED
const TilewrightHost* tw_bound_host(void);
#else
static inline const TilewrightHost* tw_bound_host(void) { return NULL; }
#endif

/* True if the table of a host, which may be older than this file, has a member. */
#define TW_HOST_HAS(host, member) \
  ((host) != NULL && (host)->size >= offsetof(TilewrightHost, member) + sizeof (host)->member)

#endif
