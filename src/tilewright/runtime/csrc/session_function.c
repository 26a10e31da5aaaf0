/* Sessions of models that were compiled ahead of time to one function of inputs, outputs and workspace. Stored is a
 * description in JSON: the name of the function, what it takes and gives, and the bytes of its workspace. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "session.h"

static int32_t damaged(void) { return tw_fail("ValueError", "the description of the model in the library is damaged"); }

static bool is_list(const TwJson* value) { return value != NULL && value->kind == JSON_ARRAY && value->count < 65536; }

static int64_t count_extents(const TwJson* tensors) {
  int64_t count = 0;
  for (const TwJson* at = tensors->first; at != NULL; at = at->next) {
    const TwJson* shape = tw_json_member(at, "shape");
    if (!is_list(shape) || shape->count > TW_MOST_DIMENSIONS) return -1;
    count += shape->count;
  }
  return count;
}

/* The descriptions of a list; `extents` is where their shapes go. False for a list that is none. */
static bool describe(TilewrightTensorInfo* out, const TwJson* tensors, int64_t** extents) {
  for (const TwJson* at = tensors->first; at != NULL; at = at->next, ++out) {
    const TwJson *name = tw_json_member(at, "name"), *dtype = tw_json_member(at, "dtype"), *shape = tw_json_member(at, "shape");
    if (name == NULL || name->kind != JSON_STRING || dtype == NULL || dtype->kind != JSON_STRING) return false;
    out->name = name->text;
    out->ndim = (int32_t)shape->count;
    out->shape = *extents;
    if (!tw_parse_dtype(dtype->text, &out->dtype)) return false;
    for (const TwJson* extent = shape->first; extent != NULL; extent = extent->next) {
      if (!tw_json_integer(extent, (int64_t)1 << 40, (*extents)++)) return false;
    }
  }
  return true;
}

static int32_t make_outputs(TilewrightSession* session, int64_t workspace) {
  DLDataType byte = {kDLUInt, 8, 1};
  if (workspace > 0 && tilewright_tensor_create(&workspace, 1, byte, TW_HOST, &session->workspace) != 0) return -1;
  for (int32_t i = 0; i < session->num_outputs; ++i) {
    const TilewrightTensorInfo* info = &session->outputs[i];
    if (tilewright_tensor_create(info->shape, info->ndim, info->dtype, TW_HOST, &session->made[i]) != 0) return -1;
  }
  return 0;
}

static int32_t open_function(TilewrightSession* session, TilewrightSession* shared) {
  (void)shared; /* the parameters are in the code */
  if (!tw_json_parse(session->content, (size_t)session->size, &session->description)) return -1;
  const TwJson* root = session->description.root;
  const TwJson *name = tw_json_member(root, "name"), *inputs = tw_json_member(root, "inputs"), *outputs = tw_json_member(root, "outputs");
  int64_t workspace;
  if (name == NULL || name->kind != JSON_STRING || !is_list(inputs) || !is_list(outputs)) return damaged();
  if (!tw_json_integer(tw_json_member(root, "workspace_bytes"), (int64_t)1 << 48, &workspace)) return damaged();
  int64_t first = count_extents(inputs), second = count_extents(outputs);
  if (first < 0 || second < 0) return damaged();
  session->function = tilewright_library_function(session->library, name->text);
  if (session->function == NULL) return tw_fail("ValueError", "the library has no function %s, which its model is", name->text);
  int64_t* extents = session->extents = calloc((size_t)(first + second) + 1, sizeof *extents);
  if (extents == NULL) return tw_fail("MemoryError", "no memory for a session");
  if (tw_session_allocate(session, (int32_t)inputs->count, (int32_t)outputs->count) != 0) return -1;
  if (!describe(session->inputs, inputs, &extents) || !describe(session->outputs, outputs, &extents)) return damaged();
  return make_outputs(session, workspace);
}

static int32_t run(TilewrightSession* session) {
  int32_t count = 0;
  TVMFFIAny* args = calloc((size_t)session->num_inputs + (size_t)session->num_outputs + 1, sizeof *args);
  if (args == NULL) return tw_fail("MemoryError", "no memory for the arguments of a model");
  for (int32_t i = 0; i < session->num_inputs; ++i) args[count++] = (TVMFFIAny){.type_index = TILEWRIGHT_TENSOR, .v_obj = session->values[i]};
  for (int32_t i = 0; i < session->num_outputs; ++i) args[count++] = (TVMFFIAny){.type_index = TILEWRIGHT_TENSOR, .v_obj = session->made[i]};
  if (session->workspace != NULL) args[count++] = (TVMFFIAny){.type_index = TILEWRIGHT_TENSOR, .v_obj = session->workspace};
  TVMFFIAny result = {0};
  int32_t status = tilewright_function_call(session->function, args, count, &result);
  tilewright_any_release(&result);
  free(args);
  return status;
}

static void close_function(TilewrightSession* session) {
  tilewright_object_release(session->function);
  tilewright_object_release(session->workspace);
  tw_json_free(&session->description);
}

const TwSessionKind tw_function_session = {"AOTModel", open_function, tw_session_keep, run, tw_session_made, close_function};
