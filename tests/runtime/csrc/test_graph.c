/* The graph executor: a small graph runs, its memory is planned, and no text or parameter block can break it. */
#include "check.h"
#include "tilewright.h"

/* y = (x + w) + 1 as a (2, 3) matrix, with a renaming in between; z = x * 2, flattened. */
static const char graph_text[] =
    "{\"nodes\": ["
    "{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"
    "{\"op\": \"null\", \"name\": \"w\", \"inputs\": []},"
    "{\"op\": \"tvm_op\", \"name\": \"sum\", \"attrs\": {\"func_name\": \"add\", \"num_outputs\": \"1\"}, \"inputs\": [[0, 0, 0], [1, 0, 0]]},"
    "{\"op\": \"tvm_op\", \"name\": \"reshape\", \"attrs\": {\"func_name\": \"__nop\", \"num_outputs\": \"1\"}, \"inputs\": [[2, 0, 0]]},"
    "{\"op\": \"tvm_op\", \"name\": \"more\", \"attrs\": {\"func_name\": \"add_one\", \"num_outputs\": \"1\"}, \"inputs\": [[3, 0, 0]]},"
    "{\"op\": \"tvm_op\", \"name\": \"twice\", \"attrs\": {\"func_name\": \"double\", \"num_outputs\": \"1\", \"flatten_data\": \"1\"}, "
    "\"inputs\": [[0, 0, 0]]}],"
    "\"arg_nodes\": [0, 1], \"heads\": [[4, 0, 0], [5, 0, 0]], \"node_row_ptr\": [0, 1, 2, 3, 4, 5, 6],"
    "\"attrs\": {\"shape\": [\"list_shape\", [[6], [6], [6], [2, 3], [2, 3], [6]]],"
    "\"dltype\": [\"list_str\", [\"float32\", \"float32\", \"float32\", \"float32\", \"float32\", \"float32\"]],"
    "\"storage_id\": [\"list_int\", [0, 1, 2, 2, 3, 4]]}}";

static float* data_of(const TVMFFIAny* arg) { return ((DLTensor*)arg->v_ptr)->data; }
static int64_t size_of(const TVMFFIAny* arg) {
  const DLTensor* tensor = arg->v_ptr;
  int64_t size = 1;
  for (int i = 0; i < tensor->ndim; ++i) size *= tensor->shape[i];
  return size;
}

static int32_t add(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)result;
  if (num_args != 3) return -1;
  for (int64_t i = 0; i < size_of(&args[2]); ++i) data_of(&args[2])[i] = data_of(&args[0])[i] + data_of(&args[1])[i];
  return 0;
}

static int32_t add_one(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  CHECK(num_args == 2 && ((DLTensor*)args[0].v_ptr)->ndim == 2);
  for (int64_t i = 0; i < size_of(&args[1]); ++i) data_of(&args[1])[i] = data_of(&args[0])[i] + 1;
  return tilewright_make_string("a result nobody wants", 21, result);
}

static int32_t double_it(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)result;
  CHECK(num_args == 2 && ((DLTensor*)args[0].v_ptr)->ndim == 1);
  for (int64_t i = 0; i < size_of(&args[1]); ++i) data_of(&args[1])[i] = data_of(&args[0])[i] * 2;
  return 0;
}

static int32_t fail(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)args;
  (void)num_args;
  (void)result;
  tilewright_set_error("ValueError", "a kernel failed");
  return -1;
}

static TilewrightObject* find(void* context, const char* name) {
  TilewrightObject* function = NULL;
  TilewrightFunction call = strcmp(name, "add") == 0       ? (context != NULL ? fail : add)
                            : strcmp(name, "add_one") == 0 ? add_one
                            : strcmp(name, "double") == 0  ? double_it
                                                           : NULL;
  if (call != NULL) CHECK(tilewright_function_create(call, NULL, NULL, NULL, &function) == 0);
  return function;
}

static TilewrightGraph* create(void* context) {
  TilewrightGraph* graph = NULL;
  CHECK(tilewright_graph_create(graph_text, sizeof graph_text - 1, find, context, &graph) == 0);
  return graph;
}

static float output(TilewrightGraph* graph, int32_t index, int32_t element) {
  TilewrightObject* tensor;
  CHECK(tilewright_graph_output(graph, index, &tensor) == 0);
  float value = ((float*)tilewright_tensor_dltensor(tensor)->data)[element];
  tilewright_object_release(tensor);
  return value;
}

static int64_t six[1] = {6};
static DLTensor vector(float* data) { return (DLTensor){data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, six, NULL, 0}; }

static void runs(void) {
  TilewrightGraph* graph = create(NULL);
  CHECK(tilewright_graph_num_inputs(graph) == 2 && tilewright_graph_num_outputs(graph) == 2);
  CHECK(tilewright_graph_num_nodes(graph) == 6);
  CHECK(tilewright_graph_arena_bytes(graph) == 3 * 64);
  CHECK(tilewright_graph_input_index(graph, "w") == 1 && tilewright_graph_input_index(graph, "sum") == -1);
  CHECK(tilewright_graph_node_index(graph, "more") == 4);
  CHECK_TEXT(tilewright_graph_input_name(graph, 0), "x");
  CHECK_TEXT(tilewright_graph_node_name(graph, 3), "reshape");
  CHECK(tilewright_graph_input_name(graph, 2) == NULL && tilewright_graph_node_name(graph, -1) == NULL);

  CHECK(tilewright_graph_run(graph) == 0); /* inputs that nobody set are zero */
  CHECK(output(graph, 0, 5) == 1 && output(graph, 1, 5) == 0);

  float x[6] = {0, 1, 2, 3, 4, 5}, w[6] = {10, 10, 10, 10, 10, 10};
  DLTensor described = vector(x), weights = vector(w);
  CHECK(tilewright_graph_set_input(graph, 0, &described) == 0);
  CHECK(tilewright_graph_set_input(graph, 1, &weights) == 0);
  CHECK(tilewright_graph_run(graph) == 0);
  CHECK(output(graph, 0, 5) == 16 && output(graph, 1, 3) == 6);

  _Alignas(64) float place[7] = {7, 7, 7, 7, 7, 7, 7};
  DLTensor in_place = vector(place);
  CHECK(tilewright_graph_set_input_zero_copy(graph, 0, &in_place) == 0);
  CHECK(tilewright_graph_run(graph) == 0);
  CHECK(output(graph, 0, 0) == 18 && output(graph, 1, 0) == 14);
  place[0] = 8;
  CHECK(tilewright_graph_run(graph) == 0);
  CHECK(output(graph, 0, 0) == 19 && output(graph, 1, 0) == 16);
  DLTensor unaligned = vector(place + 1);
  CHECK(tilewright_graph_set_input_zero_copy(graph, 0, &unaligned) == -1);
  CHECK(tilewright_graph_set_input(graph, 0, &described) == 0);
  CHECK(tilewright_graph_run(graph) == 0);
  CHECK(output(graph, 0, 0) == 11 && place[0] == 8);

  int64_t five[1] = {5};
  DLTensor wrong = described;
  wrong.shape = five;
  CHECK(tilewright_graph_set_input(graph, 0, &wrong) == -1);
  CHECK(strstr(tilewright_error_message(), "the input x has the extent 5 in dimension 0; 6 is expected") != NULL);
  wrong = described;
  wrong.dtype.bits = 64;
  CHECK(tilewright_graph_set_input(graph, 0, &wrong) == -1);
  wrong.ndim = 0;
  CHECK(tilewright_graph_set_input(graph, 0, &wrong) == -1);
  CHECK(tilewright_graph_set_input(graph, 2, &described) == -1);
  CHECK_TEXT(tilewright_error_kind(), "IndexError");

  double seconds[2];
  CHECK(tilewright_graph_time_node(graph, 4, 3, 2, 0, seconds) == 0 && seconds[1] > 0);
  CHECK(tilewright_graph_time_node(graph, 3, 3, 2, 0, seconds) == 0 && seconds[1] == 0);
  CHECK(tilewright_graph_time_node(graph, 6, 3, 2, 0, seconds) == -1);
  CHECK(tilewright_graph_run_until(graph, 2) == 0 && tilewright_graph_run_until(graph, 6) == -1);
  CHECK(tilewright_graph_run_node(graph, 4) == 0 && tilewright_graph_run_node(graph, 3) == 0);
  CHECK(tilewright_graph_run_node(graph, 6) == -1 && tilewright_graph_run_node(graph, -1) == -1);
  CHECK(tilewright_graph_run_packed(graph, NULL, 0, NULL) == 0);

  TilewrightObject* tensor = NULL;
  CHECK(tilewright_graph_output(graph, 2, &tensor) == -1 && tilewright_graph_output(graph, -1, &tensor) == -1);
  CHECK(tilewright_graph_node_output(graph, 2, 1, &tensor) == -1);
  CHECK(tilewright_graph_node_output(graph, 2, 0, &tensor) == 0);
  tilewright_graph_release(graph); /* the tensor keeps it */
  CHECK(((float*)tilewright_tensor_dltensor(tensor)->data)[5] == 15);
  tilewright_object_release(tensor);
}

static void failures(void) {
  int marker;
  TilewrightGraph* graph = create(&marker);
  CHECK(tilewright_graph_run(graph) == -1);
  CHECK_TEXT(tilewright_error_message(), "a kernel failed");
  tilewright_graph_release(graph);
}

/* A block as TVM's save_param_dict writes it, with w = [1, 2, ...] and a name the graph does not have. */
static size_t write_params(char* block) {
  char* at = block;
  uint64_t head[3] = {0xF7E58D4F05049CB7u, 0, 2}, length = 1, magic[2] = {0xDD5E40F096B4A13Fu, 0}, two = 2;
  memcpy(at, head, 24), at += 24;
  memcpy(at, &length, 8), at += 8;
  *at++ = 'w';
  memcpy(at, &length, 8), at += 8;
  *at++ = 'q';
  memcpy(at, &two, 8), at += 8;
  for (int i = 0; i < 2; ++i) {
    DLDevice device = {kDLCPU, 0};
    int32_t ndim = 1;
    DLDataType dtype = {kDLFloat, 32, 1};
    int64_t num_bytes = 24;
    float values[6] = {1, 2, 3, 4, 5, 6};
    memcpy(at, magic, 16), at += 16;
    memcpy(at, &device, 8), at += 8;
    memcpy(at, &ndim, 4), at += 4;
    memcpy(at, &dtype, 4), at += 4;
    memcpy(at, six, 8), at += 8;
    memcpy(at, &num_bytes, 8), at += 8;
    memcpy(at, values, 24), at += 24;
  }
  return (size_t)(at - block);
}

static uint32_t state = 12345;
static uint32_t next_random(void) { return state = state * 1664525u + 1013904223u; }

static void parameters(int rounds) {
  char block[512];
  size_t size = write_params(block);
  TilewrightGraph* graph = create(NULL);
  TilewrightGraph* other = create(NULL);
  CHECK(tilewright_graph_load_params(graph, block, size) == 0);
  CHECK(tilewright_graph_run(graph) == 0 && output(graph, 0, 5) == 7);
  CHECK(tilewright_graph_share_params(other, graph, block, size) == 0);
  CHECK(tilewright_graph_share_params(other, other, block, size) == 0);
  tilewright_graph_release(graph); /* the other keeps it */
  CHECK(tilewright_graph_run(other) == 0 && output(other, 0, 4) == 6);

  for (size_t cut = 0; cut < size; ++cut) {
    char* exact = malloc(cut + 1); /* so that a read past the end is seen */
    memcpy(exact, block, cut);
    CHECK(tilewright_graph_load_params(other, exact, cut) == -1);
    free(exact);
  }
  for (int round = 0; round < rounds; ++round) {
    char changed[512];
    memcpy(changed, block, size);
    for (uint32_t i = next_random() >> 30; i < 4; ++i) changed[(next_random() >> 8) % size] = (char)(next_random() >> 16);
    tilewright_graph_load_params(other, changed, size);
  }
  tilewright_graph_release(other);
}

/* Changed graphs give an error or a graph, whose memory is freed again. */
static void changed_texts(int rounds) {
  size_t size = sizeof graph_text - 1;
  int accepted = 0;
  for (int round = 0; round < rounds; ++round) {
    char* text = malloc(size + 1);
    memcpy(text, graph_text, size);
    static const char likely[] = "0123456789,[]{}\"-.ex\\un";
    size_t length = next_random() >> 29 == 0 ? (next_random() >> 8) % size : size;
    for (uint32_t i = next_random() >> 30; i < 4; ++i) {
      text[(next_random() >> 8) % size] = next_random() >> 28 == 0 ? (char)(next_random() >> 16)
                                                                   : likely[(next_random() >> 8) % (sizeof likely - 1)];
    }
    TilewrightGraph* graph = NULL;
    if (tilewright_graph_create(text, length, find, NULL, &graph) == 0) {
      accepted += 1;
      CHECK(tilewright_graph_arena_bytes(graph) < (uint64_t)1 << 40);
      tilewright_graph_release(graph);
    } else {
      CHECK(tilewright_error_kind() != NULL);
    }
    free(text);
  }
  CHECK(accepted > 0);
  static const char* const bad[] = {"",   "{",       "[]",      "{\"nodes\": []}", "nul", "{\"a\": \"\\u0000\"}", "{\"a\": \"\\ud800x\"}",
                                    "[1", "{\"a\"}", "1 2",     "\"abc",           "[1,]", "-",                   "{\"nodes\": [1]}"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
    TilewrightGraph* graph = NULL;
    CHECK(tilewright_graph_create(bad[i], strlen(bad[i]), find, NULL, &graph) == -1);
  }
  char deep[1000];
  memset(deep, '[', sizeof deep);
  TilewrightGraph* graph = NULL;
  CHECK(tilewright_graph_create(deep, sizeof deep, find, NULL, &graph) == -1);
  CHECK(strstr(tilewright_error_message(), "nested too deeply") != NULL);
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1000;
  runs();
  failures();
  parameters(rounds);
  changed_texts(rounds);
  CHECK(tilewright_library_open("/no/such/library.so") == NULL);
  CHECK_TEXT(tilewright_error_kind(), "OSError");
  tilewright_clear_error();
  return 0;
}
