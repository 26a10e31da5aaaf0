/* What a library carries as data beside its code: modules of kernels, which its code launches.
 *
 * The block is that of artefact.py: "TWIMPORT", the number of modules, and for each its parent, the sizes of its kind and
 * of its content, and both. The content of a module of kernels is that of device_module.py: the size of a description in
 * JSON, the description, and the image. Models are for sessions, see session.c; modules of other kinds are for Python. */
#include <stdlib.h>
#include <string.h>

#include "device_tensor_map.h"
#include "graph.h"
#include "internal.h"
#include "json.h"

#define KIND "device_module"

static uint64_t read_number(const char* at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) value = value << 8 | (unsigned char)at[i];
  return value;
}

static int32_t damaged(const char* path) {
  return tw_fail("ValueError", "%s is damaged: the modules that it carries are not readable", path);
}

static bool is_list(const TwJson* value) { return value != NULL && value->kind == JSON_ARRAY; }

/* The kernels that a description lists, for as long as the description lives. False for a list of anything else. */
static bool read_kernels(const TwJson* list, TilewrightKernel* kernels, DLDataType* types, const char** axes, TilewrightTensorMap* maps) {
  for (const TwJson* at = list->first; at != NULL; at = at->next, ++kernels) {
    const TwJson* name = tw_json_member(at, "name");
    const TwJson* shared = tw_json_member(at, "has_shared_bytes");
    if (name == NULL || name->kind != JSON_STRING || shared == NULL || shared->kind != JSON_BOOL) return false;
    *kernels = (TilewrightKernel){.name = name->text, .arg_types = types, .axes = axes, .has_shared_bytes = shared->number != 0};
    const TwJson *overlaps = tw_json_member(at, "overlaps"), *list_of_maps = tw_json_member(at, "tensor_maps");
    if (overlaps != NULL && overlaps->number != 0) kernels->launch_flags = TILEWRIGHT_LAUNCH_OVERLAPS;
    kernels->tensor_maps = maps;
    for (const TwJson* one = list_of_maps != NULL ? list_of_maps->first : NULL; one != NULL; one = one->next, ++kernels->num_tensor_maps) {
      if (!tw_read_tensor_map(one, maps++)) return false;
    }
    for (const TwJson* one = tw_json_member(at, "arguments")->first; one != NULL; one = one->next, ++kernels->num_args, ++types) {
      *types = (DLDataType){kDLOpaqueHandle, 64, 1};
      if (one->kind != JSON_STRING) return false;
      if (strcmp(one->text, "handle") != 0 && !tw_parse_dtype(one->text, types)) return false;
    }
    for (const TwJson* one = tw_json_member(at, "axes")->first; one != NULL; one = one->next, ++kernels->num_axes, ++axes) {
      if (one->kind != JSON_STRING) return false;
      *axes = one->text;
    }
  }
  return true;
}

/* The module that a description and an image are. */
static int32_t make_module(const TwJson* head, const char* image, uint64_t size, const char* path, TilewrightDeviceModule** out) {
  const TwJson* list = tw_json_member(head, "kernels");
  int64_t device_type;
  if (!is_list(list) || size == 0 || !tw_json_integer(tw_json_member(head, "device_type"), INT32_MAX, &device_type)) return damaged(path);
  int64_t num_types = 0, num_axes = 0, num_maps = 0;
  for (const TwJson* at = list->first; at != NULL; at = at->next) {
    const TwJson *arguments = tw_json_member(at, "arguments"), *axes = tw_json_member(at, "axes"), *maps = tw_json_member(at, "tensor_maps");
    if (!is_list(arguments) || !is_list(axes) || (maps != NULL && !is_list(maps))) return damaged(path);
    num_types += arguments->count;
    num_axes += axes->count;
    num_maps += maps != NULL ? maps->count : 0; /* modules from before there were tensor maps have no list */
  }
  TilewrightKernel* kernels = calloc((size_t)list->count + 1, sizeof *kernels);
  DLDataType* types = calloc((size_t)num_types + 1, sizeof *types);
  const char** axes = calloc((size_t)num_axes + 1, sizeof *axes);
  TilewrightTensorMap* maps = calloc((size_t)num_maps + 1, sizeof *maps);
  int32_t status = -1;
  if (kernels == NULL || types == NULL || axes == NULL || maps == NULL) {
    tw_fail("MemoryError", "no memory for the kernels of %s", path);
  } else if (!read_kernels(list, kernels, types, axes, maps)) {
    damaged(path);
  } else {
    status = tilewright_device_module_create((int32_t)device_type, image, (size_t)size, kernels, (int32_t)list->count, out);
  }
  free(kernels);
  free(types);
  free(axes);
  free(maps);
  return status;
}

/* Has the code of a library call the kernels of a module. */
static int32_t bind_kernels(TilewrightDeviceModule* module, const TwJson* list, void* library) {
  for (const TwJson* at = list->first; at != NULL; at = at->next) {
    const char* name = tw_json_member(at, "name")->text;
    char symbol[512];
    if (strlen(name) + sizeof TW_SLOT_PREFIX > sizeof symbol) continue;
    memcpy(symbol, TW_SLOT_PREFIX, sizeof TW_SLOT_PREFIX);
    strcat(symbol, name);
    void* slot = tw_find_symbol(library, symbol);
    if (slot == NULL) continue;
    TilewrightObject* function;
    if (tilewright_device_module_function(module, name, &function) != 0) return -1;
    int32_t status = tilewright_bind_function(slot, function);
    tilewright_object_release(function);
    if (status != 0) return -1;
  }
  return 0;
}

static int32_t bind_module(const char* content, uint64_t size, const char* path, void* library) {
  uint64_t head_size = size >= 8 ? read_number(content, 8) : 0;
  if (size < 8 || head_size > size - 8) return damaged(path);
  TwJsonDocument document;
  if (!tw_json_parse(content + 8, (size_t)head_size, &document)) return -1;
  TilewrightDeviceModule* module = NULL;
  int32_t status = make_module(document.root, content + 8 + head_size, size - 8 - head_size, path, &module);
  if (status == 0) status = bind_kernels(module, tw_json_member(document.root, "kernels"), library);
  tilewright_device_module_release(module);
  tw_json_free(&document);
  return status;
}

int32_t tw_for_each_import(void* library, const char* path,
                           int32_t (*visit)(void* context, const char* type_key, const char* content, uint64_t size), void* context) {
  const char* block = tw_find_symbol(library, "__tilewright_imports");
  const uint64_t* stored_size = tw_find_symbol(library, "__tilewright_imports_size");
  if (block == NULL || stored_size == NULL) return 0;
  uint64_t size = *stored_size;
  if (size < 12 || memcmp(block, "TWIMPORT", 8) != 0) return damaged(path);
  uint64_t count = read_number(block + 8, 4), at = 12;
  for (uint64_t i = 0; i < count; ++i) {
    char type_key[64] = "";
    if (size - at < 16) return damaged(path);
    uint64_t key_size = read_number(block + at + 4, 4), content_size = read_number(block + at + 8, 8);
    at += 16;
    if (key_size > size - at || content_size > size - at - key_size) return damaged(path);
    if (key_size < sizeof type_key) memcpy(type_key, block + at, (size_t)key_size); /* a longer one is none of ours */
    if (visit(context, type_key, block + at + key_size, content_size) != 0) return -1;
    at += key_size + content_size;
  }
  return 0;
}

typedef struct {
  void* library;
  const char* path;
} Binding;

static int32_t bind_import(void* context, const char* type_key, const char* content, uint64_t size) {
  const Binding* binding = context;
  return strcmp(type_key, KIND) == 0 ? bind_module(content, size, binding->path, binding->library) : 0;
}

int32_t tw_bind_imports(void* library, const char* path) {
  Binding binding = {library, path};
  return tw_for_each_import(library, path, bind_import, &binding);
}
