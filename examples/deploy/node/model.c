/* The model's end of a WebAssembly file: tells the runtime which functions are linked in, and makes a graph of them.
 * FUNCTIONS is FUNCTION(name) for each of the model's compiled functions; make_model.py defines it. */
#include "tilewright.h"

#define FUNCTION(name) int32_t __tvm_ffi_##name(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
FUNCTIONS
#undef FUNCTION

__attribute__((constructor)) static void register_functions(void) {
#define FUNCTION(name) tilewright_register_system_symbol("__tvm_ffi_" #name, (void*)__tvm_ffi_##name);
  FUNCTIONS
#undef FUNCTION
}

/* NULL with an error. The file cannot load libraries: the functions are the ones above. */
TilewrightGraph* create_graph(const char* json, size_t size) {
  TilewrightGraph* graph = NULL;
  return tilewright_graph_create(json, size, tilewright_library_function, NULL, &graph) == 0 ? graph : NULL;
}
