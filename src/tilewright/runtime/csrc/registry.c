/* The global registry: names to functions. Entries are never freed, so that generated code may remember one. */
#include <stdlib.h>
#include <string.h>

#include "device.h"

#define BUCKETS 1024

typedef struct Entry {
  struct Entry* next;
  TilewrightObject* function; /* NULL once removed */
  char name[];
} Entry;

static TwMutex lock = TW_MUTEX_INIT;
static Entry* buckets[BUCKETS];
static bool watches_forks, has_builtins;

static void lock_for_fork(void) { tw_mutex_lock(&lock); }
static void unlock_after_fork(void) { tw_mutex_unlock(&lock); }

static Entry** bucket_of(const char* name) {
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (const char* at = name; *at != 0; ++at) hash = (hash ^ (unsigned char)*at) * 16777619u;
  return &buckets[hash % BUCKETS];
}

/* The entry of a name, made when missing and `create` is set. The lock is held. */
static Entry* find_entry(const char* name, bool create) {
  Entry** bucket = bucket_of(name);
  for (Entry* entry = *bucket; entry != NULL; entry = entry->next) {
    if (strcmp(entry->name, name) == 0) return entry;
  }
  if (!create) return NULL;
  size_t size = strlen(name) + 1;
  Entry* entry = malloc(sizeof *entry + size);
  if (entry == NULL) return NULL;
  memcpy(entry->name, name, size);
  entry->function = NULL;
  entry->next = *bucket;
  *bucket = entry;
  return entry;
}

static bool add_builtin(const char* name, TilewrightFunction call) {
  Entry* entry = find_entry(name, true);
  if (entry == NULL) return false;
  return entry->function != NULL || tilewright_function_create(call, NULL, NULL, NULL, &entry->function) == 0;
}

/* Without memory for them, the runtime's own functions are tried again the next time. */
static void lock_registry(void) {
  tw_mutex_lock(&lock);
  if (has_builtins) return;
  if (!watches_forks) tw_at_fork(lock_for_fork, unlock_after_fork, unlock_after_fork);
  watches_forks = true;
  has_builtins = add_builtin("cache_flush_cpu_non_first_arg", tw_cache_flush_cpu_non_first_arg) &&
                 add_builtin("__tvm_set_device", tw_set_device_packed) &&
                 add_builtin("tvm.contrib.random.seed", tw_random_seed) &&
                 add_builtin("tvm.contrib.random.randint", tw_random_integers) &&
                 add_builtin("tvm.contrib.random.uniform", tw_random_uniform) &&
                 add_builtin("tvm.contrib.random.normal", tw_random_normal) &&
                 add_builtin("tvm.contrib.random.random_fill", tw_random_fill) &&
                 add_builtin("tvm.contrib.random.random_fill_for_measure", tw_random_fill) &&
                 add_builtin("tvm.contrib.sort.argsort", tw_argsort) &&
                 add_builtin("tvm.contrib.sort.argsort_nms", tw_argsort_valid) &&
                 add_builtin("tvm.contrib.sort.sort", tw_sort) &&
                 add_builtin("tvm.contrib.sort.topk", tw_topk);
}

int32_t tilewright_register_function(const char* name, TilewrightObject* function, int32_t override) {
  if (name == NULL || *name == 0 || strchr(name, '\n') != NULL) {
    return tw_fail("ValueError", "a global function needs a name of one line");
  }
  if (function == NULL || function->type_index != TILEWRIGHT_FUNCTION) {
    return tw_fail("TypeError", "only a function can be registered as %s", name);
  }
  lock_registry();
  Entry* entry = find_entry(name, true);
  TilewrightObject* before = entry == NULL ? NULL : entry->function;
  bool accepted = entry != NULL && (before == NULL || override);
  if (accepted) {
    tilewright_object_retain(function);
    entry->function = function;
  }
  tw_mutex_unlock(&lock);
  if (entry == NULL) return tw_fail("MemoryError", "no memory to register %s", name);
  if (!accepted) return tw_fail("ValueError", "a global function %s is registered already; pass override to replace it", name);
  tilewright_object_release(before); /* outside the lock: a finalizer may use the registry */
  return 0;
}

static TilewrightObject* retain_function(Entry* entry) {
  TilewrightObject* function = entry == NULL ? NULL : entry->function;
  if (function != NULL) tilewright_object_retain(function);
  return function;
}

TilewrightObject* tilewright_get_function(const char* name) {
  lock_registry();
  TilewrightObject* function = retain_function(find_entry(name, false));
  tw_mutex_unlock(&lock);
  return function;
}

int32_t tilewright_remove_function(const char* name) {
  lock_registry();
  Entry* entry = find_entry(name, false);
  TilewrightObject* removed = entry == NULL ? NULL : entry->function;
  if (entry != NULL) entry->function = NULL;
  tw_mutex_unlock(&lock);
  if (removed == NULL) return tw_fail("ValueError", "there is no global function %s to remove", name);
  tilewright_object_release(removed);
  return 0;
}

char* tilewright_list_functions(void) {
  lock_registry();
  size_t size = 1;
  for (int i = 0; i < BUCKETS; ++i) {
    for (const Entry* entry = buckets[i]; entry != NULL; entry = entry->next) {
      if (entry->function != NULL) size += strlen(entry->name) + 1;
    }
  }
  char* text = malloc(size);
  char* end = text;
  for (int i = 0; text != NULL && i < BUCKETS; ++i) {
    for (const Entry* entry = buckets[i]; entry != NULL; entry = entry->next) {
      if (entry->function == NULL) continue;
      size_t length = strlen(entry->name);
      memcpy(end, entry->name, length);
      end[length] = '\n';
      end += length + 1;
    }
  }
  if (text != NULL) *end = 0;
  tw_mutex_unlock(&lock);
  if (text == NULL) tw_fail("MemoryError", "no memory for the names of the global functions");
  return text;
}

void tilewright_free_text(char* text) { free(text); }

/* An artefact on its own may be loaded by a host that keeps a registry of tvm-ffi's kind. */
static TilewrightObject* find_in_tvm_ffi(const char* name) {
#ifdef TILEWRIGHT_EMBEDDED
  void* address = tw_process_symbol("TVMFFIFunctionGetGlobal");
  if (address == NULL) return NULL;
  int (*get_global)(const TilewrightByteArray*, void**);
  memcpy(&get_global, &address, sizeof get_global);
  TilewrightByteArray text = {name, strlen(name)};
  void* function = NULL;
  return get_global(&text, &function) == 0 ? function : NULL;
#else
  (void)name;
  return NULL;
#endif
}

/* A function of tvm-ffi leaves its error in tvm-ffi's slot of this thread, which another thread's caller cannot see. */
static void take_error_of_tvm_ffi(void) {
#ifdef TILEWRIGHT_EMBEDDED
  void* address = tw_process_symbol("TVMFFIErrorMoveFromRaised");
  if (address == NULL) return;
  void (*move_from_raised)(void**);
  memcpy(&move_from_raised, &address, sizeof move_from_raised);
  void* error = NULL;
  move_from_raised(&error);
  if (error == NULL) return;
  /* After the header: the kind, then the message. Both are zero-terminated strings of C++. */
  const TilewrightByteArray* texts = (const TilewrightByteArray*)((const TilewrightObject*)error + 1);
  tilewright_set_error(texts[0].data, texts[1].data);
  tilewright_object_release(error);
#endif
}

/* A slot is empty, remembers an entry of the registry, or is bound to a function: its address plus one. */
static TilewrightObject* bound_function(const void* content) {
  return (uintptr_t)content & 1 ? (TilewrightObject*)((uintptr_t)content - 1) : NULL;
}

int32_t tilewright_bind_function(void** slot, TilewrightObject* function) {
  const TilewrightHost* host = tw_bound_host();
  if (TW_HOST_HAS(host, bind_function)) return host->bind_function(slot, function);
  if (function != NULL && function->type_index != TILEWRIGHT_FUNCTION) {
    return tw_fail("TypeError", "code can be bound to a function, and to nothing else");
  }
  if (function != NULL) tilewright_object_retain(function);
  lock_registry();
  TilewrightObject* before = bound_function(*slot);
  *slot = function == NULL ? NULL : (void*)((uintptr_t)function + 1);
  tw_mutex_unlock(&lock);
  tilewright_object_release(before); /* outside the lock: a finalizer may use the registry */
  return 0;
}

int32_t tilewright_call_packed(const char* name, void** cache, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  const TilewrightHost* host = tw_bound_host();
  if (host != NULL) return host->call_packed(name, cache, args, num_args, result);
  lock_registry();
  TilewrightObject* function = bound_function(*cache);
  bool is_bound = function != NULL;
  if (function != NULL) {
    tilewright_object_retain(function); /* it may be unbound while it runs */
  } else {
    if (*cache == NULL) *cache = find_entry(name, false);
    function = retain_function(*cache);
  }
  tw_mutex_unlock(&lock);
  bool foreign = function == NULL;
  if (foreign) function = find_in_tvm_ffi(name);
  if (function == NULL) {
    return tw_fail("ValueError", "compiled code calls the global function %s, and no function of that name is registered", name);
  }
  if (!is_bound && tw_is_recording() && strcmp(name, "__tvm_set_device") != 0) {
    tilewright_object_release(function);
    return tw_fail("RuntimeError", "a call of the global function %s cannot be recorded", name);
  }
  int32_t status = tilewright_function_call(function, args, num_args, result);
  tilewright_object_release(function);
  if (foreign && status != 0) take_error_of_tvm_ffi();
  return status;
}
