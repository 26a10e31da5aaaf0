/* A graph in memory, shared by its reader and its executor. Internal to the runtime. */
#ifndef TILEWRIGHT_GRAPH_H_
#define TILEWRIGHT_GRAPH_H_

#include "device.h"

/* One tensor of the graph: an output of a node. */
typedef struct {
  DLTensor tensor; /* its data is in the storage; its shape and strides are in the graph's `extents` */
  int32_t storage;
  int32_t next_in_storage; /* another entry of the same storage; -1: none */
  int32_t node;
  uint64_t offset;    /* bytes from the beginning of the storage */
  uint64_t num_bytes;
} TwGraphEntry;

/* The memory of all intermediate tensors on one device. */
typedef struct {
  DLDevice device;
  void* data;
  uint64_t num_bytes;
} TwGraphArena;

/* Memory that one or more entries use: at different times, or parts of it. */
typedef struct {
  uint64_t num_bytes;
  int32_t first_entry; /* of the list of its entries; -1: none */
  int32_t arena;     /* of its device; -1: no entry uses the storage */
  uint64_t offset;   /* in the arena, for storages of intermediate tensors */
  void* data;        /* NULL: an input that nobody has set yet */
  void* owned;       /* what to free: for inputs, and for all where tensors are guarded */
  TilewrightObject* lent; /* what keeps the memory that an input reads in place: a tensor, a library's function; NULL: its own, or
                             a caller's */
  bool is_input;     /* some entry of it is an input of the graph */
  bool is_written;   /* some entry of it is written by a function */
  bool is_updated;   /* an input whose memory an output takes, as whoever built the graph asked for */
  bool is_linked;    /* a parameter inside the library; nobody has to set it */
} TwGraphStorage;

typedef struct {
  const char* name;
  bool is_operator;
  TilewrightObject* function; /* NULL: nothing to run */
  int32_t first_entry, num_outputs;
  int32_t num_inputs;
  int32_t* inputs; /* entries */
  int32_t num_args;
  TVMFFIAny* args;
  DLTensor* flat; /* one for each argument, where the function wants vectors; else NULL */
} TwGraphNode;

struct TilewrightGraph {
  _Atomic int32_t references;
  _Atomic int32_t in_use; /* 1 while a thread runs the graph or sets an input */
  TwGraphNode* nodes;
  TwGraphEntry* entries;
  TwGraphStorage* storages;
  int32_t* inputs;  /* nodes */
  int32_t* outputs; /* entries */
  const char** output_names;
  int64_t* extents;
  int32_t num_nodes, num_entries, num_storages, num_inputs, num_outputs;
  bool has_vectors; /* some node has `flat` tensors */
  TwGraphArena* arenas; /* one for each device that the graph has tensors on */
  int32_t num_arenas;
  int32_t num_unfinished; /* devices that may be at work after a run, and whose memory the host reads where it is */
  TilewrightGraph** shared; /* graphs whose parameters this one uses */
  int32_t num_shared;
  void* recording; /* of a run, by the device that all tensors are on; NULL: none */
  bool records;    /* runs are recorded where that can be */
  int32_t steady_runs; /* plain ones since the memory of an input last changed: 0 or 1 */
  struct TwGraphMemory* memory; /* all that is freed with the graph and moves never */
};

/* Zeroed memory that lives as long as the graph; NULL with an error. */
void* tw_graph_allocate(TilewrightGraph* graph, uint64_t count, uint64_t size);

/* Fills an empty graph from its text. */
int32_t tw_graph_read(TilewrightGraph* graph, const char* json, size_t size, TilewrightFind find, void* context, const DLDevice* devices,
                      int32_t num_devices);

static inline DLDevice tw_graph_device(const TilewrightGraph* graph, int32_t storage) {
  return graph->arenas[graph->storages[storage].arena].device;
}

/* "float32x4" and its like; false for text that is not a data type. */
bool tw_parse_dtype(const char* text, DLDataType* out);

/* Calls `visit` for each parameter of a `save_param_dict` block until it fails; the tensor is good until it returns. */
int32_t tw_for_each_param(const char* data, size_t size, int32_t (*visit)(void* context, const char* name, const DLTensor* tensor),
                          void* context);

/* Runs a node that has something to run. */
int32_t tw_graph_run_node(const TwGraphNode* node);

/* Waits for all devices of the graph. */
int32_t tw_graph_wait(const TilewrightGraph* graph);

/* The begin and the duration of every node in each of some runs, in seconds; the inputs are set. See graph_time.c. */
int32_t tw_graph_time_runs(const TilewrightGraph* graph, int32_t repeat, double* begins, double* seconds);

/* Recordings; see graph_record.c. `run` gives the work of all nodes to the device. */
int32_t tw_graph_run(TilewrightGraph* graph, int32_t (*run)(TilewrightGraph* graph));
int32_t tw_graph_record(TilewrightGraph* graph, int32_t (*run)(TilewrightGraph* graph));
bool tw_graph_can_record(const TilewrightGraph* graph);
void tw_graph_forget_recording(TilewrightGraph* graph);

#endif
