/* Libraries for programs without Python: loaded, bound to this runtime, and asked for functions. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

#if !defined(_WIN32) && TW_HAS_THREADS
#include <unistd.h>
/* A file of this folder, named without a slash, is meant before a library of the system's folders, where `dlopen` looks. */
static void* open_file(const char* path) {
  char here[4096];
  bool is_here = strchr(path, '/') == NULL && snprintf(here, sizeof here, "./%s", path) < (int)sizeof here && access(here, F_OK) == 0;
  return tw_open_library(is_here ? here : path);
}
#else
static void* open_file(const char* path) { return tw_open_library(path); }
#endif

/* The first CPU feature that the library needs and the machine lacks, copied to `missing`; false when there is none. */
static bool lacks_feature(void* library, char* missing, size_t size) {
  const char* names = tw_find_symbol(library, "__tilewright_features");
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

#if !defined(TILEWRIGHT_OWN_LOADER) /* which links archives itself */
static bool ends_with(const char* text, const char* end) {
  size_t length = strlen(text), size = strlen(end);
  return length >= size && strcmp(text + length - size, end) == 0;
}
#endif

void* tilewright_library_open(const char* path) {
  void* library = open_file(path);
  if (library == NULL) {
    const char* problem = tw_open_problem();
    const char* advice = "";
#if !defined(TILEWRIGHT_OWN_LOADER)
    if (ends_with(path, ".tar")) advice = "; a package is for Python: compile the model with -o model.so";
#endif
    if (strstr(problem, "tilewright_") != NULL) advice = "; it has no runtime inside: link the program with the shared runtime library";
    tw_fail("OSError", "cannot load %s: %s%s", path, problem, advice);
    return NULL;
  }
  void* address = tw_find_symbol(library, "__tilewright_bind_host");
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

TilewrightObject* tilewright_library_function(void* library, const char* name) {
  char symbol[512];
  if (snprintf(symbol, sizeof symbol, "__tvm_ffi_%s", name) >= (int)sizeof symbol) return NULL;
  void* address = library != NULL ? tw_find_symbol(library, symbol) : tilewright_system_symbol(symbol);
  if (address == NULL) return NULL;
  TilewrightFunction call;
  memcpy(&call, &address, sizeof call);
  TilewrightObject* function = NULL;
  return tilewright_function_create(call, NULL, NULL, NULL, &function) == 0 ? function : NULL;
}
