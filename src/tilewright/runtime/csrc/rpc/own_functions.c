/* The functions that every server has, by name. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph_profile.h"
#include "modules.h"
#include "serve.h"

static int32_t echo(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  if (num_args < 1) return tw_fail("TypeError", "testing.echo takes a value");
  *result = args[0];
  if (args[0].type_index >= TILEWRIGHT_FIRST_OBJECT) tilewright_object_retain(args[0].v_obj);
  return 0;
}

static int32_t fail_with_message(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)args, (void)num_args, (void)result;
  return tw_fail("RuntimeError", "%s", (const char*)self);
}

static const char* text_of(const TVMFFIAny* args, int32_t num_args, int32_t index, const char* what) {
  const char* text = NULL;
  size_t size;
  if (index >= num_args) {
    tw_fail("TypeError", "%s is missing", what);
  } else if (tilewright_get_bytes(&args[index], &text, &size) != 0) {
    text = NULL;
  }
  return text;
}

/* A function that fails with a message. */
static int32_t make_failing(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  const char* message = text_of(args, num_args, 0, "the message");
  TilewrightObject* function;
  if (message == NULL) return -1;
  char* kept = strdup(message);
  if (kept == NULL) return tw_fail("MemoryError", "no memory for a message");
  if (tilewright_function_create(fail_with_message, kept, kept, free, &function) != 0) {
    free(kept);
    return -1;
  }
  *result = (TVMFFIAny){.type_index = TILEWRIGHT_FUNCTION, .v_obj = function};
  return 0;
}

static int32_t upload(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)result;
  Session* session = self;
  const char *path = text_of(args, num_args, 0, "the path"), *data;
  size_t size;
  FolderFile file;
  if (path == NULL || text_of(args, num_args, 1, "the content") == NULL || tilewright_get_bytes(&args[1], &data, &size) != 0) return -1;
  if (folder_begin_file(&session->folder, path, size, &file) != 0) return -1;
  int32_t status = folder_write(&file, data, size);
  return folder_end_file(&session->folder, &file, size, status == 0) == 0 ? status : -1;
}

static int32_t download(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  Session* session = self;
  const char* path = text_of(args, num_args, 0, "the path");
  uint64_t size;
  int descriptor = path != NULL ? folder_open_file(&session->folder, path, &size) : -1;
  if (descriptor < 0) return -1;
  char* content = size <= session->most_bulk ? malloc((size_t)size + 1) : NULL;
  int32_t status = content != NULL ? 0 : tw_fail("MemoryError", "no memory for the content of %.200s", path);
  size_t done = 0;
  while (status == 0 && done < size) {
    ssize_t count = read(descriptor, content + done, (size_t)size - done);
    if (count <= 0) status = tw_fail("OSError", "cannot read %.200s", path);
    if (count > 0) done += (size_t)count;
  }
  if (status == 0) status = tilewright_make_bytes(content, (size_t)size, result);
  free(content);
  close(descriptor);
  return status;
}

static int32_t remove_file(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)result;
  const char* path = text_of(args, num_args, 0, "the path");
  return path != NULL ? folder_remove_file(&((Session*)self)->folder, path) : -1;
}

int32_t load_path(Session* session, const char* path, TVMFFIAny* result) {
  char where[2048];
  if (folder_path_of(&session->folder, path, where, sizeof where) != 0) return -1;
  TilewrightObject* module = module_load(where);
  if (module == NULL) return -1;
  *result = (TVMFFIAny){.type_index = TYPE_MODULE, .v_obj = module};
  return 0;
}

static int32_t load_file(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  const char* path = text_of(args, num_args, 0, "the path");
  return path != NULL ? load_path(self, path, result) : -1;
}

static int32_t create_graph(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  DLDevice devices[8];
  int32_t count = 0;
  const char* json = text_of(args, num_args, 0, "the graph");
  if (json == NULL) return -1;
  if (num_args < 2 || args[1].type_index != TYPE_MODULE) return tw_fail("TypeError", "a graph executor needs the module with its functions");
  for (int32_t i = 2; i < num_args; ++count) {
    if (count == 8) return tw_fail("ValueError", "a graph for more than 8 devices");
    if (args[i].type_index == TILEWRIGHT_DEVICE) {
      devices[count] = args[i++].v_device;
    } else if (i + 1 < num_args && args[i].type_index == TILEWRIGHT_INT && args[i + 1].type_index == TILEWRIGHT_INT) {
      devices[count] = (DLDevice){(int32_t)args[i].v_int64, (int32_t)args[i + 1].v_int64};
      i += 2;
    } else {
      return tw_fail("TypeError", "a device is missing, or is not one");
    }
  }
  TilewrightObject* made = module_of_graph(json, args[1].v_obj, devices, count);
  if (made == NULL) return -1;
  *result = (TVMFFIAny){.type_index = TYPE_MODULE, .v_obj = made};
  return 0;
}

static const struct {
  const char* name;
  TilewrightFunction call;
} own_functions[] = {{"tvm.rpc.server.upload", upload},       {"tvm.rpc.server.download", download},
                     {"tvm.rpc.server.remove", remove_file},  {"tvm.rpc.server.load_module", load_file},
                     {"tvm.graph_executor.create", create_graph}, {"testing.echo", echo},
                     {"testing.test_raise_error_callback", make_failing},
                     {"tilewright.graph.node_names", graph_node_names}, {"tilewright.graph.run_timed", graph_run_timed},
                     {"tilewright.graph.time_node", graph_time_node},
                     {"tilewright.vm.create", create_machine}};

TilewrightObject* own_function_of(Session* session, const char* name) {
  for (size_t i = 0; i < sizeof own_functions / sizeof own_functions[0]; ++i) {
    TilewrightObject* function;
    if (strcmp(own_functions[i].name, name) != 0) continue;
    if (tilewright_function_create(own_functions[i].call, session, NULL, NULL, &function) == 0) return function;
    tilewright_clear_error();
  }
  return NULL;
}
