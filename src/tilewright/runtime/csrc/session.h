/* A session in memory, shared by what programs call and the kinds of models. Internal to the runtime. */
#ifndef TILEWRIGHT_SESSION_H_
#define TILEWRIGHT_SESSION_H_

#include "device.h"
#include "json.h"

/* What differs from kind to kind of model. Names are checked, and values have the input's type and shape, before. */
typedef struct {
  const char* stored_as; /* the kind of module that it is stored as in a library */
  int32_t (*open)(TilewrightSession* session, TilewrightSession* shared); /* `shared`: NULL, or whose parameters to use */
  int32_t (*set)(TilewrightSession* session, int32_t input, const DLTensor* from);
  int32_t (*run)(TilewrightSession* session);
  int32_t (*output)(TilewrightSession* session, int32_t output, TilewrightObject** out);
  void (*close)(TilewrightSession* session);
} TwSessionKind;

extern const TwSessionKind tw_graph_session;    /* session_graph.c */
extern const TwSessionKind tw_program_session;  /* session_program.c: the virtual machine */
extern const TwSessionKind tw_function_session; /* session_function.c: compiled ahead of time */

struct TilewrightSession {
  const TwSessionKind* kind;
  _Atomic int32_t in_use; /* 1 while a thread is in it */
  bool was_run;
  void* library;
  const char* content; /* the model as it is stored in the library, which stays loaded */
  uint64_t size;
  DLDevice* devices;
  int32_t num_devices;
  TilewrightTensorInfo* inputs;
  TilewrightTensorInfo* outputs;
  int32_t num_inputs, num_outputs;
  bool* is_set;               /* for each input */
  TilewrightObject** values;  /* for each input, where the kind does not keep them itself */
  TilewrightObject** made;    /* for each output, what the last run made of it */
  TilewrightObject** results; /* for each output, the tensor in host memory that the caller was given */

  TilewrightGraph* graph;
  int32_t* graph_inputs; /* the graph's number of each input */
  TilewrightVM* vm;
  TilewrightObject* function;
  TilewrightObject* workspace;
  TwJsonDocument description;
  int64_t* extents;
};

/* Room for the description of inputs and outputs, empty, and for their values. */
int32_t tw_session_allocate(TilewrightSession* session, int32_t num_inputs, int32_t num_outputs);

/* A copy of a value in host memory, for kinds that take all values when they run. */
int32_t tw_session_keep(TilewrightSession* session, int32_t input, const DLTensor* from);

/* What the last run made, for kinds that put it into `made`. */
int32_t tw_session_made(TilewrightSession* session, int32_t output, TilewrightObject** out);

#endif
