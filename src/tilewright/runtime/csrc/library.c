/* Libraries for programs without Python: loaded, bound to this runtime, and asked for functions. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

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

void* tilewright_library_open(const char* path) {
  void* library = tw_open_library(path);
  if (library == NULL) {
    tw_fail("OSError", "cannot load %s: %s", path, tw_open_problem());
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
  const char* block = tw_find_symbol(library, "__tilewright_imports");
  const uint64_t* size = tw_find_symbol(library, "__tilewright_imports_size");
  if (block != NULL && size != NULL && tw_bind_imports(block, *size, path, library, tw_find_symbol) != 0) return NULL;
  return library;
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
