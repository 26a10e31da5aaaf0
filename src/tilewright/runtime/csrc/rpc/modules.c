#include "modules.h"

#include <stdlib.h>
#include <string.h>

#include "../json.h"
#include "../graph.h"
#include "machines.h"

#define MOST_IMPORTS 64
#define MOST_DEVICES 8
#define FACTORY "GraphExecutorFactory"
#define PROGRAM "VMExecutable"

enum { HAS_VALUE = 1, IS_PARAMETER = 2 };

typedef struct {
  TilewrightObject header;
  void* library; /* of a loaded file; it stays loaded */
  TilewrightGraph* graph;
  Machine* machine;
  TilewrightObject* code; /* the module whose functions the graph calls */
  uint8_t* inputs;        /* of each input of the graph: HAS_VALUE, IS_PARAMETER */
  /* A model that the library carries: its name, and graph and parameters as graph_factory.py stores them. */
  char model_name[128];
  const char* model;
  uint64_t model_size;
  const char* program; /* of the virtual machine, that the library carries */
  uint64_t program_size;
  TilewrightObject* imports[MOST_IMPORTS];
  int32_t num_imports;
} Module;

static void delete_module(void* self, int flags) {
  Module* module = self;
  if (flags & TW_DELETE_VALUE) {
    tilewright_graph_release(module->graph);
    machine_release(module->machine);
    tilewright_object_release(module->code);
    free(module->inputs);
    for (int32_t i = 0; i < module->num_imports; ++i) tilewright_object_release(module->imports[i]);
  }
  if (flags & TW_DELETE_MEMORY) free(module);
}

static Module* new_module(void) {
  Module* module = calloc(1, sizeof *module);
  if (module == NULL) {
    tw_fail("MemoryError", "no memory for a module");
    return NULL;
  }
  tw_object_init(&module->header, TYPE_MODULE, delete_module);
  return module;
}

TilewrightGraph* module_graph(const TilewrightObject* module) { return ((const Module*)(const void*)module)->graph; }

const char* module_type_key(const TilewrightObject* module) {
  const Module* found = (const Module*)(const void*)module;
  return found->graph != NULL ? "GraphExecutor" : found->machine != NULL ? "VirtualMachine" : "library";
}

/* ---- libraries ---- */

/* The description of a stored model, which is kept for as long as the document is. */
static bool parse_model(const Module* module, TwJsonDocument* document, const char** params, size_t* size) {
  uint64_t head_size;
  if (module->model_size < sizeof head_size) return false;
  memcpy(&head_size, module->model, sizeof head_size);
  if (head_size > module->model_size - sizeof head_size) return false;
  *params = module->model + sizeof head_size + head_size;
  *size = (size_t)(module->model_size - sizeof head_size - head_size);
  return tw_json_parse(module->model + sizeof head_size, (size_t)head_size, document);
}

static int32_t damaged(void) { return tw_fail("ValueError", "the model in the library is damaged"); }

static int32_t keep_model(void* context, const char* type_key, const char* content, uint64_t size) {
  Module* module = context;
  if (strcmp(type_key, PROGRAM) == 0 && module->program == NULL) {
    module->program = content;
    module->program_size = size;
  }
  if (strcmp(type_key, FACTORY) != 0 || module->model != NULL) return 0;
  module->model = content;
  module->model_size = size;
  TwJsonDocument document;
  const char* params;
  size_t params_size;
  if (!parse_model(module, &document, &params, &params_size)) return damaged();
  const TwJson* name = tw_json_member(document.root, "name");
  bool is_good = name != NULL && name->kind == JSON_STRING && strlen(name->text) < sizeof module->model_name;
  if (is_good) memcpy(module->model_name, name->text, strlen(name->text) + 1);
  tw_json_free(&document);
  return is_good ? 0 : damaged();
}

TilewrightObject* module_load(const char* path) {
  Module* module = new_module();
  if (module == NULL) return NULL;
  module->library = tilewright_library_open(path);
  if (module->library != NULL && tw_for_each_import(module->library, path, keep_model, module) == 0) return &module->header;
  tilewright_object_release(&module->header);
  return NULL;
}

TilewrightObject* module_of_system(void) {
  Module* module = new_module();
  return module != NULL ? &module->header : NULL;
}

/* ---- graph executors ---- */

static TilewrightObject* find_for_graph(void* context, const char* name) { return module_function(context, name, true); }

static Module* new_graph(const char* json, TilewrightObject* code, const DLDevice* devices, int32_t num_devices) {
  Module* module = new_module();
  if (module == NULL) return NULL;
  tilewright_object_retain(code);
  module->code = code;
  if (tilewright_graph_create_on(json, strlen(json), find_for_graph, code, devices, num_devices, &module->graph) == 0) {
    module->inputs = calloc((size_t)tilewright_graph_num_inputs(module->graph) + 1, 1);
    if (module->inputs != NULL) return module;
    tw_fail("MemoryError", "no memory for a graph");
  }
  tilewright_object_release(&module->header);
  return NULL;
}

static int32_t mark_parameter(void* context, const char* name, const DLTensor* tensor) {
  (void)tensor;
  Module* module = context;
  int32_t index = tilewright_graph_input_index(module->graph, name);
  if (index >= 0) module->inputs[index] = HAS_VALUE | IS_PARAMETER;
  return 0;
}

static int32_t load_params_of(Module* module, const char* data, size_t size) {
  return tilewright_graph_load_params(module->graph, data, size) != 0 ? -1 : tw_for_each_param(data, size, mark_parameter, module);
}

TilewrightObject* module_of_graph(const char* json, TilewrightObject* library, const DLDevice* devices, int32_t num_devices) {
  Module* made = new_graph(json, library, devices, num_devices);
  return made != NULL ? &made->header : NULL;
}

/* The function of a model's name: an executor with the parameters set. */
static int32_t make_executor(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  Module* module = self;
  DLDevice devices[MOST_DEVICES];
  if (num_args > MOST_DEVICES) return tw_fail("ValueError", "a model for more than %d devices", MOST_DEVICES);
  for (int32_t i = 0; i < num_args; ++i) {
    if (args[i].type_index != TILEWRIGHT_DEVICE) return tw_fail("TypeError", "a model is made for devices, not for %s", tw_argument_kind(args[i].type_index));
    devices[i] = args[i].v_device;
  }
  TwJsonDocument document;
  const char* params;
  size_t size;
  if (!parse_model(module, &document, &params, &size)) return damaged();
  const TwJson* graph = tw_json_member(document.root, "graph");
  Module* made = NULL;
  if (graph == NULL || graph->kind != JSON_STRING) {
    damaged();
  } else {
    made = new_graph(graph->text, &module->header, devices, num_args);
  }
  tw_json_free(&document);
  if (made == NULL) return -1;
  if (load_params_of(made, params, size) != 0) {
    tilewright_object_release(&made->header);
    return -1;
  }
  *result = (TVMFFIAny){.type_index = TYPE_MODULE, .v_obj = &made->header};
  return 0;
}

/* The number of an input or output that an argument names. */
static int32_t entry_of(const Module* module, const TVMFFIAny* key, bool is_input, int32_t* out) {
  int32_t count = is_input ? tilewright_graph_num_inputs(module->graph) : tilewright_graph_num_outputs(module->graph);
  if (key->type_index == TILEWRIGHT_INT || key->type_index == TILEWRIGHT_BOOL) {
    if (key->v_int64 < 0 || key->v_int64 >= count) {
      return tw_fail("IndexError", "there is no %s %lld: the graph has %d", is_input ? "input" : "output", (long long)key->v_int64, count);
    }
    *out = (int32_t)key->v_int64;
    return 0;
  }
  const char* name;
  size_t size;
  if (tilewright_get_bytes(key, &name, &size) != 0) return -1;
  *out = is_input ? tilewright_graph_input_index(module->graph, name) : tilewright_graph_output_index(module->graph, name);
  return *out >= 0 ? 0 : tw_fail("KeyError", "the graph has no %s %s", is_input ? "input" : "output", name);
}

static int32_t give_int(TVMFFIAny* result, int64_t value) {
  *result = (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = value};
  return 0;
}

static int32_t give_tensor(TVMFFIAny* result, TilewrightObject* tensor) {
  *result = (TVMFFIAny){.type_index = TILEWRIGHT_TENSOR, .v_obj = tensor};
  return 0;
}

static int32_t set_input(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)result;
  Module* module = self;
  int32_t index;
  if (num_args != 2 || args[1].type_index != TILEWRIGHT_TENSOR) return tw_fail("TypeError", "set_input takes an input and an array");
  if (entry_of(module, &args[0], true, &index) != 0) return -1;
  if (tilewright_graph_set_input(module->graph, index, tilewright_tensor_dltensor(args[1].v_obj)) != 0) return -1;
  module->inputs[index] |= HAS_VALUE;
  return 0;
}

static int32_t get_entry(Module* module, const TVMFFIAny* args, int32_t num_args, bool is_input, TVMFFIAny* result) {
  int32_t index;
  TilewrightObject* tensor;
  if (num_args < 1 || num_args > 2) return tw_fail("TypeError", "%s takes a number or a name", is_input ? "get_input" : "get_output");
  if (entry_of(module, &args[0], is_input, &index) != 0) return -1;
  int32_t status = is_input ? tilewright_graph_input(module->graph, index, &tensor) : tilewright_graph_output(module->graph, index, &tensor);
  if (status != 0) return -1;
  if (num_args == 1) return give_tensor(result, tensor);
  status = args[1].type_index != TILEWRIGHT_TENSOR
               ? tw_fail("TypeError", "the array to copy to is %s", tw_argument_kind(args[1].type_index))
               : tilewright_tensor_copy(tilewright_tensor_dltensor(tensor), tilewright_tensor_dltensor(args[1].v_obj));
  tilewright_object_release(tensor);
  return status;
}

static int32_t get_input(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  return get_entry(self, args, num_args, true, result);
}

static int32_t get_output(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  return get_entry(self, args, num_args, false, result);
}

static int32_t run(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)args, (void)result;
  if (num_args != 0) return tw_fail("TypeError", "run takes no arguments");
  return tilewright_graph_run(((Module*)self)->graph);
}

static int32_t get_num_inputs(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)args, (void)num_args;
  return give_int(result, tilewright_graph_num_inputs(((Module*)self)->graph));
}

static int32_t get_num_outputs(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)args, (void)num_args;
  return give_int(result, tilewright_graph_num_outputs(((Module*)self)->graph));
}

static int32_t index_of(Module* module, const TVMFFIAny* args, int32_t num_args, bool is_input, TVMFFIAny* result) {
  const char* name;
  size_t size;
  if (num_args != 1) return tw_fail("TypeError", "a name is needed");
  if (tilewright_get_bytes(&args[0], &name, &size) != 0) return -1;
  return give_int(result, is_input ? tilewright_graph_input_index(module->graph, name) : tilewright_graph_output_index(module->graph, name));
}

static int32_t get_input_index(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  return index_of(self, args, num_args, true, result);
}

static int32_t get_output_index(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  return index_of(self, args, num_args, false, result);
}

static int32_t name_of(Module* module, const TVMFFIAny* args, int32_t num_args, bool is_input, TVMFFIAny* result) {
  int32_t index;
  if (num_args != 1) return tw_fail("TypeError", "a number is needed");
  if (entry_of(module, &args[0], is_input, &index) != 0) return -1;
  const char* name = is_input ? tilewright_graph_input_name(module->graph, index) : tilewright_graph_output_name(module->graph, index);
  return tilewright_make_string(name, strlen(name), result);
}

static int32_t get_input_name(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  return name_of(self, args, num_args, true, result);
}

static int32_t get_output_name(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  return name_of(self, args, num_args, false, result);
}

static int32_t load_params(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)result;
  const char* data;
  size_t size;
  if (num_args != 1) return tw_fail("TypeError", "load_params takes bytes");
  if (tilewright_get_bytes(&args[0], &data, &size) != 0) return -1;
  return load_params_of(self, data, size);
}

static int32_t run_node_timed(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  if (num_args != 1 || args[0].type_index != TILEWRIGHT_INT || args[0].v_int64 < 0 || args[0].v_int64 > INT32_MAX) {
    return tw_fail("TypeError", "run_node_timed takes the number of a node");
  }
  uint64_t begin = tw_now_nanoseconds();
  if (tilewright_graph_run_node(((Module*)self)->graph, (int32_t)args[0].v_int64) != 0) return -1;
  *result = (TVMFFIAny){.type_index = TILEWRIGHT_FLOAT, .v_float64 = (double)(tw_now_nanoseconds() - begin) * 1e-9};
  return 0;
}

static int32_t node_output(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  TilewrightObject* tensor;
  int32_t numbers[2];
  if (num_args != 2) return tw_fail("TypeError", "node_output takes the numbers of a node and of one of its outputs");
  for (int i = 0; i < 2; ++i) {
    if (args[i].type_index != TILEWRIGHT_INT || args[i].v_int64 < 0 || args[i].v_int64 > INT32_MAX) {
      return tw_fail("TypeError", "node_output takes the numbers of a node and of one of its outputs");
    }
    numbers[i] = (int32_t)args[i].v_int64;
  }
  if (tilewright_graph_node_output(((Module*)self)->graph, numbers[0], numbers[1], &tensor) != 0) return -1;
  return give_tensor(result, tensor);
}

/* Whether something is true of the input at a position. */
static int32_t is_so(Module* module, const TVMFFIAny* args, int32_t num_args, uint8_t what, TVMFFIAny* result) {
  int32_t index;
  if (num_args != 1) return tw_fail("TypeError", "a number is needed");
  if (entry_of(module, &args[0], true, &index) != 0) return -1;
  *result = (TVMFFIAny){.type_index = TILEWRIGHT_BOOL, .v_int64 = (module->inputs[index] & what) != 0};
  return 0;
}

static int32_t input_has_value(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  return is_so(self, args, num_args, HAS_VALUE, result);
}

static int32_t input_is_parameter(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  return is_so(self, args, num_args, IS_PARAMETER, result);
}

static const struct {
  const char* name;
  TilewrightFunction call;
} executor_functions[] = {{"set_input", set_input},
                          {"get_input", get_input},
                          {"get_output", get_output},
                          {"run", run},
                          {"get_num_inputs", get_num_inputs},
                          {"get_num_outputs", get_num_outputs},
                          {"get_input_index", get_input_index},
                          {"get_output_index", get_output_index},
                          {"get_input_name", get_input_name},
                          {"get_output_name", get_output_name},
                          {"run_node_timed", run_node_timed},
                          {"node_output", node_output},
                          {"input_has_value", input_has_value},
                          {"input_is_parameter", input_is_parameter},
                          {"load_params", load_params}};

/* ---- virtual machines ---- */

/* The module, among one and those it imports, that carries a program. */
static const Module* with_program(const Module* module, int depth) {
  if (module->program != NULL) return module;
  for (int32_t i = 0; depth < 8 && i < module->num_imports; ++i) {
    const Module* found = with_program((const Module*)(const void*)module->imports[i], depth + 1);
    if (found != NULL) return found;
  }
  return NULL;
}

int32_t create_machine(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  DLDevice devices[MOST_DEVICES];
  if (num_args < 2 || args[0].type_index != TYPE_MODULE || args[1].type_index != TILEWRIGHT_BOOL) {
    return tw_fail("TypeError", "a virtual machine needs the module with its program, and whether to keep memory");
  }
  if (num_args - 2 > MOST_DEVICES) return tw_fail("ValueError", "a program for more than %d devices", MOST_DEVICES);
  for (int32_t i = 2; i < num_args; ++i) {
    if (args[i].type_index != TILEWRIGHT_DEVICE) return tw_fail("TypeError", "a program is made for devices, not for %s", tw_argument_kind(args[i].type_index));
    devices[i - 2] = args[i].v_device;
  }
  const Module* carrier = with_program((const Module*)(const void*)args[0].v_obj, 0);
  if (carrier == NULL) return tw_fail("ValueError", "the module has no program of the virtual machine: export what relay.vm.compile gives");
  Module* made = new_module();
  if (made == NULL) return -1;
  made->machine = machine_create(carrier->program, carrier->program_size, args[0].v_obj, args[1].v_int64 != 0, devices, num_args - 2);
  if (made->machine == NULL) {
    tilewright_object_release(&made->header);
    return -1;
  }
  *result = (TVMFFIAny){.type_index = TYPE_MODULE, .v_obj = &made->header};
  return 0;
}

static int32_t get_function_params(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  return machine_parameters(((Module*)self)->machine, args, num_args, result);
}

static int32_t profile(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  return machine_profile(((Module*)self)->machine, args, num_args, result);
}

/* ---- functions by name ---- */

static void release_owner(void* owner) { tilewright_object_release(owner); }

/* A function that keeps its module. */
static TilewrightObject* bound(TilewrightFunction call, Module* module) {
  TilewrightObject* function = NULL;
  tilewright_object_retain(&module->header);
  if (tilewright_function_create(call, module, module, release_owner, &function) == 0) return function;
  tilewright_object_release(&module->header);
  tilewright_clear_error();
  return NULL;
}

static TilewrightObject* own_function(Module* module, const char* name) {
  if (module->graph != NULL) {
    for (size_t i = 0; i < sizeof executor_functions / sizeof executor_functions[0]; ++i) {
      if (strcmp(executor_functions[i].name, name) == 0) return bound(executor_functions[i].call, module);
    }
    return NULL;
  }
  if (module->machine != NULL) {
    if (strcmp(name, "get_function_params") == 0) return bound(get_function_params, module);
    if (strcmp(name, "__profile__") == 0) return bound(profile, module);
    return machine_function(module->machine, name);
  }
  if (module->model != NULL && strcmp(name, module->model_name) == 0) return bound(make_executor, module);
  TilewrightObject* found = tilewright_library_function(module->library, name);
  if (found != NULL || module->library == NULL || strcmp(name, "__tvm_main__") != 0) return found;
  found = tilewright_library_function(module->library, "main");
  const char* names = tw_find_symbol(module->library, "__tilewright_functions");
  char first[256];
  if (found != NULL || names == NULL || strcspn(names, ",") >= sizeof first) return found;
  memcpy(first, names, strcspn(names, ","));
  first[strcspn(names, ",")] = 0;
  return tilewright_library_function(module->library, first);
}

static TilewrightObject* search(Module* module, const char* name, bool with_imports, int depth) {
  TilewrightObject* found = own_function(module, name);
  for (int32_t i = 0; found == NULL && with_imports && depth < 8 && i < module->num_imports; ++i) {
    found = search((Module*)(void*)module->imports[i], name, true, depth + 1);
  }
  return found;
}

TilewrightObject* module_function(TilewrightObject* module, const char* name, bool with_imports) {
  return search((Module*)(void*)module, name, with_imports, 0);
}

/* True if a module is another one, or imports it. */
static bool reaches(const Module* from, const Module* wanted, int depth) {
  if (from == wanted) return true;
  for (int32_t i = 0; depth < 8 && i < from->num_imports; ++i) {
    if (reaches((const Module*)(const void*)from->imports[i], wanted, depth + 1)) return true;
  }
  return depth >= 8;
}

int32_t module_import(TilewrightObject* object, TilewrightObject* imported) {
  Module* module = (Module*)(void*)object;
  if (reaches((Module*)(void*)imported, module, 0)) return tw_fail("ValueError", "a module cannot import itself, nor be nested too deeply");
  if (module->num_imports == MOST_IMPORTS) return tw_fail("MemoryError", "a module imports at most %d others", MOST_IMPORTS);
  tilewright_object_retain(imported);
  module->imports[module->num_imports++] = imported;
  return 0;
}
