/* The graph executor: inputs, parameters, running. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include "guard.h"

/* One block of the graph's own memory. */
typedef struct TwGraphMemory {
  struct TwGraphMemory* next;
  _Alignas(16) char content[];
} Memory;

void* tw_graph_allocate(TilewrightGraph* graph, uint64_t count, uint64_t size) {
  uint64_t num_bytes;
  Memory* memory = NULL;
  if (!__builtin_mul_overflow(count, size, &num_bytes) && num_bytes < SIZE_MAX / 2) {
    memory = calloc(1, sizeof *memory + (size_t)num_bytes + 1);
  }
  if (memory == NULL) {
    tw_fail("MemoryError", "no memory for a graph");
    return NULL;
  }
  memory->next = graph->memory;
  graph->memory = memory;
  return memory->content;
}

int32_t tilewright_graph_create(const char* json, size_t size, TilewrightFind find, void* context, TilewrightGraph** out) {
  DLDevice host = TW_HOST;
  return tilewright_graph_create_on(json, size, find, context, &host, 1, out);
}

int32_t tilewright_graph_create_on(const char* json, size_t size, TilewrightFind find, void* context, const DLDevice* devices,
                                   int32_t num_devices, TilewrightGraph** out) {
  if (num_devices < 1) return tw_fail("ValueError", "a graph needs a device to run on");
  for (int32_t i = 0; i < num_devices; ++i) {
    if (tilewright_device_require(devices[i]) != 0) return -1;
  }
  TilewrightGraph* graph = calloc(1, sizeof *graph);
  if (graph == NULL) return tw_fail("MemoryError", "no memory for a graph");
  atomic_store(&graph->references, 1);
  graph->records = true;
  if (tw_graph_read(graph, json, size, find, context, devices, num_devices) != 0) {
    tilewright_graph_release(graph);
    return -1;
  }
  *out = graph;
  return 0;
}

void tilewright_graph_retain(TilewrightGraph* graph) { atomic_fetch_add(&graph->references, 1); }

void tilewright_graph_release(TilewrightGraph* graph) {
  if (graph == NULL || atomic_fetch_sub(&graph->references, 1) != 1) return;
  tw_graph_forget_recording(graph);
  for (int32_t i = 0; graph->nodes != NULL && i < graph->num_nodes; ++i) tilewright_object_release(graph->nodes[i].function);
  for (int32_t i = 0; graph->storages != NULL && i < graph->num_storages; ++i) {
    if (graph->storages[i].owned != NULL) tw_device_free(tw_graph_device(graph, i), graph->storages[i].owned);
    if (graph->storages[i].lent != NULL) tilewright_object_release(graph->storages[i].lent);
  }
  for (int32_t i = 0; i < graph->num_shared; ++i) tilewright_graph_release(graph->shared[i]);
  free(graph->shared);
  for (int32_t i = 0; i < graph->num_arenas; ++i) tw_device_free(graph->arenas[i].device, graph->arenas[i].data);
  while (graph->memory != NULL) {
    Memory* memory = graph->memory;
    graph->memory = memory->next;
    free(memory);
  }
  free(graph);
}

int32_t tilewright_graph_num_inputs(const TilewrightGraph* graph) { return graph->num_inputs; }
int32_t tilewright_graph_num_outputs(const TilewrightGraph* graph) { return graph->num_outputs; }
int32_t tilewright_graph_num_nodes(const TilewrightGraph* graph) { return graph->num_nodes; }

uint64_t tilewright_graph_arena_bytes(const TilewrightGraph* graph) {
  uint64_t total = 0;
  for (int32_t i = 0; i < graph->num_arenas; ++i) total += graph->arenas[i].num_bytes;
  return total;
}

int32_t tilewright_graph_input_index(const TilewrightGraph* graph, const char* name) {
  for (int32_t i = 0; i < graph->num_inputs; ++i) {
    if (strcmp(graph->nodes[graph->inputs[i]].name, name) == 0) return i;
  }
  return -1;
}

const char* tilewright_graph_input_name(const TilewrightGraph* graph, int32_t index) {
  return index >= 0 && index < graph->num_inputs ? graph->nodes[graph->inputs[index]].name : NULL;
}

int32_t tilewright_graph_input_device(const TilewrightGraph* graph, int32_t index, DLDevice* out) {
  if (index < 0 || index >= graph->num_inputs) {
    return tw_fail("IndexError", "the graph has %d inputs; there is no input %d", (int)graph->num_inputs, (int)index);
  }
  *out = graph->entries[graph->nodes[graph->inputs[index]].first_entry].tensor.device;
  return 0;
}

int32_t tilewright_graph_output_index(const TilewrightGraph* graph, const char* name) {
  for (int32_t i = 0; i < graph->num_outputs; ++i) {
    if (strcmp(graph->output_names[i], name) == 0) return i;
  }
  return -1;
}

const char* tilewright_graph_output_name(const TilewrightGraph* graph, int32_t index) {
  return index >= 0 && index < graph->num_outputs ? graph->output_names[index] : NULL;
}

const char* tilewright_graph_node_name(const TilewrightGraph* graph, int32_t node) {
  return node >= 0 && node < graph->num_nodes ? graph->nodes[node].name : NULL;
}

int32_t tilewright_graph_node_index(const TilewrightGraph* graph, const char* name) {
  for (int32_t i = 0; i < graph->num_nodes; ++i) {
    if (strcmp(graph->nodes[i].name, name) == 0) return i;
  }
  return -1;
}

/* ---- one thread at a time ---- */

/* A graph has one set of tensors: two threads in it at once would read each other's numbers. */
static int32_t enter(TilewrightGraph* graph) {
  int32_t free_to_use = 0;
  if (atomic_compare_exchange_strong(&graph->in_use, &free_to_use, 1)) return 0;
  return tw_fail("RuntimeError",
                 "the graph is in use: another thread runs it or sets an input; give each thread an executor of its own "
                 "(library[\"default\"](device)), or call the model through a session (library.session())");
}

static int32_t leave(TilewrightGraph* graph, int32_t status) {
  atomic_store(&graph->in_use, 0);
  return status;
}

/* ---- memory of inputs ---- */

/* Has every tensor of a storage point to its memory. */
static void move_storage(TilewrightGraph* graph, int32_t storage, void* data) {
  tw_graph_forget_recording(graph); /* its kernels read the memory of before */
  graph->storages[storage].data = data;
  for (int32_t i = graph->storages[storage].first_entry; i >= 0; i = graph->entries[i].next_in_storage) {
    TwGraphEntry* entry = &graph->entries[i];
    entry->tensor.data = (char*)data + entry->offset;
  }
  for (int32_t i = 0; graph->has_vectors && i < graph->num_nodes; ++i) {
    const TwGraphNode* node = &graph->nodes[i];
    for (int32_t a = 0; node->flat != NULL && a < node->num_args; ++a) {
      int32_t entry = a < node->num_inputs ? node->inputs[a] : node->first_entry + a - node->num_inputs;
      if (graph->entries[entry].storage == storage) node->flat[a].data = graph->entries[entry].tensor.data;
    }
  }
}

/* Has an input's storage refer to the tensor that lends it memory, or to none. */
static void keep_lent(TwGraphStorage* storage, TilewrightObject* tensor) {
  if (tensor != NULL) tilewright_object_retain(tensor);
  if (storage->lent != NULL) tilewright_object_release(storage->lent);
  storage->lent = tensor;
}

/* Gives an input memory of its own, of zeros, unless it has some. */
static int32_t own_storage(TilewrightGraph* graph, int32_t index) {
  TwGraphStorage* storage = &graph->storages[index];
  if (storage->owned == NULL) {
    DLDevice device = tw_graph_device(graph, index);
    void* memory;
    if (tw_device_alloc(device, storage->num_bytes, &memory) != 0) return -1;
    if (tw_device_clear(device, memory, storage->num_bytes) != 0) {
      tw_device_free(device, memory);
      return -1;
    }
    storage->owned = memory;
  }
  if (storage->data != storage->owned) move_storage(graph, index, storage->owned);
  keep_lent(storage, NULL);
  storage->is_linked = false;
  return 0;
}

static TwGraphEntry* input_entry(TilewrightGraph* graph, int32_t index) {
  if (index < 0 || index >= graph->num_inputs) {
    tw_fail("IndexError", "the graph has %d inputs; there is no input %d", (int)graph->num_inputs, (int)index);
    return NULL;
  }
  return &graph->entries[graph->nodes[graph->inputs[index]].first_entry];
}

static int32_t check_matches(const TwGraphEntry* entry, const DLTensor* from, const char* name) {
  const DLTensor* to = &entry->tensor;
  DLDataType dtype = from->dtype;
  if (dtype.code == kDLBool && dtype.bits == 8) dtype = (DLDataType){kDLUInt, 1, dtype.lanes};
  if (dtype.code != to->dtype.code || dtype.bits != to->dtype.bits || dtype.lanes != to->dtype.lanes) {
    TwDataTypeName given, expected;
    return tw_fail("TypeError", "the input %s is %s; %s is expected", name, tw_data_type_name(&given, dtype),
                   tw_data_type_name(&expected, to->dtype));
  }
  if (from->ndim != to->ndim) {
    return tw_fail("ValueError", "the input %s has %d dimensions; %d are expected", name, (int)from->ndim, (int)to->ndim);
  }
  for (int32_t i = 0; i < to->ndim; ++i) {
    if (from->shape[i] != to->shape[i]) {
      return tw_fail("ValueError", "the input %s has the extent %lld in dimension %d; %lld is expected", name,
                     (long long)from->shape[i], (int)i, (long long)to->shape[i]);
    }
  }
  return 0;
}

static int32_t set_input(TilewrightGraph* graph, int32_t index, const DLTensor* from) {
  TwGraphEntry* entry = input_entry(graph, index);
  if (entry == NULL || check_matches(entry, from, graph->nodes[entry->node].name) != 0) return -1;
  if (own_storage(graph, entry->storage) != 0) return -1;
  return tilewright_tensor_copy(from, &entry->tensor);
}

int32_t tilewright_graph_set_input(TilewrightGraph* graph, int32_t index, const DLTensor* from) {
  return enter(graph) != 0 ? -1 : leave(graph, set_input(graph, index, from));
}

/* `lent`: the tensor object that the memory belongs to, or NULL where the caller keeps it. */
static int32_t set_in_place(TilewrightGraph* graph, int32_t index, const DLTensor* from, TilewrightObject* lent) {
  TwGraphEntry* entry = input_entry(graph, index);
  if (entry == NULL) return -1;
  const char* name = graph->nodes[entry->node].name;
  if (check_matches(entry, from, name) != 0) return -1;
  char* data = (char*)from->data + from->byte_offset;
  if (!tw_same_device(from->device, entry->tensor.device) || !tw_is_compact(from) ||
      (uintptr_t)data % tw_alignment_in_place() != 0) {
    TwDeviceName device;
    return tw_fail("ValueError", "the input %s can be used in place only if it is compact, on %s and aligned to 64 bytes", name,
                   tw_device_name(&device, entry->tensor.device));
  }
  if (graph->storages[entry->storage].is_written && !graph->storages[entry->storage].is_updated) {
    return tw_fail("ValueError", "the input %s cannot be used in place: the graph writes over its memory", name);
  }
  if (graph->storages[entry->storage].num_bytes > entry->num_bytes) {
    return tw_fail("ValueError", "the input %s cannot be used in place: the graph has a larger tensor in its memory", name);
  }
  move_storage(graph, entry->storage, data);
  keep_lent(&graph->storages[entry->storage], lent);
  graph->storages[entry->storage].is_linked = false;
  return 0;
}

int32_t tilewright_graph_set_input_zero_copy(TilewrightGraph* graph, int32_t index, const DLTensor* from) {
  return enter(graph) != 0 ? -1 : leave(graph, set_in_place(graph, index, from, NULL));
}

int32_t tilewright_graph_share_input(TilewrightGraph* graph, int32_t index, TilewrightObject* tensor) {
  return enter(graph) != 0 ? -1 : leave(graph, set_in_place(graph, index, tilewright_tensor_dltensor(tensor), tensor));
}

/* ---- parameters ---- */
static int32_t copy_param(void* context, const char* name, const DLTensor* tensor) {
  TilewrightGraph* graph = context;
  int32_t index = tilewright_graph_input_index(graph, name);
  return index < 0 ? 0 : set_input(graph, index, tensor);
}

int32_t tilewright_graph_load_params(TilewrightGraph* graph, const char* data, size_t size) {
  return enter(graph) != 0 ? -1 : leave(graph, tw_for_each_param(data, size, copy_param, graph));
}

typedef struct {
  TilewrightGraph* graph;
  TilewrightGraph* other;
} Sharing;

static int32_t share_param(void* context, const char* name, const DLTensor* unused) {
  (void)unused;
  const Sharing* sharing = context;
  int32_t index = tilewright_graph_input_index(sharing->graph, name);
  int32_t other = tilewright_graph_input_index(sharing->other, name);
  if (index < 0) return 0;
  TwGraphEntry* source = other < 0 ? NULL : input_entry(sharing->other, other);
  if (source == NULL || source->tensor.data == NULL) {
    return tw_fail("ValueError", "the other graph has no value for the parameter %s", name);
  }
  return set_in_place(sharing->graph, index, &source->tensor, sharing->other->storages[source->storage].lent);
}

static int32_t share_params(TilewrightGraph* graph, TilewrightGraph* other, const char* data, size_t size) {
  TilewrightGraph** shared = realloc(graph->shared, ((size_t)graph->num_shared + 1) * sizeof *shared);
  if (shared == NULL) return tw_fail("MemoryError", "no memory to share parameters");
  graph->shared = shared;
  graph->shared[graph->num_shared++] = other;
  tilewright_graph_retain(other);
  Sharing sharing = {graph, other};
  return tw_for_each_param(data, size, share_param, &sharing);
}

int32_t tilewright_graph_share_params(TilewrightGraph* graph, TilewrightGraph* other, const char* data, size_t size) {
  if (graph == other) return 0;
  if (enter(graph) != 0) return -1;
  return leave(graph, share_params(graph, other, data, size));
}

/* ---- tensors of the graph ---- */
static void release_graph(void* graph) { tilewright_graph_release(graph); }
static void release_lent(void* tensor) { tilewright_object_release(tensor); }

static int32_t view_of(TilewrightGraph* graph, int32_t index, TilewrightObject** out) {
  TwGraphEntry* entry = &graph->entries[index];
  if (entry->tensor.data == NULL && own_storage(graph, entry->storage) != 0) return -1;
  TilewrightObject* lent = graph->storages[entry->storage].lent;
  if (lent != NULL) { /* the view outlives the use that the graph makes of the memory */
    tilewright_object_retain(lent);
    if (tilewright_tensor_wrap(&entry->tensor, lent, release_lent, out) == 0) return 0;
    tilewright_object_release(lent);
    return -1;
  }
  tilewright_graph_retain(graph);
  if (tilewright_tensor_wrap(&entry->tensor, graph, release_graph, out) == 0) return 0;
  tilewright_graph_release(graph);
  return -1;
}

int32_t tilewright_graph_input(TilewrightGraph* graph, int32_t index, TilewrightObject** out) {
  TwGraphEntry* entry = input_entry(graph, index);
  return entry == NULL ? -1 : view_of(graph, (int32_t)(entry - graph->entries), out);
}

int32_t tilewright_graph_output(TilewrightGraph* graph, int32_t index, TilewrightObject** out) {
  if (index < 0 || index >= graph->num_outputs) {
    return tw_fail("IndexError", "the graph has %d outputs; there is no output %d", (int)graph->num_outputs, (int)index);
  }
  return view_of(graph, graph->outputs[index], out);
}

int32_t tilewright_graph_node_output(TilewrightGraph* graph, int32_t node, int32_t index, TilewrightObject** out) {
  if (node < 0 || node >= graph->num_nodes || index < 0 || index >= graph->nodes[node].num_outputs) {
    return tw_fail("IndexError", "there is no output %d of a node %d in the graph", (int)index, (int)node);
  }
  return view_of(graph, graph->nodes[node].first_entry + index, out);
}

/* ---- running ---- */
int32_t tw_graph_run_node(const TwGraphNode* node) {
  TVMFFIAny result = {0};
  int32_t status = tilewright_function_call(node->function, node->args, node->num_args, &result);
  if (result.type_index >= TILEWRIGHT_FIRST_OBJECT) tilewright_any_release(&result);
  return status;
}

/* Inputs that nobody has set are zero. */
static int32_t complete_inputs(TilewrightGraph* graph) {
  for (int32_t i = 0; i < graph->num_inputs; ++i) {
    const TwGraphEntry* entry = &graph->entries[graph->nodes[graph->inputs[i]].first_entry];
    if (entry->tensor.data == NULL && own_storage(graph, entry->storage) != 0) return -1;
  }
  return 0;
}

static int32_t check_node(const TilewrightGraph* graph, int32_t node) {
  if (node >= 0 && node < graph->num_nodes) return 0;
  return tw_fail("IndexError", "there is no node %d in the graph", (int)node);
}

/* Waits for the graph's devices: for those whose memory the host reads where it is, or for all. */
static int32_t wait_for_devices(const TilewrightGraph* graph, bool all) {
  for (int32_t i = 0; i < graph->num_arenas; ++i) {
    DLDevice device = graph->arenas[i].device;
    bool reads = tilewright_device_flags(device.device_type) & TILEWRIGHT_DEVICE_HOST_READS;
    if ((all || reads) && tw_device_wait(device) != 0) return -1;
  }
  return 0;
}

int32_t tw_graph_wait(const TilewrightGraph* graph) { return wait_for_devices(graph, true); }

/* After a run. What other devices still do is in the order of their streams, and a copy to the host waits for it. */
static int32_t finish(const TilewrightGraph* graph) { return graph->num_unfinished == 0 ? 0 : wait_for_devices(graph, false); }

static int32_t run_until(TilewrightGraph* graph, int32_t last) {
  if (check_node(graph, last) != 0 || complete_inputs(graph) != 0) return -1;
  TwInterrupts interrupts = {0};
  for (int32_t i = 0; i <= last; ++i) {
    interrupts.left = 1; /* a kernel may take long: look at the clock before each */
    if (graph->nodes[i].function != NULL && (tw_interrupted(&interrupts) != 0 || tw_graph_run_node(&graph->nodes[i]) != 0)) return -1;
  }
  return finish(graph);
}

int32_t tilewright_graph_run_until(TilewrightGraph* graph, int32_t last) {
  return enter(graph) != 0 ? -1 : leave(graph, run_until(graph, last));
}

static int32_t run_one(TilewrightGraph* graph, int32_t node) {
  if (check_node(graph, node) != 0 || complete_inputs(graph) != 0) return -1;
  if (graph->nodes[node].function != NULL && tw_graph_run_node(&graph->nodes[node]) != 0) return -1;
  return finish(graph);
}

int32_t tilewright_graph_run_node(TilewrightGraph* graph, int32_t node) {
  return enter(graph) != 0 ? -1 : leave(graph, run_one(graph, node));
}

static int32_t run_all(TilewrightGraph* graph) { return run_until(graph, graph->num_nodes - 1); }

int32_t tilewright_graph_run(TilewrightGraph* graph) { return enter(graph) != 0 ? -1 : leave(graph, tw_graph_run(graph, run_all)); }

static int32_t call(TilewrightGraph* graph, int32_t num_values, const int32_t* inputs, const DLTensor* values, int32_t num_results,
                    const DLTensor* results) {
  if (num_results < 0 || num_results > graph->num_outputs) {
    return tw_fail("ValueError", "the graph has %d outputs; there are no %d results", (int)graph->num_outputs, (int)num_results);
  }
  for (int32_t i = 0; i < num_values; ++i) {
    if (set_input(graph, inputs[i], &values[i]) != 0) return -1;
  }
  if (tw_graph_run(graph, run_all) != 0) return -1;
  for (int32_t i = 0; i < num_results; ++i) {
    if (tilewright_tensor_copy(&graph->entries[graph->outputs[i]].tensor, &results[i]) != 0) return -1;
  }
  return 0;
}

int32_t tilewright_graph_call(TilewrightGraph* graph, int32_t num_values, const int32_t* inputs, const DLTensor* values,
                              int32_t num_results, const DLTensor* results) {
  return enter(graph) != 0 ? -1 : leave(graph, call(graph, num_values, inputs, values, num_results, results));
}

/* ---- inputs and outputs in the caller's memory ---- */

/* The entry is the whole of its storage, and the host can hand over memory for it. */
static int32_t movable_storage(const TilewrightGraph* graph, const TwGraphEntry* entry) {
  const TwGraphStorage* storage = &graph->storages[entry->storage];
  bool whole = entry->offset == 0 && storage->num_bytes <= entry->num_bytes;
  return whole && tw_host_reads(tw_graph_device(graph, entry->storage)) ? entry->storage : -1;
}

int32_t tilewright_graph_input_storage(TilewrightGraph* graph, int32_t index) {
  const TwGraphEntry* entry = input_entry(graph, index);
  if (entry == NULL || graph->storages[entry->storage].is_written) return -1;
  return movable_storage(graph, entry);
}

int32_t tilewright_graph_updates_input(TilewrightGraph* graph, int32_t index) {
  const TwGraphEntry* entry = input_entry(graph, index);
  return entry != NULL && graph->storages[entry->storage].is_updated;
}

int32_t tilewright_graph_input_is_linked(TilewrightGraph* graph, int32_t index) {
  const TwGraphEntry* entry = input_entry(graph, index);
  return entry != NULL && graph->storages[entry->storage].is_linked;
}

int32_t tilewright_graph_output_storage(TilewrightGraph* graph, int32_t index) {
  if (index < 0 || index >= graph->num_outputs) {
    return tw_fail("IndexError", "the graph has %d outputs; there is no output %d", (int)graph->num_outputs, (int)index);
  }
  const TwGraphEntry* entry = &graph->entries[graph->outputs[index]];
  if (graph->storages[entry->storage].is_input) return -1;
  return movable_storage(graph, entry);
}

static int32_t run_in_place(TilewrightGraph* graph, int32_t count, const int32_t* storages, void* const* memory) {
  for (int32_t i = 0; i < count; ++i) {
    if (storages[i] < 0 || storages[i] >= graph->num_storages || (uintptr_t)memory[i] % tw_alignment_in_place() != 0) {
      return tw_fail("ValueError", "a graph uses memory in place for its storages, aligned to 64 bytes");
    }
    keep_lent(&graph->storages[storages[i]], NULL);
    graph->storages[storages[i]].is_linked = false;
    if (graph->storages[storages[i]].data != memory[i]) move_storage(graph, storages[i], memory[i]);
  }
  return tw_graph_run(graph, run_all);
}

int32_t tilewright_graph_run_in_place(TilewrightGraph* graph, int32_t count, const int32_t* storages, void* const* memory) {
  return enter(graph) != 0 ? -1 : leave(graph, run_in_place(graph, count, storages, memory));
}

int32_t tilewright_graph_record(TilewrightGraph* graph) {
  return enter(graph) != 0 ? -1 : leave(graph, tw_graph_record(graph, run_all));
}

int32_t tilewright_graph_is_recorded(const TilewrightGraph* graph) { return graph->recording != NULL; }

void tilewright_graph_set_recording(TilewrightGraph* graph, int32_t enabled) {
  graph->records = enabled != 0;
  if (!graph->records) tw_graph_forget_recording(graph);
}

static int32_t time_runs(TilewrightGraph* graph, int32_t repeat, double* begins, double* seconds) {
  return complete_inputs(graph) != 0 ? -1 : tw_graph_time_runs(graph, repeat, begins, seconds);
}

static int32_t run_timed(TilewrightGraph* graph, int32_t repeat, double* begins, double* seconds) {
  /* Once without the clock: the threads are awake and the caches warm when it starts. */
  return run_until(graph, graph->num_nodes - 1) != 0 ? -1 : time_runs(graph, repeat, begins, seconds);
}

int32_t tilewright_graph_time_runs(TilewrightGraph* graph, int32_t repeat, double* begins, double* seconds) {
  return enter(graph) != 0 ? -1 : leave(graph, time_runs(graph, repeat, begins, seconds));
}

int32_t tilewright_graph_run_timed(TilewrightGraph* graph, int32_t repeat, double* begins, double* seconds) {
  return enter(graph) != 0 ? -1 : leave(graph, run_timed(graph, repeat, begins, seconds));
}

int32_t tilewright_graph_run_packed(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)args;
  (void)num_args;
  (void)result;
  return tilewright_graph_run(self);
}

static int32_t call_function(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  return tilewright_function_call(self, args, num_args, result);
}

static int32_t time_node(TilewrightGraph* graph, int32_t node, int32_t number, int32_t repeat, int32_t min_repeat_ms, double* seconds) {
  if (check_node(graph, node) != 0 || complete_inputs(graph) != 0) return -1;
  const TwGraphNode* timed = &graph->nodes[node];
  if (timed->function == NULL) {
    for (int32_t i = 0; i < repeat; ++i) seconds[i] = 0;
    return 0;
  }
  DLDevice device = graph->entries[timed->first_entry].tensor.device;
  return tilewright_time_function_on(device, call_function, timed->function, timed->args, timed->num_args, number, repeat, min_repeat_ms,
                                     NULL, seconds);
}

int32_t tilewright_graph_time_node(TilewrightGraph* graph, int32_t node, int32_t number, int32_t repeat, int32_t min_repeat_ms,
                                   double* seconds) {
  return enter(graph) != 0 ? -1 : leave(graph, time_node(graph, node, number, repeat, min_repeat_ms, seconds));
}
