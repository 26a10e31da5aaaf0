/* Sessions: a library with its model inside, opened in one call and used by the names of its inputs and outputs. */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const TwSessionKind* const kinds[] = {&tw_graph_session, &tw_program_session, &tw_function_session};

/* ---- opening ---- */

int32_t tw_session_allocate(TilewrightSession* session, int32_t num_inputs, int32_t num_outputs) {
  session->num_inputs = num_inputs;
  session->num_outputs = num_outputs;
  session->inputs = calloc((size_t)num_inputs + 1, sizeof *session->inputs);
  session->outputs = calloc((size_t)num_outputs + 1, sizeof *session->outputs);
  session->is_set = calloc((size_t)num_inputs + 1, sizeof *session->is_set);
  session->values = calloc((size_t)num_inputs + 1, sizeof *session->values);
  session->made = calloc((size_t)num_outputs + 1, sizeof *session->made);
  session->results = calloc((size_t)num_outputs + 1, sizeof *session->results);
  bool is_complete = session->inputs != NULL && session->outputs != NULL && session->is_set != NULL && session->values != NULL &&
                     session->made != NULL && session->results != NULL;
  if (is_complete) return 0;
  session->num_inputs = session->num_outputs = 0;
  return tw_fail("MemoryError", "no memory for a session");
}

/* A session of a stored model, with the parameters of `shared` unless that is NULL. */
static TilewrightSession* create(const TwSessionKind* kind, void* library, const char* content, uint64_t size, const DLDevice* devices,
                                 int32_t num_devices, TilewrightSession* shared) {
  TilewrightSession* session = calloc(1, sizeof *session);
  if (session != NULL) session->devices = calloc((size_t)num_devices + 1, sizeof *devices);
  if (session == NULL || session->devices == NULL) {
    free(session);
    tw_fail("MemoryError", "no memory for a session");
    return NULL;
  }
  if (num_devices > 0) memcpy(session->devices, devices, (size_t)num_devices * sizeof *devices);
  session->num_devices = num_devices;
  session->kind = kind;
  session->library = library;
  session->content = content;
  session->size = size;
  if (kind->open(session, shared) == 0) return session;
  tilewright_close(session);
  return NULL;
}

typedef struct {
  const TwSessionKind* kind;
  const char* content;
  uint64_t size;
} Found;

static int32_t find_model(void* context, const char* type_key, const char* content, uint64_t size) {
  Found* found = context;
  for (size_t i = 0; found->kind == NULL && i < sizeof kinds / sizeof kinds[0]; ++i) {
    if (strcmp(kinds[i]->stored_as, type_key) == 0) *found = (Found){kinds[i], content, size};
  }
  return 0;
}

TilewrightSession* tilewright_open(const char* path) {
  DLDevice host = TW_HOST;
  return tilewright_open_on(path, &host, 1);
}

TilewrightSession* tilewright_open_on(const char* path, const DLDevice* devices, int32_t num_devices) {
  void* library = tilewright_library_open(path);
  if (library == NULL) return NULL;
  Found found = {0};
  if (tw_for_each_import(library, path, find_model, &found) != 0) return NULL;
  if (found.kind == NULL) {
    tw_fail("ValueError", "%s has no model in it, only functions: tilewright_library_function finds them by name", path);
    return NULL;
  }
  return create(found.kind, library, found.content, found.size, devices, num_devices, NULL);
}

TilewrightSession* tilewright_session_clone(TilewrightSession* session) {
  return create(session->kind, session->library, session->content, session->size, session->devices, session->num_devices, session);
}

static void forget_results(TilewrightSession* session) {
  for (int32_t i = 0; i < session->num_outputs; ++i) {
    tilewright_object_release(session->results[i]);
    session->results[i] = NULL;
  }
}

void tilewright_close(TilewrightSession* session) {
  if (session == NULL) return;
  forget_results(session);
  for (int32_t i = 0; i < session->num_inputs; ++i) tilewright_object_release(session->values[i]);
  for (int32_t i = 0; i < session->num_outputs; ++i) tilewright_object_release(session->made[i]);
  session->kind->close(session);
  void* const owned[] = {session->devices, session->inputs,       session->outputs, session->is_set, session->values,
                         session->made,    session->results, session->graph_inputs, session->extents};
  for (size_t i = 0; i < sizeof owned / sizeof owned[0]; ++i) free(owned[i]);
  free(session);
}

/* ---- inputs and outputs ---- */

int32_t tilewright_session_num_inputs(const TilewrightSession* session) { return session->num_inputs; }
int32_t tilewright_session_num_outputs(const TilewrightSession* session) { return session->num_outputs; }

const TilewrightTensorInfo* tilewright_session_input_info(const TilewrightSession* session, int32_t index) {
  return index >= 0 && index < session->num_inputs ? &session->inputs[index] : NULL;
}

const TilewrightTensorInfo* tilewright_session_output_info(const TilewrightSession* session, int32_t index) {
  return index >= 0 && index < session->num_outputs ? &session->outputs[index] : NULL;
}

/* The number of a name; -1 with an error that lists the names there are. */
static int32_t find(const TilewrightTensorInfo* tensors, int32_t count, const char* what, const char* name) {
  char known[512] = "none";
  size_t at = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (strcmp(tensors[i].name, name) == 0) return i;
    if (at < sizeof known) at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i > 0 ? ", " : "", tensors[i].name);
  }
  return tw_fail("ValueError", "the model has no %s %s; it has %s", what, name, known);
}

/* "float32[4, ?]" for a message. */
typedef struct {
  char text[256];
} TypeName;
static const char* type_name(TypeName* out, DLDataType dtype, int32_t ndim, const int64_t* shape) {
  TwDataTypeName element;
  size_t at = (size_t)snprintf(out->text, sizeof out->text, "%s[", tw_data_type_name(&element, dtype));
  for (int32_t i = 0; i < ndim && at < sizeof out->text; ++i) {
    const char* separator = i > 0 ? ", " : "";
    size_t room = sizeof out->text - at;
    at += (size_t)(shape[i] < 0 ? snprintf(out->text + at, room, "%s?", separator)
                                : snprintf(out->text + at, room, "%s%lld", separator, (long long)shape[i]));
  }
  if (at < sizeof out->text) snprintf(out->text + at, sizeof out->text - at, "]");
  return out->text;
}

static int32_t check_fits(const TilewrightTensorInfo* info, const DLTensor* from) {
  DLDataType dtype = from->dtype;
  if (dtype.code == kDLBool && dtype.bits == 8) dtype = (DLDataType){kDLUInt, 1, dtype.lanes};
  bool fits = dtype.code == info->dtype.code && dtype.bits == info->dtype.bits && dtype.lanes == info->dtype.lanes && from->ndim == info->ndim;
  for (int32_t i = 0; fits && i < info->ndim; ++i) fits = info->shape[i] < 0 ? from->shape[i] >= 0 : info->shape[i] == from->shape[i];
  if (fits) return 0;
  TypeName given, wanted;
  return tw_fail("ValueError", "the input %s is given %s; it takes %s", info->name, type_name(&given, from->dtype, from->ndim, from->shape),
                 type_name(&wanted, info->dtype, info->ndim, info->shape));
}

static int32_t enter(TilewrightSession* session) {
  int32_t free_to_use = 0;
  if (atomic_compare_exchange_strong(&session->in_use, &free_to_use, 1)) return 0;
  return tw_fail("RuntimeError", "the session is in use by another thread: give each thread its own (tilewright_session_clone)");
}

static int32_t leave(TilewrightSession* session, int32_t status) {
  atomic_store(&session->in_use, 0);
  return status;
}

int32_t tilewright_session_set_tensor(TilewrightSession* session, const char* name, const DLTensor* tensor) {
  int32_t input = find(session->inputs, session->num_inputs, "input", name);
  if (input < 0 || check_fits(&session->inputs[input], tensor) != 0 || enter(session) != 0) return -1;
  int32_t status = session->kind->set(session, input, tensor);
  if (status == 0) session->is_set[input] = true;
  return leave(session, status);
}

/* The shape of so many bytes: at most one extent is open, and follows from the others. */
static int32_t shape_of(const TilewrightTensorInfo* info, uint64_t num_bytes, int64_t* shape) {
  uint64_t known = ((uint64_t)info->dtype.bits * info->dtype.lanes + 7) / 8;
  int32_t open = -1;
  TypeName wanted;
  for (int32_t i = 0; i < info->ndim; ++i) {
    shape[i] = info->shape[i];
    if (shape[i] >= 0) {
      known *= (uint64_t)shape[i];
    } else if (open >= 0) {
      return tw_fail("ValueError", "the input %s, %s, has several open sizes: give its shape with tilewright_session_set_tensor", info->name,
                     type_name(&wanted, info->dtype, info->ndim, info->shape));
    } else {
      open = i;
    }
  }
  if (open >= 0 && known > 0 && num_bytes % known == 0) {
    shape[open] = (int64_t)(num_bytes / known);
    return 0;
  }
  if (open < 0 && known == num_bytes) return 0;
  return tw_fail("ValueError", "the input %s, %s, takes %s%llu bytes; %llu are given", info->name,
                 type_name(&wanted, info->dtype, info->ndim, info->shape), open >= 0 ? "a multiple of " : "", (unsigned long long)known,
                 (unsigned long long)num_bytes);
}

int32_t tilewright_session_set_input(TilewrightSession* session, const char* name, const void* values, size_t num_bytes) {
  int32_t input = find(session->inputs, session->num_inputs, "input", name);
  if (input < 0) return -1;
  const TilewrightTensorInfo* info = &session->inputs[input];
  int64_t shape[TW_MOST_DIMENSIONS];
  if (shape_of(info, num_bytes, shape) != 0) return -1;
  DLTensor tensor = {.data = (void*)(uintptr_t)values, .device = TW_HOST, .ndim = info->ndim, .dtype = info->dtype, .shape = shape};
  return tilewright_session_set_tensor(session, name, &tensor);
}

int32_t tw_session_keep(TilewrightSession* session, int32_t input, const DLTensor* from) {
  TilewrightObject* copy;
  if (tilewright_tensor_create(from->shape, from->ndim, session->inputs[input].dtype, TW_HOST, &copy) != 0) return -1;
  DLTensor source = *from;
  source.dtype = session->inputs[input].dtype; /* a bool may go by two names */
  if (tilewright_tensor_copy(&source, tilewright_tensor_dltensor(copy)) != 0) {
    tilewright_object_release(copy);
    return -1;
  }
  tilewright_object_release(session->values[input]);
  session->values[input] = copy;
  return 0;
}

int32_t tilewright_session_run(TilewrightSession* session) {
  for (int32_t i = 0; i < session->num_inputs; ++i) {
    if (!session->is_set[i]) return tw_fail("ValueError", "the input %s has no value yet", session->inputs[i].name);
  }
  if (enter(session) != 0) return -1;
  forget_results(session);
  int32_t status = session->kind->run(session);
  session->was_run = status == 0;
  return leave(session, status);
}

int32_t tw_session_made(TilewrightSession* session, int32_t output, TilewrightObject** out) {
  tilewright_object_retain(session->made[output]);
  *out = session->made[output];
  return 0;
}

/* The output in compact host memory: as it is, or a copy. */
static int32_t bring(TilewrightSession* session, int32_t output) {
  TilewrightObject* found;
  if (session->kind->output(session, output, &found) != 0) return -1;
  const DLTensor* tensor = tilewright_tensor_dltensor(found);
  if (tw_host_reads(tensor->device) && tw_is_compact(tensor) && tensor->byte_offset == 0) {
    session->results[output] = found;
    return 0;
  }
  TilewrightObject* copy = NULL;
  int32_t status = tilewright_tensor_create(tensor->shape, tensor->ndim, tensor->dtype, TW_HOST, &copy);
  if (status == 0) status = tilewright_tensor_copy(tensor, tilewright_tensor_dltensor(copy));
  tilewright_object_release(found);
  if (status == 0) session->results[output] = copy;
  if (status != 0) tilewright_object_release(copy);
  return status;
}

const DLTensor* tilewright_session_output(TilewrightSession* session, const char* name) {
  int32_t output = find(session->outputs, session->num_outputs, "output", name);
  if (output < 0) return NULL;
  if (!session->was_run) {
    tw_fail("RuntimeError", "the model has no outputs yet: call tilewright_session_run first");
    return NULL;
  }
  if (enter(session) != 0) return NULL;
  int32_t status = session->results[output] != NULL ? 0 : bring(session, output);
  return leave(session, status) == 0 ? tilewright_tensor_dltensor(session->results[output]) : NULL;
}

int32_t tilewright_session_copy_output(TilewrightSession* session, const char* name, void* values, size_t num_bytes) {
  const DLTensor* tensor = tilewright_session_output(session, name);
  if (tensor == NULL) return -1;
  uint64_t size = ((uint64_t)tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
  for (int32_t i = 0; i < tensor->ndim; ++i) size *= (uint64_t)tensor->shape[i];
  if (size != num_bytes) {
    TypeName type;
    return tw_fail("ValueError", "the output %s, %s, has %llu bytes; there is room for %llu", name,
                   type_name(&type, tensor->dtype, tensor->ndim, tensor->shape), (unsigned long long)size, (unsigned long long)num_bytes);
  }
  if (size > 0) memcpy(values, tensor->data, (size_t)size);
  return 0;
}
