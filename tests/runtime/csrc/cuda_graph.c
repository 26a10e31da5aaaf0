/* The graph executor on a CUDA device, over a simulated driver: runs become one launch, and nobody sees a difference. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "../device/mock_cuda.h"
#include "check.h"
#include "tilewright.h"

static const DLDevice cpu = {kDLCPU, 0}, gpu = {kDLCUDA, 0};
static const DLDataType float32 = {kDLFloat, 32, 1}, int64 = {kDLInt, 64, 1}, handle = {kDLOpaqueHandle, 64, 1};
static const char ptx[] = ".version 8.0\n.visible .entry add_one(\n.visible .entry add(";
static const int64_t four[1] = {4};

/* z = (x + w + 1) + w; the sum's scratch memory is allocated in its function. */
static const char graph_text[] =
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}, {\"op\": \"null\", \"name\": \"w\", \"inputs\": []},"
    "{\"op\": \"tvm_op\", \"name\": \"y\", \"attrs\": {\"func_name\": \"add_and_one\", \"num_outputs\": \"1\", \"flatten_data\": \"0\"},"
    "\"inputs\": [[0, 0, 0], [1, 0, 0]]},"
    "{\"op\": \"tvm_op\", \"name\": \"z\", \"attrs\": {\"func_name\": \"FUNCTION\", \"num_outputs\": \"1\", \"flatten_data\": \"0\"},"
    "\"inputs\": [[2, 0, 0], [1, 0, 0]]}], \"arg_nodes\": [0, 1], \"heads\": [[3, 0, 0]], \"node_row_ptr\": [0, 1, 2, 3, 4],"
    "\"attrs\": {\"shape\": [\"list_shape\", [[4], [4], [4], [4]]], \"dltype\": [\"list_str\", [\"float32\", \"float32\", \"float32\","
    "\"float32\"]], \"storage_id\": [\"list_int\", [0, 1, 2, 3]]}}";

static int64_t (*count)(int what);
static void (*inject)(const char* function, int after, CUresult result);
static TilewrightDeviceModule* module;
static TilewrightObject *add_one, *add;

static TVMFFIAny number(int64_t value) { return (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = value}; }
static TVMFFIAny pointer(void* value) { return (TVMFFIAny){.type_index = TILEWRIGHT_POINTER, .v_ptr = value}; }

/* Adds two tensors by a kernel of four threads. */
static int32_t add_tensors(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)num_args;
  TVMFFIAny given[4] = {args[0], args[1], args[2], number(4)};
  return tilewright_function_call(add, given, 4, result);
}

static int32_t add_and_one(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)num_args;
  void* scratch = tilewright_workspace_alloc(kDLCUDA, 0, 16);
  if (scratch == NULL) return -1;
  TVMFFIAny sum[4] = {args[0], args[1], pointer(scratch), number(4)}, more[3] = {pointer(scratch), args[2], number(4)};
  int32_t status = tilewright_function_call(add, sum, 4, result);
  if (status == 0) status = tilewright_function_call(add_one, more, 3, result);
  return tilewright_workspace_free(kDLCUDA, 0, scratch) | status;
}

/* The same sum by way of the host, which cannot be recorded. */
static int32_t add_on_host(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)num_args, (void)result;
  float a[4], b[4];
  const DLTensor *left = args[0].v_ptr, *right = args[1].v_ptr, *to = args[2].v_ptr;
  if (tilewright_device_copy(left->data, 0, gpu, a, 0, cpu, sizeof a, NULL) != 0) return -1;
  if (tilewright_device_copy(right->data, 0, gpu, b, 0, cpu, sizeof b, NULL) != 0) return -1;
  for (int i = 0; i < 4; ++i) a[i] += b[i];
  return tilewright_device_copy(a, 0, cpu, to->data, 0, gpu, sizeof a, NULL);
}

/* The same sum, by a global function's leave: what that does is not known. */
static int32_t add_by_name(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  static void* slot;
  TVMFFIAny device[2] = {number(kDLCUDA), number(0)};
  static void* device_slot;
  if (tilewright_call_packed("__tvm_set_device", &device_slot, device, 2, result) != 0) return -1;
  if (tilewright_call_packed("test.anything", &slot, NULL, 0, result) != 0) return -1;
  return add_tensors(self, args, num_args, result);
}

static int32_t anything(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)args, (void)num_args, (void)result;
  return 0;
}

static TilewrightObject* find(void* context, const char* name) {
  (void)context;
  static const struct {
    const char* name;
    TilewrightFunction call;
  } functions[] = {{"add_tensors", add_tensors}, {"add_and_one", add_and_one}, {"add_on_host", add_on_host}, {"add_by_name", add_by_name}};
  TilewrightObject* function = NULL;
  for (int i = 0; i < 4; ++i) {
    if (strcmp(functions[i].name, name) == 0) tilewright_function_create(functions[i].call, NULL, NULL, NULL, &function);
  }
  return function;
}

static TilewrightGraph* create(const char* function, DLDevice device) {
  char text[sizeof graph_text + 40];
  const char* place = strstr(graph_text, "FUNCTION");
  size_t before = (size_t)(place - graph_text);
  memcpy(text, graph_text, before);
  strcpy(text + before, function);
  strcat(text, place + strlen("FUNCTION"));
  TilewrightGraph* graph;
  CHECK(tilewright_graph_create_on(text, strlen(text), find, NULL, &device, 1, &graph) == 0);
  return graph;
}

static void set(TilewrightGraph* graph, int32_t input, float value) {
  float values[4] = {value, value + 1, value + 2, value + 3};
  DLTensor tensor = {values, cpu, 1, float32, (int64_t*)four, NULL, 0};
  CHECK(tilewright_graph_set_input(graph, input, &tensor) == 0);
}

static void gives(TilewrightGraph* graph, float wanted) {
  TilewrightObject* output;
  float values[4];
  DLTensor tensor = {values, cpu, 1, float32, (int64_t*)four, NULL, 0};
  CHECK(tilewright_graph_output(graph, 0, &output) == 0);
  CHECK(tilewright_tensor_copy(tilewright_tensor_dltensor(output), &tensor) == 0);
  CHECK(values[0] == wanted);
  tilewright_object_release(output);
}

/* One run of x = value and w = 2: the sum of five and x. */
static void run(TilewrightGraph* graph, float value) {
  set(graph, 0, value);
  set(graph, 1, 2);
  CHECK(tilewright_graph_run(graph) == 0 && tilewright_error_kind() == NULL);
  gives(graph, value + 5);
}

static void recorded(void) {
  TilewrightGraph* graph = create("add_tensors", gpu);
  int64_t launches = count(LAUNCHES), graphs = count(GRAPH_LAUNCHES), alive = count(GRAPHS);
  run(graph, 1);
  CHECK(!tilewright_graph_is_recorded(graph) && count(LAUNCHES) == launches + 3 && count(GRAPH_LAUNCHES) == graphs);
  run(graph, 10);
  CHECK(tilewright_graph_is_recorded(graph) && count(LAUNCHES) == launches + 6 && count(GRAPH_LAUNCHES) == graphs + 1);
  for (int i = 0; i < 5; ++i) run(graph, (float)i);
  CHECK(count(LAUNCHES) == launches + 6 && count(GRAPH_LAUNCHES) == graphs + 6);

  /* Scratch memory of the recording is nobody else's. */
  void* taken[8];
  float junk[4] = {-1, -1, -1, -1};
  for (int i = 0; i < 8; ++i) {
    CHECK(tilewright_device_alloc(gpu, 16, 64, float32, &taken[i]) == 0);
    CHECK(tilewright_device_copy(junk, 0, cpu, taken[i], 0, gpu, sizeof junk, NULL) == 0);
  }
  run(graph, 3);
  for (int i = 0; i < 8; ++i) {
    float read[4];
    CHECK(tilewright_device_copy(taken[i], 0, gpu, read, 0, cpu, sizeof read, NULL) == 0 && memcmp(read, junk, sizeof read) == 0);
    CHECK(tilewright_device_free(gpu, taken[i]) == 0);
  }

  /* An input in other memory: one plain run, then a new recording. Part of a run is always plain. */
  TilewrightObject* own;
  float nines[4] = {9, 9, 9, 9};
  CHECK(tilewright_tensor_create(four, 1, float32, gpu, &own) == 0);
  CHECK(tilewright_device_copy(nines, 0, cpu, tilewright_tensor_dltensor(own)->data, 0, gpu, sizeof nines, NULL) == 0);
  CHECK(tilewright_graph_share_input(graph, 0, own) == 0 && !tilewright_graph_is_recorded(graph));
  for (int i = 0; i < 3; ++i) {
    CHECK(tilewright_graph_run(graph) == 0 && tilewright_graph_is_recorded(graph) == (i > 0));
    gives(graph, 9 + 5);
  }
  CHECK(tilewright_graph_run_until(graph, 2) == 0 && tilewright_graph_run_node(graph, 3) == 0);
  gives(graph, 9 + 5);
  tilewright_object_release(own);
  run(graph, 1); /* back in its own memory */
  CHECK(!tilewright_graph_is_recorded(graph));

  /* On demand, and not at all. */
  tilewright_graph_set_recording(graph, 0);
  for (int i = 0; i < 3; ++i) run(graph, (float)i);
  CHECK(!tilewright_graph_is_recorded(graph));
  CHECK(tilewright_graph_record(graph) == 0 && tilewright_graph_is_recorded(graph) && tilewright_graph_record(graph) == 0);
  graphs = count(GRAPH_LAUNCHES);
  run(graph, 7);
  CHECK(count(GRAPH_LAUNCHES) == graphs + 1);
  tilewright_graph_release(graph);
  CHECK(count(GRAPHS) == alive);
}

/* What cannot be recorded runs all the same, and is not tried again. */
static void fallen_back(void) {
  static const char* const functions[] = {"add_on_host", "add_by_name"};
  for (int turn = 0; turn < 2; ++turn) {
    TilewrightGraph* graph = create(functions[turn], gpu);
    for (int i = 0; i < 4; ++i) {
      run(graph, (float)i);
      CHECK(!tilewright_graph_is_recorded(graph));
    }
    CHECK(tilewright_graph_record(graph) == -1);
    CHECK(strstr(tilewright_error_message(), turn == 0 ? "cannot hold a copy to or from the memory of the host"
                                                       : "a call of the global function test.anything cannot be recorded") != NULL);
    tilewright_clear_error();
    run(graph, 11);
    tilewright_graph_release(graph);
  }
  TilewrightGraph* on_host = create("add_tensors", cpu);
  CHECK(tilewright_graph_record(on_host) == -1 && strstr(tilewright_error_message(), "all its tensors are on one device that can record"));
  tilewright_clear_error();
  tilewright_graph_release(on_host);
  static const char* const steps[] = {"cuStreamCreate", "cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags"};
  for (int i = 0; i < 4; ++i) {
    TilewrightGraph* graph = create("add_tensors", gpu);
    run(graph, 1);
    inject(steps[i], 0, CUDA_ERROR_OUT_OF_MEMORY);
    for (int j = 0; j < 3; ++j) run(graph, (float)j);
    CHECK(!tilewright_graph_is_recorded(graph));
    tilewright_graph_release(graph);
  }
}

int main(void) {
  void* library = dlopen(getenv("TILEWRIGHT_CUDA_DRIVER"), RTLD_NOW);
  CHECK(library != NULL);
  void *found = dlsym(library, "mock_cuda_count"), *failing = dlsym(library, "mock_cuda_fail");
  CHECK(found != NULL && failing != NULL);
  memcpy(&count, &found, sizeof found);
  memcpy(&inject, &failing, sizeof failing);
  DLDataType types[3] = {handle, handle, int64}, pointers[3] = {handle, handle, handle};
  const char* axes[1] = {"threadIdx.x"};
  TilewrightKernel kernels[2] = {{.name = "add_one", .arg_types = types, .num_args = 3},
                                 {.name = "add", .arg_types = pointers, .num_args = 3, .num_axes = 1, .axes = axes}};
  CHECK(tilewright_device_module_create(kDLCUDA, ptx, sizeof ptx, kernels, 2, &module) == 0);
  CHECK(tilewright_device_module_function(module, "add_one", &add_one) == 0);
  CHECK(tilewright_device_module_function(module, "add", &add) == 0);
  TilewrightObject* function;
  CHECK(tilewright_function_create(anything, NULL, NULL, NULL, &function) == 0);
  CHECK(tilewright_register_function("test.anything", function, 0) == 0);
  tilewright_object_release(function);
  recorded();
  fallen_back();
  tilewright_object_release(add);
  tilewright_object_release(add_one);
  tilewright_device_module_release(module);
  return 0;
}
