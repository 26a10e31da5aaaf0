/* Every allocation of the runtime fails once: each time the caller gets an error, and nothing is lost or broken.
 *
 * Linked with --wrap for the allocating functions, which then come here. */
#include "check.h"
#include "tilewright.h"
#include "vm_program.h"

void* __real_malloc(size_t size);
void* __real_calloc(size_t count, size_t size);
void* __real_realloc(void* before, size_t size);
int __real_posix_memalign(void** out, size_t alignment, size_t size);
void* __wrap_malloc(size_t size);
void* __wrap_calloc(size_t count, size_t size);
void* __wrap_realloc(void* before, size_t size);
int __wrap_posix_memalign(void** out, size_t alignment, size_t size);

/* How many allocations of this thread succeed before one fails. */
static _Thread_local int left = -1;
static _Thread_local int failed;

static int fails(void) {
  if (left < 0 || left-- > 0) return 0;
  failed = 1;
  return 1;
}

void* __wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void* __wrap_calloc(size_t count, size_t size) { return fails() ? NULL : __real_calloc(count, size); }
void* __wrap_realloc(void* before, size_t size) { return fails() ? NULL : __real_realloc(before, size); }
int __wrap_posix_memalign(void** out, size_t alignment, size_t size) {
  return fails() ? 12 : __real_posix_memalign(out, alignment, size);
}

static const char graph_text[] =
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}, {\"op\": \"null\", \"name\": \"w\", \"inputs\": []},"
    "{\"op\": \"tvm_op\", \"name\": \"sum\", \"attrs\": {\"func_name\": \"add\", \"num_outputs\": \"1\", \"flatten_data\": \"1\"},"
    "\"inputs\": [[0, 0, 0], [1, 0, 0]]}], \"arg_nodes\": [0, 1], \"heads\": [[2, 0, 0]], \"node_row_ptr\": [0, 1, 2, 3],"
    "\"attrs\": {\"shape\": [\"list_shape\", [[6], [6], [6]]], \"dltype\": [\"list_str\", [\"float32\", \"float32\", \"float32\"]],"
    "\"storage_id\": [\"list_int\", [0, 1, 2]]}}";

static const DLDevice cpu = {kDLCPU, 0};
static const DLDataType float32 = {kDLFloat, 32, 1};
static const int64_t six[1] = {6};

static int32_t add(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  if (num_args != 3) return 0;
  const float* a = ((DLTensor*)args[0].v_ptr)->data;
  const float* b = ((DLTensor*)args[1].v_ptr)->data;
  for (int i = 0; i < 6; ++i) ((float*)((DLTensor*)args[2].v_ptr)->data)[i] = a[i] + b[i];
  return tilewright_make_string("done", 4, result);
}

static TilewrightObject* find(void* context, const char* name) {
  (void)context;
  (void)name;
  TilewrightObject* function = NULL;
  tilewright_function_create(add, NULL, NULL, NULL, &function);
  return function;
}

static int32_t texts(void) {
  TVMFFIAny string = {0}, bytes = {0}, opaque = {0};
  int32_t status = tilewright_make_string("text", 4, &string);
  if (status == 0) status = tilewright_make_bytes("bytes", 5, &bytes);
  if (status == 0) status = tilewright_make_opaque(NULL, NULL, &opaque);
  tilewright_any_release(&string);
  tilewright_any_release(&bytes);
  tilewright_any_release(&opaque);
  return status;
}

static int32_t functions(void) {
  TilewrightObject* function = find(NULL, NULL);
  if (function == NULL) return -1;
  static void* cache;
  TVMFFIAny result = {0};
  int32_t status = tilewright_register_function("test.memory", function, 1);
  tilewright_object_release(function);
  if (status != 0) return -1;
  status = tilewright_call_packed("test.memory", &cache, NULL, 0, &result);
  char* names = tilewright_list_functions();
  if (names != NULL) CHECK(strstr(names, "test.memory") != NULL);
  if (names == NULL) status = -1;
  tilewright_free_text(names);
  CHECK(tilewright_remove_function("test.memory") == 0);
  return status;
}

static int32_t tensors(void) {
  TilewrightObject *tensor = NULL, *view = NULL, *back = NULL;
  if (tilewright_tensor_create(six, 1, float32, cpu, &tensor) != 0) return -1;
  int32_t status = tilewright_tensor_wrap(tilewright_tensor_dltensor(tensor), NULL, NULL, &view);
  DLManagedTensor* plain = status == 0 ? tilewright_tensor_to_dlpack(tensor) : NULL;
  if (plain == NULL) status = -1;
  if (status == 0) {
    status = tilewright_tensor_from_dlpack(plain, &back);
    if (status != 0) plain->deleter(plain); /* a tensor that was not taken stays the caller's */
  }
  DLManagedTensorVersioned* versioned = status == 0 ? tilewright_tensor_to_dlpack_versioned(tensor) : NULL;
  if (versioned != NULL) versioned->deleter(versioned);
  if (versioned == NULL) status = -1;
  tilewright_object_release(back);
  tilewright_object_release(view);
  tilewright_object_release(tensor);
  return status;
}

static int32_t workspaces(void) {
  void* memory = tilewright_workspace_alloc(kDLCPU, 0, (uint64_t)1 << 20);
  return memory == NULL ? -1 : tilewright_workspace_free(kDLCPU, 0, memory);
}

static int32_t fill(int32_t task, int32_t num_tasks, void* closure) {
  (void)num_tasks;
  ((_Atomic int32_t*)closure)[task] = 1;
  return 0;
}

/* Without memory for threads, the caller does the work itself. */
static int32_t regions(void) {
  _Atomic int32_t seen[4] = {0};
  CHECK(tilewright_config_threads(1, 3) == 0);
  CHECK(tilewright_parallel_launch(fill, seen, 4) == 0);
  for (int i = 0; i < 4; ++i) CHECK(seen[i] == 1);
  return 0;
}

static int32_t graphs(const char* params, size_t size) {
  TilewrightGraph *graph = NULL, *other = NULL;
  float values[6] = {1, 2, 3, 4, 5, 6};
  DLTensor x = {values, cpu, 1, float32, (int64_t*)six, NULL, 0};
  TilewrightObject* output = NULL;
  int32_t status = tilewright_graph_create(graph_text, sizeof graph_text - 1, find, NULL, &graph);
  if (status == 0) status = tilewright_graph_create(graph_text, sizeof graph_text - 1, find, NULL, &other);
  if (status == 0) status = tilewright_graph_set_input(graph, 0, &x);
  if (status == 0) status = tilewright_graph_load_params(graph, params, size);
  if (status == 0) status = tilewright_graph_share_params(other, graph, params, size);
  if (status == 0) status = tilewright_graph_run(graph);
  if (status == 0) status = tilewright_graph_run(other); /* its x was never set, and is made now */
  if (status == 0) status = tilewright_graph_output(graph, 0, &output);
  if (status == 0) CHECK(((float*)tilewright_tensor_dltensor(output)->data)[5] == 7.5f);
  tilewright_object_release(output);
  tilewright_graph_release(other);
  tilewright_graph_release(graph);
  return status;
}

static int32_t machines(const Bytes* program) {
  TVMFFIAny number = vm_scalar(5), result = {0};
  if (number.type_index == TILEWRIGHT_NONE) return -1;
  TilewrightObject *constants[2] = {NULL, number.v_obj}, *empty = NULL;
  TilewrightVM* vm = NULL;
  int32_t status = tilewright_vm_create(program->data, program->size, constants, 2, vm_find, NULL, 1, &vm);
  if (status == 0) status = tilewright_data_create(8, NULL, 0, &empty);
  static const int32_t order[] = {MAIN, SUM, BUILD};
  for (size_t i = 0; status == 0 && i < 3; ++i) {
    TVMFFIAny args[2] = {number, {.type_index = TILEWRIGHT_DATA, .v_obj = empty}};
    status = tilewright_vm_invoke(vm, order[i], args, tilewright_vm_num_params(vm, order[i]), &result);
    tilewright_any_release(&result);
  }
  tilewright_object_release(empty);
  tilewright_vm_release(vm);
  tilewright_any_release(&number);
  return status;
}

/* The parameter w = [1.5, ...], as TVM's save_param_dict writes it. */
static size_t write_params(char* at) {
  char* begin = at;
  uint64_t head[4] = {0xF7E58D4F05049CB7u, 0, 1, 1}, one = 1, magic[2] = {0xDD5E40F096B4A13Fu, 0};
  int32_t ndim = 1;
  int64_t num_bytes = 24;
  float values[6] = {1.5f, 1.5f, 1.5f, 1.5f, 1.5f, 1.5f};
  memcpy(at, head, 32), at += 32;
  *at++ = 'w';
  memcpy(at, &one, 8), at += 8;
  memcpy(at, magic, 16), at += 16;
  memcpy(at, &cpu, 8), at += 8;
  memcpy(at, &ndim, 4), at += 4;
  memcpy(at, &float32, 4), at += 4;
  memcpy(at, six, 8), at += 8;
  memcpy(at, &num_bytes, 8), at += 8;
  memcpy(at, values, 24), at += 24;
  return (size_t)(at - begin);
}

int main(void) {
  char params[256];
  size_t size = write_params(params);
  Bytes program = vm_program();
  int most = 0;
  for (int turn = 0; turn < 14; ++turn) { /* every part twice: what is made once is made in the first turn */
    int part = turn % 7, rounds = 0;
    for (;; ++rounds) {
      tilewright_clear_error();
      failed = 0;
      left = rounds;
      int32_t status = part == 0   ? texts()
                       : part == 1 ? functions()
                       : part == 2 ? tensors()
                       : part == 3 ? workspaces()
                       : part == 4 ? regions()
                       : part == 5 ? graphs(params, size)
                                   : machines(&program);
      left = -1;
      if (!failed) {
        CHECK(status == 0);
        break;
      }
      if (status != 0) CHECK_TEXT(tilewright_error_kind(), "MemoryError");
      CHECK(rounds < 1000);
    }
    most += rounds;
  }
  CHECK(most > 160);
  tilewright_clear_error();
  CHECK(tilewright_config_threads(1, 1) == 0);
  return 0;
}
