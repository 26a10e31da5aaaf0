/* Devices: the table, copies of every kind, a graph and many threads on a device whose memory nobody else may read. */
#include "../device/guarded_device.c"
#include "check.h"

static const DLDevice cpu = {kDLCPU, 0};
static const DLDevice first = {kDLExtDev, 0}, second = {kDLExtDev, 1};
static const DLDataType float32 = {kDLFloat, 32, 1};

static void fails(int32_t status, const char* kind, const char* message) {
  CHECK(status == -1);
  CHECK_TEXT(tilewright_error_kind(), kind);
  CHECK_TEXT(tilewright_error_message(), message);
  tilewright_clear_error();
}

static int32_t count_three(void) { return 3; }

static void registration(void) {
  CHECK(tilewright_device_table(kDLCPU) != NULL && tilewright_device_table(kDLMetal) == NULL);
  CHECK(tilewright_device_table(-1) == NULL && tilewright_device_table(1000) == NULL);
  CHECK(tilewright_device_flags(kDLCPU) == TILEWRIGHT_DEVICE_HOST_READS && tilewright_device_flags(kDLMetal) == 0);
  CHECK(tilewright_device_flags(kDLExtDev) == TILEWRIGHT_DEVICE_ASYNCHRONOUS);
  CHECK_TEXT(tilewright_device_table(kDLExtDev)->name, "guarded");

  /* A table from before there was memory: what lies behind it is not read. */
  TilewrightDeviceTable small = table;
  small.size = offsetof(TilewrightDeviceTable, attribute);
  small.name = "small";
  small.count = count_three;
  CHECK(tilewright_device_register(40, &small) == 0);
  CHECK(tilewright_device_table(40)->alloc == NULL && tilewright_device_table(40)->size == sizeof(TilewrightDeviceTable));
  fails(tilewright_device_register(40, &small), "ValueError", "device type 40 has a driver already: small");
  fails(tilewright_device_register(kDLCPU, &small), "ValueError", "device type 1 has a driver already: cpu");
  fails(tilewright_device_register(128, &small), "ValueError", "128 cannot be the number of a kind of device; 0 to 127 can");
  small.size = 8;
  fails(tilewright_device_register(41, &small), "ValueError", "the table of device type 41 has no size or no name");

  void* out = NULL;
  DLDevice bare = {40, 2}, gpu = {kDLMetal, 1};
  double milliseconds;
  int32_t three[3] = {1, 1, 1};
  TVMFFIAny value;
  fails(tilewright_device_alloc(bare, 8, 64, float32, &out), "NotImplementedError", "the driver of small(2) has no memory");
  fails(tilewright_stream_create(bare, &out), "NotImplementedError", "the driver of small(2) has no streams");
  fails(tilewright_event_create(bare, &out), "NotImplementedError", "the driver of small(2) has no events");
  fails(tilewright_event_elapsed(bare, NULL, NULL, &milliseconds), "NotImplementedError",
        "the driver of small(2) has no clock between events");
  fails(tilewright_module_load(bare, "", 0, &out), "NotImplementedError", "the driver of small(2) has no way to load code");
  fails(tilewright_launch(bare, NULL, NULL, 0, three, three, 0, NULL), "NotImplementedError",
        "the driver of small(2) has no way to launch code");
  fails(tilewright_device_copy(&value, 0, cpu, &value, 0, bare, 8, NULL), "NotImplementedError",
        "the driver of small(2) has no copies from the host");
  const char* no_driver = "metal(1) cannot be used: this runtime has no driver for devices of the kind metal";
  fails(tilewright_device_alloc(gpu, 8, 64, float32, &out), "RuntimeError", no_driver);
  fails(tilewright_device_copy(&value, 0, cpu, &value, 0, gpu, 8, NULL), "RuntimeError", no_driver);
  fails(tilewright_device_attribute(gpu, TILEWRIGHT_ATTRIBUTE_WARP_SIZE, &value), "RuntimeError", no_driver);
  CHECK(tilewright_device_attribute(gpu, TILEWRIGHT_ATTRIBUTE_EXISTS, &value) == 0 && value.v_int64 == 0);
  CHECK(tilewright_device_attribute(bare, TILEWRIGHT_ATTRIBUTE_EXISTS, &value) == 0 && value.v_int64 == 1);
  CHECK(tilewright_device_attribute(bare, TILEWRIGHT_ATTRIBUTE_WARP_SIZE, &value) == 0 && value.type_index == TILEWRIGHT_NONE);
  CHECK(tilewright_device_attribute(first, TILEWRIGHT_ATTRIBUTE_DEVICE_NAME, &value) == 0);
  tilewright_any_release(&value);
}

static TilewrightObject* create(DLDevice device, int64_t count) {
  TilewrightObject* tensor;
  CHECK(tilewright_tensor_create(&count, 1, float32, device, &tensor) == 0);
  return tensor;
}

static void copies(void) {
  float values[100], back[100] = {0};
  for (int i = 0; i < 100; ++i) values[i] = (float)i;
  int64_t hundred = 100;
  DLTensor from = {values, cpu, 1, float32, &hundred, NULL, 0}, to = {back, cpu, 1, float32, &hundred, NULL, 0};
  TilewrightObject* a = create(first, 100);
  TilewrightObject* b = create(second, 100);
  CHECK(tilewright_tensor_copy(&from, tilewright_tensor_dltensor(a)) == 0);
  values[0] = 1000; /* the copy is over */
  CHECK(tilewright_tensor_copy(tilewright_tensor_dltensor(a), tilewright_tensor_dltensor(b)) == 0);
  CHECK(tilewright_tensor_copy(tilewright_tensor_dltensor(b), &to) == 0);
  CHECK(back[0] == 0 && back[99] == 99);

  /* Every third element of one, backwards, into every second of the other. */
  int64_t ten = 10, backwards = -3, forwards = 2;
  DLTensor part = *tilewright_tensor_dltensor(a), place = *tilewright_tensor_dltensor(b);
  part.shape = place.shape = &ten;
  part.strides = &backwards;
  part.byte_offset = 4 * 50;
  place.strides = &forwards;
  place.byte_offset = 4;
  CHECK(tilewright_tensor_copy(&part, &place) == 0);
  CHECK(tilewright_tensor_copy(tilewright_tensor_dltensor(b), &to) == 0);
  for (int i = 0; i < 10; ++i) CHECK(back[1 + 2 * i] == (float)(50 - 3 * i) && back[2 + 2 * i] == (float)(2 + 2 * i));
  CHECK(back[21] == 21);

  void* memory = tilewright_workspace_alloc(kDLExtDev, 1, 1000);
  CHECK(memory != NULL && tilewright_workspace_free(kDLExtDev, 1, memory) == 0);
  fails(tilewright_device_free(first, &values), "ValueError", "this is not memory of the guarded device, or it was freed before");
  tilewright_object_release(a);
  tilewright_object_release(b);
}

/* ---- a graph on two devices ---- */
static void add_one(void** args, const int32_t grid[3], const int32_t block[3], void* shared) {
  (void)block, (void)shared;
  for (int32_t i = 0; i < grid[0]; ++i) (*(float**)args[1])[i] = (*(float**)args[0])[i] + 1;
}

static const GuardedKernel kernels[] = {{"add_one", add_one}, {NULL, NULL}};
static void* kernel;

static int32_t call_add_one(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)result;
  if (num_args != 2) return fail("ValueError", "the kernel takes two tensors");
  const DLTensor *x = args[0].v_ptr, *out = args[1].v_ptr;
  if (x->ndim != 1 || out->ndim != 1 || x->shape[0] > out->shape[0] || x->dtype.bits != 32 || out->dtype.bits != 32 ||
      x->device.device_type != kDLExtDev || out->device.device_type != kDLExtDev) {
    return fail("ValueError", "this is no call of the kernel");
  }
  int32_t grid[3] = {(int32_t)x->shape[0], 1, 1}, block[3] = {1, 1, 1};
  int64_t values[2] = {(int64_t)(uintptr_t)x->data, (int64_t)(uintptr_t)out->data};
  void* pointers[2] = {&values[0], &values[1]};
  return tilewright_launch(x->device, kernel, pointers, 2, grid, block, 0, NULL);
}

static TilewrightObject* find(void* context, const char* name) {
  (void)context;
  TilewrightObject* function = NULL;
  if (strcmp(name, "add_one") == 0) CHECK(tilewright_function_create(call_add_one, NULL, NULL, NULL, &function) == 0);
  return function;
}

static const char graph_text[] =
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"
    "{\"op\": \"tvm_op\", \"name\": \"there\", \"attrs\": {\"func_name\": \"__copy\", \"num_outputs\": \"1\"}, \"inputs\": [[0, 0, 0]]},"
    "{\"op\": \"tvm_op\", \"name\": \"one\", \"attrs\": {\"func_name\": \"add_one\", \"num_outputs\": \"1\"}, \"inputs\": [[1, 0, 0]]},"
    "{\"op\": \"tvm_op\", \"name\": \"two\", \"attrs\": {\"func_name\": \"add_one\", \"num_outputs\": \"1\"}, \"inputs\": [[2, 0, 0]]},"
    "{\"op\": \"tvm_op\", \"name\": \"back\", \"attrs\": {\"func_name\": \"__copy\", \"num_outputs\": \"1\"}, \"inputs\": [[3, 0, 0]]}],"
    "\"arg_nodes\": [0], \"heads\": [[4, 0, 0], [3, 0, 0]],"
    "\"attrs\": {\"shape\": [\"list_shape\", [[6], [6], [6], [6], [6]]],"
    "\"dltype\": [\"list_str\", [\"float32\", \"float32\", \"float32\", \"float32\", \"float32\"]],"
    "\"storage_id\": [\"list_int\", [0, 1, 2, 1, 3]], \"device_index\": [\"list_int\", [1, 12, 12, 12, 1]]}}";

static void* run_graph(void* number) {
  DLDevice devices[2] = {cpu, first};
  TilewrightGraph* graph;
  CHECK(tilewright_graph_create_on(graph_text, sizeof graph_text - 1, find, NULL, devices, 2, &graph) == 0);
  for (int turn = 0; turn < 10; ++turn) {
    float values[6] = {(float)(intptr_t)number, 1, 2, 3, 4, (float)turn};
    int64_t six = 6;
    DLTensor x = {values, cpu, 1, float32, &six, NULL, 0};
    CHECK(tilewright_graph_set_input(graph, 0, &x) == 0 && tilewright_graph_run(graph) == 0);
    TilewrightObject* output;
    CHECK(tilewright_graph_output(graph, 0, &output) == 0);
    const float* results = tilewright_tensor_dltensor(output)->data;
    CHECK(results[0] == values[0] + 2 && results[5] == values[5] + 2);
    tilewright_object_release(output);
    CHECK(tilewright_graph_output(graph, 1, &output) == 0); /* of the device */
    CHECK(tilewright_tensor_dltensor(output)->device.device_type == kDLExtDev);
    CHECK(tilewright_tensor_copy(tilewright_tensor_dltensor(output), &x) == 0 && values[5] == (float)turn + 2);
    tilewright_object_release(output);
  }
  double seconds[5], begins[5];
  CHECK(tilewright_graph_run_timed(graph, 1, begins, seconds) == 0 && seconds[2] > 0);
  CHECK(tilewright_graph_time_node(graph, 2, 2, 3, 0, seconds) == 0 && seconds[2] > 0);
  tilewright_graph_release(graph);
  return NULL;
}

/* A text in which some characters are others makes a graph that runs, or an error; never a crash, and nothing is lost. */
static void mutations(void) {
  static const char others[] = "0123456789-,[]\"x ";
  uint32_t random = 1;
  DLDevice devices[2] = {cpu, first};
  for (int turn = 0; turn < 1000; ++turn) {
    char text[sizeof graph_text];
    memcpy(text, graph_text, sizeof text);
    for (int change = 0; change <= turn % 2; ++change) {
      random = random * 1664525u + 1013904223u;
      text[(random >> 8) % (sizeof text - 1)] = others[(random >> 4) % (sizeof others - 1)];
    }
    TilewrightGraph* graph;
    if (tilewright_graph_create_on(text, sizeof text - 1, find, NULL, devices, 2, &graph) != 0) continue;
    if (tilewright_graph_arena_bytes(graph) < 100000) tilewright_graph_run(graph);
    tilewright_graph_release(graph);
  }
}

static void graphs(void) {
  void* module;
  CHECK(tilewright_module_load(first, kernels, 0, &module) == 0);
  CHECK(tilewright_module_function(first, module, "add_one", &kernel) == 0);
  pthread_t threads[4];
  for (intptr_t i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, run_graph, (void*)i) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  TilewrightGraph* graph = NULL;
  fails(tilewright_graph_create(graph_text, sizeof graph_text - 1, find, NULL, &graph), "ValueError",
        "the graph has tensors on a device of the kind guarded, and the executor was given none");
  fails(tilewright_graph_create_on(graph_text, sizeof graph_text - 1, find, NULL, NULL, 0, &graph), "ValueError",
        "a graph needs a device to run on");
  mutations();
  CHECK(tilewright_module_unload(first, module) == 0);
}

/* ---- memory that both the host and an asynchronous device read ---- */
static int unified_syncs;
static int32_t unified_allocate(int32_t device_id, uint64_t num_bytes, uint64_t alignment, DLDataType hint, void** out) {
  (void)device_id, (void)hint;
  return posix_memalign(out, alignment, num_bytes) == 0 ? 0 : fail("MemoryError", "none left");
}
static int32_t unified_free(int32_t device_id, void* pointer) {
  (void)device_id;
  free(pointer);
  return 0;
}
static int32_t unified_copy(const void* from, uint64_t from_offset, DLDevice from_device, void* to, uint64_t to_offset, DLDevice to_device,
                            uint64_t num_bytes, void* stream) {
  (void)from_device, (void)to_device, (void)stream;
  memcpy((char*)to + to_offset, (const char*)from + from_offset, num_bytes);
  return 0;
}
static int32_t unified_sync(int32_t device_id, void* stream) {
  (void)device_id, (void)stream;
  unified_syncs += 1;
  return 0;
}

static int32_t do_nothing(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)args, (void)num_args, (void)result;
  return 0;
}

static TilewrightObject* find_nothing(void* context, const char* name) {
  (void)context, (void)name;
  TilewrightObject* function;
  CHECK(tilewright_function_create(do_nothing, NULL, NULL, NULL, &function) == 0);
  return function;
}

/* A run waits once for such a device, at its end; a run on the host or on a device with memory of its own does not. */
static void unified(void) {
  static const TilewrightDeviceTable own = {.size = sizeof own,
                                            .flags = TILEWRIGHT_DEVICE_HOST_READS | TILEWRIGHT_DEVICE_ASYNCHRONOUS,
                                            .name = "unified",
                                            .alloc = unified_allocate,
                                            .free = unified_free,
                                            .copy = unified_copy,
                                            .stream_sync = unified_sync};
  CHECK(tilewright_device_register(42, &own) == 0);
  char text[sizeof graph_text];
  memcpy(text, graph_text, sizeof text);
  memcpy(strstr(text, "device_index"), "other_index!", 12); /* all on the first device */
  DLDevice device = {42, 0};
  TilewrightGraph* graph;
  CHECK(tilewright_graph_create_on(text, sizeof text - 1, find_nothing, NULL, &device, 1, &graph) == 0);
  CHECK(tilewright_graph_run_until(graph, 0) == 0); /* makes the memory of the input */
  int before = unified_syncs;
  CHECK(tilewright_graph_run(graph) == 0);
  CHECK(unified_syncs == before + 3); /* two copies within the host's reach, and the end */
  CHECK(tilewright_graph_run_node(graph, 2) == 0 && unified_syncs == before + 4);
  tilewright_graph_release(graph);
}

/* Memory that another library pinned is read and written as any other of the host, and is not ours to make. */
static void pinned(void) {
  float from[3] = {1, 2, 3}, to[3] = {0};
  int64_t three = 3;
  DLDevice host = {kDLCUDAHost, 0};
  DLTensor source = {from, host, 1, float32, &three, NULL, 0}, target = {to, cpu, 1, float32, &three, NULL, 0};
  CHECK(tilewright_tensor_copy(&source, &target) == 0 && to[2] == 3);
  to[2] = 5;
  CHECK(tilewright_tensor_copy(&target, &source) == 0 && from[2] == 5);
  TilewrightObject* tensor;
  fails(tilewright_tensor_create(&three, 1, float32, host, &tensor), "NotImplementedError", "the driver of cuda_host(0) has no memory");
}

int main(void) {
  registration();
  copies();
  pinned();
  unified();
  graphs();
  for (int32_t device = 0; device < NUM_DEVICES; ++device) {
    for (int32_t what = ALLOCATIONS; what <= MODULES; ++what) CHECK(guarded_count(device, what) == 0);
  }
  tilewright_clear_error();
  return 0;
}
