/* Libraries for programs without Python: loaded, bound to this runtime, and asked for functions. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

#if defined(_WIN32)
static void* open_library(const char* path) { return (void*)LoadLibraryA(path); }
static const char* open_problem(void) { return "the system refuses it"; }
static void* find_symbol(void* library, const char* name) {
  FARPROC found = GetProcAddress((HMODULE)library, name);
  void* address;
  memcpy(&address, &found, sizeof address);
  return address;
}
#elif TW_HAS_THREADS
#include <dlfcn.h>
#include <unistd.h>
/* A file of this folder, named without a slash, is meant before a library of the system's folders, where `dlopen` looks. */
static void* open_library(const char* path) {
  char here[4096];
  bool is_here = strchr(path, '/') == NULL && snprintf(here, sizeof here, "./%s", path) < (int)sizeof here && access(here, F_OK) == 0;
  return dlopen(is_here ? here : path, RTLD_NOW | RTLD_LOCAL);
}
static const char* open_problem(void) {
  const char* problem = dlerror();
  return problem != NULL ? problem : "the system refuses it";
}
static void* find_symbol(void* library, const char* name) { return dlsym(library, name); }
#else
static void* open_library(const char* path) {
  (void)path;
  return NULL;
}
static const char* open_problem(void) { return "this system loads no libraries"; }
static void* find_symbol(void* library, const char* name) {
  (void)library;
  (void)name;
  return NULL;
}
#endif

/* The first CPU feature that the library needs and the machine lacks, copied to `missing`; false when there is none. */
static bool lacks_feature(void* library, char* missing, size_t size) {
  const char* names = find_symbol(library, "__tilewright_features");
  while (names != NULL && *names != 0) {
    size_t length = strcspn(names, ",");
    if (length > 0 && length < size) {
      memcpy(missing, names, length);
      missing[length] = 0;
      if (tilewright_cpu_has_feature(missing) == 0) return true;
    }
    names += length + (names[length] == ',');
  }
  return false;
}

static bool ends_with(const char* text, const char* end) {
  size_t length = strlen(text), size = strlen(end);
  return length >= size && strcmp(text + length - size, end) == 0;
}

void* tilewright_library_open(const char* path) {
  void* library = open_library(path);
  if (library == NULL) {
    const char* problem = open_problem();
    const char* advice = "";
    if (ends_with(path, ".tar")) advice = "; a package is for Python: compile the model with -o model.so";
    if (strstr(problem, "tilewright_") != NULL) advice = "; it has no runtime inside: link the program with the shared runtime library";
    tw_fail("OSError", "cannot load %s: %s%s", path, problem, advice);
    return NULL;
  }
  void* address = find_symbol(library, "__tilewright_bind_host");
  if (address != NULL) {
    int32_t (*bind)(const TilewrightHost*);
    memcpy(&bind, &address, sizeof bind);
    bind(tilewright_host());
  }
  char missing[64];
  if (lacks_feature(library, missing, sizeof missing)) {
    tw_fail("RuntimeError", "%s needs a CPU feature that this machine lacks: %s", path, missing);
    return NULL;
  }
  return tw_bind_imports(library, path) == 0 ? library : NULL;
}

void* tw_library_symbol(void* library, const char* name) { return find_symbol(library, name); }

TilewrightObject* tilewright_library_function(void* library, const char* name) {
  char symbol[512];
  if (snprintf(symbol, sizeof symbol, "__tvm_ffi_%s", name) >= (int)sizeof symbol) return NULL;
  void* address = library != NULL ? find_symbol(library, symbol) : tilewright_system_symbol(symbol);
  if (address == NULL) return NULL;
  TilewrightFunction call;
  memcpy(&call, &address, sizeof call);
  TilewrightObject* function = NULL;
  return tilewright_function_create(call, NULL, NULL, NULL, &function) == 0 ? function : NULL;
}
