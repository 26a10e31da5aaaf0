/* Reading a graph: text to nodes, entries, storages, and the place of every tensor. Nothing in the text is trusted.

   The form is that of TVM's graph executor. Its "device_index" has for each tensor DLPack's number of the kind of device
   that it is on; without it, all are on the first of the executor's devices. Two attributes more may be left out.
   "storage_offset" has for each storage its place in the arena of its device, in bytes, a multiple of TW_ALIGNMENT.
   "tensor_offset" has for each tensor where in its storage it begins, in bytes, a multiple of its element's size: a storage
   can hold a tensor and its parts. A node whose function is "__copy" copies its only input, from whatever device, to its
   output; one whose function is "__nop" runs nothing. The names of the outputs are the list "output_names" of "metadata",
   the last member of the whole, at which TVM's own reader stops. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "guard.h"
#include "json.h"

#define MOST_NODES (1 << 20)
#define MOST_STORAGES (1 << 20)
#define MOST_DIMENSIONS 64

bool tw_parse_dtype(const char* text, DLDataType* out) {
  static const struct {
    const char* name;
    uint8_t code, bits;
  } kinds[] = {{"bfloat", kDLBfloat, 16}, {"float", kDLFloat, 32}, {"uint", kDLUInt, 32},
               {"int", kDLInt, 32},       {"handle", kDLOpaqueHandle, 64}, {"bool", kDLUInt, 1}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
    size_t length = strlen(kinds[i].name);
    if (strncmp(text, kinds[i].name, length) != 0) continue;
    const char* at = text + length;
    char* end;
    long bits = kinds[i].bits, lanes = 1;
    if (*at >= '0' && *at <= '9') {
      bits = strtol(at, &end, 10);
      at = end;
    }
    if (*at == 'x') {
      lanes = strtol(at + 1, &end, 10);
      at = end;
    }
    if (*at != 0 || bits < 1 || bits > 64 || lanes < 1 || lanes > 65535) return false;
    *out = (DLDataType){kinds[i].code, (uint8_t)bits, (uint16_t)lanes};
    return true;
  }
  return false;
}

static int32_t damaged(const char* what) { return tw_fail("ValueError", "the graph is damaged: %s", what); }

/* The values of an attribute, which is stored as ["list_int", [...]]. */
static const TwJson* attribute(const TwJson* root, const char* name) {
  const TwJson* pair = tw_json_member(tw_json_member(root, "attrs"), name);
  if (pair == NULL || pair->kind != JSON_ARRAY || pair->count != 2 || pair->first->next->kind != JSON_ARRAY) return NULL;
  return pair->first->next;
}

static const char* text_member(const TwJson* object, const char* name, const char* otherwise) {
  const TwJson* member = tw_json_member(object, name);
  return member != NULL && member->kind == JSON_STRING ? member->text : otherwise;
}

static const char* copy_text(TilewrightGraph* graph, const char* text) {
  size_t size = strlen(text) + 1;
  char* copy = tw_graph_allocate(graph, size, 1);
  if (copy != NULL) memcpy(copy, text, size);
  return copy;
}

/* An entry from [node, index, version]; -1 when there is none such before node `limit`. */
static int32_t entry_of(const TilewrightGraph* graph, const TwJson* pair, int32_t limit) {
  int64_t node, index;
  if (pair->kind != JSON_ARRAY || pair->count < 2 || !tw_json_integer(pair->first, limit - 1, &node)) return -1;
  if (!tw_json_integer(pair->first->next, graph->nodes[node].num_outputs - 1, &index)) return -1;
  return graph->nodes[node].first_entry + (int32_t)index;
}

static int32_t read_nodes(TilewrightGraph* graph, const TwJson* root) {
  const TwJson* nodes = tw_json_member(root, "nodes");
  if (nodes == NULL || nodes->kind != JSON_ARRAY || nodes->count < 1 || nodes->count > MOST_NODES) {
    return damaged("it has no list of nodes");
  }
  graph->num_nodes = (int32_t)nodes->count;
  graph->nodes = tw_graph_allocate(graph, (uint64_t)nodes->count, sizeof *graph->nodes);
  if (graph->nodes == NULL) return -1;
  int32_t index = 0;
  for (const TwJson* value = nodes->first; value != NULL; value = value->next, ++index) {
    TwGraphNode* node = &graph->nodes[index];
    const char* op = text_member(value, "op", "");
    node->is_operator = strcmp(op, "tvm_op") == 0;
    if (!node->is_operator && strcmp(op, "null") != 0) return damaged("a node is neither an input nor an operator");
    node->name = copy_text(graph, text_member(value, "name", ""));
    if (node->name == NULL) return -1;
    const char* count = text_member(tw_json_member(value, "attrs"), "num_outputs", "1");
    char* end;
    long outputs = node->is_operator ? strtol(count, &end, 10) : 1;
    if (outputs < 1 || outputs > 65536) return damaged("a node has an impossible number of outputs");
    node->num_outputs = (int32_t)outputs;
    node->first_entry = graph->num_entries;
    if (graph->num_entries > MOST_NODES) return damaged("it has too many tensors");
    graph->num_entries += node->num_outputs;
    const TwJson* inputs = tw_json_member(value, "inputs");
    node->num_inputs = inputs != NULL && inputs->kind == JSON_ARRAY && inputs->count < 65536 ? (int32_t)inputs->count : 0;
    node->inputs = tw_graph_allocate(graph, (uint64_t)node->num_inputs, sizeof *node->inputs);
    if (node->inputs == NULL) return -1;
    int32_t position = 0;
    for (const TwJson* input = node->num_inputs > 0 ? inputs->first : NULL; input != NULL; input = input->next) {
      int32_t entry = index > 0 ? entry_of(graph, input, index) : -1;
      if (entry < 0) return damaged("a node reads a tensor that no node before it makes");
      node->inputs[position++] = entry;
    }
  }
  return 0;
}

static int32_t read_shape(TilewrightGraph* graph, TwGraphEntry* entry, const TwJson* value) {
  if (value->kind != JSON_ARRAY || value->count > MOST_DIMENSIONS) return damaged("a shape is not a short list of numbers");
  int32_t ndim = (int32_t)value->count;
  int64_t* extents = tw_graph_allocate(graph, 2 * (uint64_t)ndim, sizeof *extents);
  if (extents == NULL) return -1;
  entry->tensor.ndim = ndim;
  entry->tensor.shape = extents;
  entry->tensor.strides = extents + ndim;
  int32_t dimension = 0;
  for (const TwJson* extent = value->first; extent != NULL; extent = extent->next) {
    if (!tw_json_integer(extent, (int64_t)1 << 40, &extents[dimension++])) return damaged("a shape has a value that is not a size");
  }
  uint64_t stride = 1;
  for (int32_t i = ndim - 1; i >= 0; --i) {
    extents[ndim + i] = (int64_t)stride;
    if (__builtin_mul_overflow(stride, (uint64_t)(extents[i] > 0 ? extents[i] : 1), &stride) || stride > INT64_MAX) {
      return damaged("a tensor is larger than any memory");
    }
  }
  return 0;
}

static int32_t read_entries(TilewrightGraph* graph, const TwJson* root) {
  const TwJson* shapes = attribute(root, "shape");
  const TwJson* dtypes = attribute(root, "dltype");
  const TwJson* storages = attribute(root, "storage_id");
  if (shapes == NULL || dtypes == NULL || storages == NULL || shapes->count != graph->num_entries ||
      dtypes->count != graph->num_entries || storages->count != graph->num_entries) {
    return damaged("it does not have a shape, a data type and a storage for each tensor");
  }
  graph->entries = tw_graph_allocate(graph, (uint64_t)graph->num_entries, sizeof *graph->entries);
  if (graph->entries == NULL) return -1;
  const TwJson* shape = shapes->first;
  const TwJson* dtype = dtypes->first;
  const TwJson* storage = storages->first;
  for (int32_t node = 0, i = 0; node < graph->num_nodes; ++node) {
    for (int32_t output = 0; output < graph->nodes[node].num_outputs; ++output, ++i) {
      TwGraphEntry* entry = &graph->entries[i];
      entry->node = node;
      int64_t id;
      if (read_shape(graph, entry, shape) != 0) return -1;
      if (dtype->kind != JSON_STRING || !tw_parse_dtype(dtype->text, &entry->tensor.dtype)) {
        return damaged("a tensor has a data type that is none");
      }
      if (!tw_json_integer(storage, MOST_STORAGES - 1, &id)) return damaged("a storage has an impossible number");
      entry->storage = (int32_t)id;
      if (id >= graph->num_storages) graph->num_storages = (int32_t)id + 1;
      shape = shape->next;
      dtype = dtype->next;
      storage = storage->next;
    }
  }
  return 0;
}

static int32_t read_inputs_and_outputs(TilewrightGraph* graph, const TwJson* root) {
  const TwJson* arguments = tw_json_member(root, "arg_nodes");
  const TwJson* heads = tw_json_member(root, "heads");
  if (arguments == NULL || arguments->kind != JSON_ARRAY || arguments->count > graph->num_nodes || heads == NULL ||
      heads->kind != JSON_ARRAY || heads->count > MOST_NODES) {
    return damaged("it has no lists of inputs and outputs");
  }
  graph->inputs = tw_graph_allocate(graph, (uint64_t)arguments->count, sizeof *graph->inputs);
  graph->outputs = tw_graph_allocate(graph, (uint64_t)heads->count, sizeof *graph->outputs);
  if (graph->inputs == NULL || graph->outputs == NULL) return -1;
  for (const TwJson* value = arguments->first; value != NULL; value = value->next) {
    int64_t node;
    if (!tw_json_integer(value, graph->num_nodes - 1, &node) || graph->nodes[node].is_operator) {
      return damaged("an input is not an input node");
    }
    graph->inputs[graph->num_inputs++] = (int32_t)node;
  }
  for (const TwJson* value = heads->first; value != NULL; value = value->next) {
    int32_t entry = entry_of(graph, value, graph->num_nodes);
    if (entry < 0) return damaged("an output is not a tensor of the graph");
    graph->outputs[graph->num_outputs++] = entry;
  }
  return 0;
}

/* The names of the outputs: those of the metadata, or output_0 and so on for a graph that has none. */
static int32_t read_output_names(TilewrightGraph* graph, const TwJson* root) {
  const TwJson* names = tw_json_member(tw_json_member(root, "metadata"), "output_names");
  if (names != NULL && (names->kind != JSON_ARRAY || names->count != graph->num_outputs)) {
    return damaged("it does not have a name for each output");
  }
  graph->output_names = tw_graph_allocate(graph, (uint64_t)graph->num_outputs, sizeof *graph->output_names);
  if (graph->output_names == NULL) return -1;
  const TwJson* name = names != NULL ? names->first : NULL;
  for (int32_t i = 0; i < graph->num_outputs; ++i) {
    char made[32];
    if (name != NULL && (name->kind != JSON_STRING || name->text[0] == 0)) return damaged("the name of an output is not text");
    snprintf(made, sizeof made, "output_%d", (int)i);
    graph->output_names[i] = copy_text(graph, name != NULL ? name->text : made);
    if (graph->output_names[i] == NULL) return -1;
    if (name != NULL) name = name->next;
  }
  return 0;
}

/* ---- devices ---- */

/* The executor's device of a kind; an error where it was given none. */
static int32_t device_of_type(const DLDevice* devices, int32_t num_devices, int64_t device_type, DLDevice* out) {
  for (int32_t i = 0; i < num_devices; ++i) {
    if (devices[i].device_type == device_type) {
      *out = devices[i];
      return 0;
    }
  }
  TwDeviceKind kind;
  return tw_fail("ValueError", "the graph has tensors on a device of the kind %s, and the executor was given none",
                 tw_device_kind(&kind, (int32_t)device_type));
}

/* The arena of a device, made when missing. There is room for all that a tensor can be on. */
static int32_t arena_of(TilewrightGraph* graph, DLDevice device) {
  for (int32_t i = 0; i < graph->num_arenas; ++i) {
    if (tw_same_device(graph->arenas[i].device, device)) return i;
  }
  uint32_t flags = tilewright_device_flags(device.device_type);
  graph->num_unfinished += (flags & TILEWRIGHT_DEVICE_HOST_READS) && (flags & TILEWRIGHT_DEVICE_ASYNCHRONOUS);
  graph->arenas[graph->num_arenas].device = device;
  return graph->num_arenas++;
}

/* Puts every tensor, and the storage that it is in, on its device. */
static int32_t read_devices(TilewrightGraph* graph, const TwJson* root, const DLDevice* devices, int32_t num_devices) {
  const TwJson* kinds = attribute(root, "device_index");
  if (kinds != NULL && kinds->count != graph->num_entries) return damaged("it does not have a device for each tensor");
  graph->storages = tw_graph_allocate(graph, (uint64_t)graph->num_storages, sizeof *graph->storages);
  graph->arenas = tw_graph_allocate(graph, (uint64_t)(kinds != NULL ? num_devices : 1), sizeof *graph->arenas);
  if (graph->storages == NULL || graph->arenas == NULL) return -1;
  for (int32_t i = 0; i < graph->num_storages; ++i) graph->storages[i].arena = graph->storages[i].first_entry = -1;
  const TwJson* value = kinds != NULL ? kinds->first : NULL;
  for (int32_t i = 0; i < graph->num_entries; ++i) {
    TwGraphEntry* entry = &graph->entries[i];
    entry->tensor.device = devices[0];
    if (value != NULL) {
      int64_t device_type;
      if (!tw_json_integer(value, INT32_MAX, &device_type)) return damaged("a tensor has an impossible device");
      if (device_of_type(devices, num_devices, device_type, &entry->tensor.device) != 0) return -1;
      value = value->next;
    }
    int32_t arena = arena_of(graph, entry->tensor.device);
    TwGraphStorage* storage = &graph->storages[entry->storage];
    if (storage->arena >= 0 && storage->arena != arena) return damaged("a storage has tensors on different devices");
    storage->arena = arena;
    entry->next_in_storage = storage->first_entry;
    storage->first_entry = i;
  }
  return 0;
}

/* ---- memory ---- */

/* Has the arena of its device reach to the end of a storage. */
static int32_t extend_arena(TilewrightGraph* graph, const TwGraphStorage* storage) {
  uint64_t end;
  if (__builtin_add_overflow(storage->num_bytes, (uint64_t)TW_ALIGNMENT - 1, &end) ||
      __builtin_add_overflow(storage->offset, end / TW_ALIGNMENT * TW_ALIGNMENT, &end)) {
    return damaged("its tensors are larger than any memory");
  }
  TwGraphArena* arena = &graph->arenas[storage->arena];
  if (end > arena->num_bytes) arena->num_bytes = end;
  return 0;
}

/* Every storage of its own bytes, one after another. */
static int32_t place_in_a_row(TilewrightGraph* graph) {
  for (int32_t i = 0; i < graph->num_storages; ++i) {
    TwGraphStorage* storage = &graph->storages[i];
    if (storage->is_input || storage->arena < 0) continue;
    storage->offset = graph->arenas[storage->arena].num_bytes;
    if (extend_arena(graph, storage) != 0) return -1;
  }
  return 0;
}

/* Where the compiler's plan says: storages that are never needed at the same time may share bytes. */
static int32_t read_offsets(TilewrightGraph* graph, const TwJson* offsets) {
  if (offsets->count != graph->num_storages) return damaged("it does not have an offset for each storage");
  const TwJson* value = offsets->first;
  for (int32_t i = 0; i < graph->num_storages; ++i, value = value->next) {
    TwGraphStorage* storage = &graph->storages[i];
    int64_t offset;
    if (!tw_json_integer(value, INT64_MAX - 1, &offset) || offset % TW_ALIGNMENT != 0) {
      return damaged("a storage has an impossible offset");
    }
    if (storage->is_input || storage->arena < 0) continue;
    storage->offset = (uint64_t)offset;
    if (extend_arena(graph, storage) != 0) return -1;
  }
  return 0;
}

/* The bytes of every tensor, and where in its storage it begins: "tensor_offset" says, and without it at the beginning. */
static int32_t read_ranges(TilewrightGraph* graph, const TwJson* root) {
  const TwJson* offsets = attribute(root, "tensor_offset");
  if (offsets != NULL && offsets->count != graph->num_entries) return damaged("it does not have an offset for each tensor");
  const TwJson* value = offsets != NULL ? offsets->first : NULL;
  for (int32_t i = 0; i < graph->num_entries; ++i) {
    TwGraphEntry* entry = &graph->entries[i];
    uint64_t element = ((uint64_t)entry->tensor.dtype.bits * entry->tensor.dtype.lanes + 7) / 8;
    entry->num_bytes = element;
    for (int32_t d = 0; d < entry->tensor.ndim; ++d) {
      if (__builtin_mul_overflow(entry->num_bytes, (uint64_t)entry->tensor.shape[d], &entry->num_bytes)) {
        return damaged("a tensor is larger than any memory");
      }
    }
    if (entry->num_bytes > INT64_MAX) return damaged("a tensor is larger than any memory");
    if (value == NULL) continue;
    int64_t offset;
    if (!tw_json_integer(value, INT64_MAX - 1, &offset) || (uint64_t)offset % element != 0) {
      return damaged("a tensor has an impossible offset");
    }
    if (offset != 0 && !graph->nodes[entry->node].is_operator) {
      return damaged("an input does not lie at the beginning of its storage");
    }
    if ((uint64_t)offset > INT64_MAX - entry->num_bytes) return damaged("a tensor has an impossible offset");
    entry->offset = (uint64_t)offset;
    value = value->next;
  }
  return 0;
}

/* Every storage in memory of its own, so that an access outside of it meets a guard page. */
static int32_t guard_storages(TilewrightGraph* graph) {
  for (int32_t i = 0; i < graph->num_entries; ++i) {
    const DLTensor* tensor = &graph->entries[i].tensor;
    TwGraphStorage* storage = &graph->storages[graph->entries[i].storage];
    /* Memory is aligned as far as its size is, and a storage may hold tensors of several types. */
    uint64_t element = ((uint64_t)tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
    storage->num_bytes = (storage->num_bytes + element - 1) / element * element;
  }
  for (int32_t i = 0; i < graph->num_storages; ++i) {
    TwGraphStorage* storage = &graph->storages[i];
    if (storage->is_input || storage->arena < 0) continue;
    if (tw_device_alloc(tw_graph_device(graph, i), storage->num_bytes, &storage->owned) != 0) return -1;
    storage->data = storage->owned;
  }
  return 0;
}

static int32_t allocate_arenas(TilewrightGraph* graph) {
  for (int32_t i = 0; i < graph->num_arenas; ++i) {
    TwGraphArena* arena = &graph->arenas[i];
    void* memory;
    if (tw_device_alloc(arena->device, arena->num_bytes, &memory) != 0) return -1;
    arena->data = memory;
  }
  for (int32_t i = 0; i < graph->num_storages; ++i) {
    TwGraphStorage* storage = &graph->storages[i];
    if (!storage->is_input && storage->arena >= 0) storage->data = (char*)graph->arenas[storage->arena].data + storage->offset;
  }
  return 0;
}

/* Gives every storage its size, and those of intermediate tensors their place in the arena of their device. */
static int32_t plan_memory(TilewrightGraph* graph, const TwJson* root) {
  for (int32_t i = 0; i < graph->num_entries; ++i) {
    const TwGraphEntry* entry = &graph->entries[i];
    TwGraphStorage* storage = &graph->storages[entry->storage];
    uint64_t end = entry->offset + entry->num_bytes;
    if (end > storage->num_bytes) storage->num_bytes = end;
    storage->is_input |= !graph->nodes[entry->node].is_operator;
    storage->is_written |= graph->nodes[entry->node].function != NULL;
  }
  if (attribute(root, "storage_offset") != NULL) {
    if (read_offsets(graph, attribute(root, "storage_offset")) != 0) return -1;
  } else if (place_in_a_row(graph) != 0) {
    return -1;
  }
  if ((tw_guard() != TW_GUARD_NONE ? guard_storages(graph) : allocate_arenas(graph)) != 0) return -1;
  for (int32_t i = 0; i < graph->num_entries; ++i) {
    TwGraphEntry* entry = &graph->entries[i];
    char* data = graph->storages[entry->storage].data;
    entry->tensor.data = data != NULL ? data + entry->offset : NULL;
  }
  return 0;
}

/* The inputs whose memory outputs take. */
static int32_t read_updated_inputs(TilewrightGraph* graph, const TwJson* root) {
  const TwJson* nodes = attribute(root, "updated_inputs");
  for (const TwJson* value = nodes != NULL ? nodes->first : NULL; value != NULL; value = value->next) {
    int64_t node;
    if (!tw_json_integer(value, graph->num_nodes - 1, &node) || graph->nodes[node].is_operator) {
      return damaged("an input that is updated is not an input node");
    }
    graph->storages[graph->entries[graph->nodes[node].first_entry].storage].is_updated = true;
  }
  return 0;
}

/* Where the library has the parameter of a storage. */
static int32_t linked_address(TilewrightObject* lookup, int64_t storage, void** out) {
  TVMFFIAny argument = {.type_index = TILEWRIGHT_INT, .v_int64 = storage}, result = {0};
  if (tilewright_function_call(lookup, &argument, 1, &result) != 0) return -1;
  *out = result.type_index == TILEWRIGHT_POINTER ? result.v_ptr : NULL;
  if (result.type_index >= TILEWRIGHT_FIRST_OBJECT) tilewright_any_release(&result);
  return *out != NULL ? 0 : tw_fail("ValueError", "the library does not have the parameter of storage %d", (int)storage);
}

/* Parameters that are constants of the library ("-link-params") are read there, if it has the function that finds them. */
static int32_t link_params(TilewrightGraph* graph, const TwJson* root, TilewrightFind find, void* context) {
  const TwJson* storages = attribute(root, "linked_params");
  if (storages == NULL) return 0;
  TilewrightObject* lookup = find(context, "_lookup_linked_param");
  if (lookup == NULL) return tilewright_error_kind() != NULL ? -1 : 0;
  int32_t status = 0;
  for (const TwJson* value = storages->first; status == 0 && value != NULL; value = value->next) {
    int64_t id;
    if (!tw_json_integer(value, graph->num_storages - 1, &id) || !graph->storages[id].is_input || graph->storages[id].is_written) {
      status = damaged("a linked parameter is not an input");
    } else if (graph->storages[id].arena >= 0 && tw_host_reads(tw_graph_device(graph, (int32_t)id))) {
      void* data;
      status = linked_address(lookup, id, &data);
      if (status != 0) break;
      graph->storages[id].data = data;
      graph->storages[id].is_linked = true;
      if (graph->storages[id].lent == NULL) { /* the function keeps the library, and with it the memory */
        tilewright_object_retain(lookup);
        graph->storages[id].lent = lookup;
      }
      for (int32_t i = graph->storages[id].first_entry; i >= 0; i = graph->entries[i].next_in_storage) {
        graph->entries[i].tensor.data = (char*)data + graph->entries[i].offset;
      }
    }
  }
  tilewright_object_release(lookup);
  return status;
}

/* A node that runs nothing has its results in the memory of its arguments: each in the argument of its number or in the
   first one, or one result in which the arguments lie one after the other. */
static int32_t check_view(const TilewrightGraph* graph, const TwGraphNode* node) {
  const TwGraphEntry* first = &graph->entries[node->first_entry];
  if (node->num_outputs == 1 && node->num_inputs > 1 && graph->entries[node->inputs[0]].num_bytes < first->num_bytes) {
    uint64_t at = first->offset;
    for (int32_t i = 0; i < node->num_inputs; ++i) {
      const TwGraphEntry* part = &graph->entries[node->inputs[i]];
      if (part->storage != first->storage || part->offset != at) return damaged("a tensor does not lie where it is joined to others");
      at += part->num_bytes;
    }
    return at == first->offset + first->num_bytes ? 0 : damaged("joined tensors are not as large as their parts");
  }
  for (int32_t output = 0; output < node->num_outputs; ++output) {
    const TwGraphEntry* made = &graph->entries[node->first_entry + output];
    const TwGraphEntry* from =
        node->num_inputs > 0 ? &graph->entries[node->inputs[output < node->num_inputs ? output : 0]] : NULL;
    if (from == NULL || made->storage != from->storage) {
      return damaged("a node that only renames a tensor does not have the tensor's memory");
    }
    if (made->offset < from->offset || made->offset + made->num_bytes > from->offset + from->num_bytes) {
      return damaged("a part of a tensor is not inside of it");
    }
  }
  return 0;
}

/* What a "__copy" node runs. */
static int32_t copy_tensor(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)num_args, (void)result;
  return tilewright_tensor_copy(args[0].v_ptr, args[1].v_ptr);
}

static int32_t make_copy(TwGraphNode* node) {
  if (node->num_inputs != 1 || node->num_outputs != 1) return damaged("a node that copies has not one input and one output");
  return tilewright_function_create(copy_tensor, NULL, NULL, NULL, &node->function);
}

static int32_t find_functions(TilewrightGraph* graph, const TwJson* root, TilewrightFind find, void* context) {
  const TwJson* value = tw_json_member(root, "nodes")->first;
  for (int32_t i = 0; i < graph->num_nodes; ++i, value = value->next) {
    TwGraphNode* node = &graph->nodes[i];
    if (!node->is_operator) continue;
    const char* name = text_member(tw_json_member(value, "attrs"), "func_name", "");
    if (strcmp(name, "__nop") == 0) {
      if (check_view(graph, node) != 0) return -1;
      continue;
    }
    if (strcmp(name, "__copy") == 0) {
      if (make_copy(node) != 0) return -1;
    } else {
      node->function = find(context, name);
    }
    if (node->function == NULL) {
      if (tilewright_error_kind() != NULL) return -1;
      return tw_fail("ValueError", "the graph's node %s calls %s, and the module has no such function", node->name, name);
    }
    node->num_args = node->num_inputs + node->num_outputs;
    node->args = tw_graph_allocate(graph, (uint64_t)node->num_args, sizeof *node->args);
    bool flatten = strcmp(text_member(tw_json_member(value, "attrs"), "flatten_data", "0"), "1") == 0;
    if (flatten) node->flat = tw_graph_allocate(graph, (uint64_t)node->num_args, sizeof *node->flat);
    if (node->args == NULL || (flatten && node->flat == NULL)) return -1;
    graph->has_vectors |= flatten;
  }
  return 0;
}

/* A vector with the elements of a tensor: its one extent and stride stand behind it in `extents`. */
static int32_t flatten_tensor(TilewrightGraph* graph, const DLTensor* tensor, DLTensor* out) {
  int64_t* extents = tw_graph_allocate(graph, 2, sizeof *extents);
  if (extents == NULL) return -1;
  extents[0] = extents[1] = 1;
  for (int32_t d = 0; d < tensor->ndim; ++d) extents[0] *= tensor->shape[d];
  *out = *tensor;
  out->ndim = 1;
  out->shape = extents;
  out->strides = extents + 1;
  return 0;
}

static int32_t fill_arguments(TilewrightGraph* graph) {
  for (int32_t i = 0; i < graph->num_nodes; ++i) {
    TwGraphNode* node = &graph->nodes[i];
    for (int32_t a = 0; a < node->num_args; ++a) {
      int32_t entry = a < node->num_inputs ? node->inputs[a] : node->first_entry + a - node->num_inputs;
      DLTensor* tensor = &graph->entries[entry].tensor;
      if (node->flat != NULL) {
        if (flatten_tensor(graph, tensor, &node->flat[a]) != 0) return -1;
        tensor = &node->flat[a];
      }
      node->args[a] = (TVMFFIAny){.type_index = TILEWRIGHT_DLTENSOR, .v_ptr = tensor};
    }
  }
  return 0;
}

int32_t tw_graph_read(TilewrightGraph* graph, const char* json, size_t size, TilewrightFind find, void* context, const DLDevice* devices,
                      int32_t num_devices) {
  TwJsonDocument document;
  tilewright_clear_error(); /* so that an error after a look-up is the look-up's */
  if (!tw_json_parse(json, size, &document)) return -1;
  const TwJson* root = document.root;
  int32_t status = read_nodes(graph, root);
  if (status == 0) status = read_entries(graph, root);
  if (status == 0) status = read_inputs_and_outputs(graph, root);
  if (status == 0) status = read_output_names(graph, root);
  if (status == 0) status = read_devices(graph, root, devices, num_devices);
  if (status == 0) status = read_ranges(graph, root);
  if (status == 0) status = find_functions(graph, root, find, context);
  if (status == 0) status = plan_memory(graph, root);
  if (status == 0) status = read_updated_inputs(graph, root);
  if (status == 0) status = link_params(graph, root, find, context);
  if (status == 0) status = fill_arguments(graph);
  tw_json_free(&document);
  return status;
}
