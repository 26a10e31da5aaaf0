#define _GNU_SOURCE
#include "serve.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../device.h"
#include "modules.h"

/* A request while it is handled: what is read of it, and the value of the answer. A handler that answers something else
 * than one value sets `has_answered`. */
typedef struct {
  Session* session;
  Reader reader;
  TVMFFIAny result;
  bool has_value, has_answered;
} Request;

static void write_header(uint8_t* header, uint8_t type, uint64_t head, uint64_t bulk) {
  memset(header, 0, FRAME_HEADER);
  header[0] = type;
  for (int i = 0; i < 4; ++i) header[4 + i] = (uint8_t)(head >> 8 * i);
  for (int i = 0; i < 8; ++i) header[8 + i] = (uint8_t)(bulk >> 8 * i);
}

bool send_frame(Channel* channel, uint8_t type, const void* head, size_t size) {
  uint8_t header[FRAME_HEADER];
  write_header(header, type, size, 0);
  return channel_write(channel, header, sizeof header) && channel_write(channel, head, size) && channel_flush(channel);
}

bool send_error(Channel* channel) {
  Writer writer = {0};
  const char *kind = tilewright_error_kind(), *message = tilewright_error_message();
  char* cut = NULL;
  if (message != NULL && strlen(message) > MOST_HEAD / 2 && (cut = malloc(1000)) != NULL) {
    memcpy(cut, message, 999);
    cut[999] = 0;
    message = cut;
  }
  write_string(&writer, kind != NULL ? kind : "RuntimeError");
  write_string(&writer, message != NULL ? message : "the request failed");
  bool is_sent = send_frame(channel, FRAME_ERROR, writer.data, writer.is_bad ? 0 : writer.size);
  writer_free(&writer);
  free(cut);
  tilewright_clear_error();
  return is_sent;
}

/* Part of the bulk; false once the connection is gone. */
static bool read_bulk(Session* session, void* to, uint64_t size) {
  session->bulk_left -= size;
  return channel_read(session->channel, to, size);
}

/* The whole bulk in memory that the caller frees; NULL with an error. */
static uint8_t* read_whole_bulk(Session* session, uint64_t* size) {
  *size = session->bulk_left;
  uint8_t* bulk = *size <= SIZE_MAX / 2 ? malloc((size_t)*size + 1) : NULL;
  if (bulk == NULL) {
    tw_fail("MemoryError", "no memory for %llu bytes of arguments", (unsigned long long)*size);
    return NULL;
  }
  if (read_bulk(session, bulk, *size)) return bulk;
  free(bulk);
  tw_fail("OSError", "the connection is gone");
  return NULL;
}

static int32_t give(Request* request, int32_t type_index, TilewrightObject* object) {
  if (object == NULL) return -1;
  request->result = (TVMFFIAny){.type_index = type_index, .v_obj = object};
  return 0;
}

/* ---- functions ---- */

static int32_t get_function(Request* request) {
  char* name = read_string(&request->reader);
  if (name == NULL) return -1;
  int32_t status = read_end(&request->reader);
  request->has_value = true;
  if (status == 0) {
    TilewrightObject* found = own_function_of(request->session, name);
    if (found == NULL) found = tilewright_get_function(name);
    if (found != NULL) status = give(request, TILEWRIGHT_FUNCTION, found);
  }
  free(name);
  return status;
}

/* A new reference to the function of a handle: a function, or a module's main one. */
static TilewrightObject* function_of(Session* session, uint64_t handle) {
  TilewrightObject* object = objects_find(&session->objects, handle);
  if (object != NULL && object->type_index == TYPE_MODULE) {
    TilewrightObject* main_function = module_function(object, "__tvm_main__", true);
    if (main_function == NULL) tw_fail("AttributeError", "the module has no main function");
    return main_function;
  }
  object = objects_need(&session->objects, handle, TILEWRIGHT_FUNCTION, "a function");
  if (object != NULL) tilewright_object_retain(object);
  return object;
}

/* The arguments of a call, whose byte strings are the bulk. */
static int32_t take_arguments(Request* request, Arguments* arguments) {
  uint64_t size;
  uint8_t* bulk = read_whole_bulk(request->session, &size);
  if (bulk == NULL) return -1;
  int32_t status = read_arguments(&request->reader, &request->session->objects, bulk, size, arguments);
  free(bulk);
  return status;
}

static int32_t call(Request* request) {
  uint64_t handle = read_u64(&request->reader);
  Arguments arguments = {0};
  int32_t status = take_arguments(request, &arguments);
  TilewrightObject* function = status == 0 ? function_of(request->session, handle) : NULL;
  if (function != NULL) {
    status = tilewright_function_call(function, arguments.values, arguments.count, &request->result);
    if (status != 0) tw_error_require();
    tilewright_object_release(function);
  }
  request->has_value = true;
  free_arguments(&arguments);
  return function != NULL ? status : -1;
}

#define MOST_REPEATS 100000

static int32_t call_object(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  return tilewright_function_call(self, args, num_args, result);
}

static int32_t time_calls(Request* request) {
  Reader* reader = &request->reader;
  uint64_t handle = read_u64(reader);
  DLDevice device = {0};
  device.device_type = read_i32(reader);
  device.device_id = read_i32(reader);
  uint32_t number = read_u32(reader), repeat = read_u32(reader), least = read_u32(reader);
  char* name = read_string(reader);
  if (name == NULL) return -1;
  Arguments arguments = {0};
  int32_t status = take_arguments(request, &arguments);
  if (status == 0 && (number == 0 || number > INT32_MAX || repeat == 0 || repeat > MOST_REPEATS || least > INT32_MAX)) {
    status = tw_fail("ValueError", "number and repeat must be positive, and repeat at most %d", MOST_REPEATS);
  }
  TilewrightObject* prepare = status == 0 && name[0] != 0 ? tilewright_get_function(name) : NULL;
  if (status == 0 && name[0] != 0 && prepare == NULL) status = tw_fail("ValueError", "there is no function %s", name);
  if (status == 0) status = tilewright_device_require(device);
  TilewrightObject* function = status == 0 ? function_of(request->session, handle) : NULL;
  double* seconds = function != NULL ? calloc(repeat, sizeof *seconds) : NULL;
  if (function != NULL && seconds == NULL) tw_fail("MemoryError", "no memory for the times");
  if (seconds != NULL) {
    status = tilewright_time_function_on(device, call_object, function, arguments.values, arguments.count, (int32_t)number,
                                         (int32_t)repeat, (int32_t)least, prepare, seconds);
    if (status == 0) status = tilewright_make_bytes((const char*)seconds, repeat * sizeof *seconds, &request->result);
  }
  request->has_value = true;
  status = seconds != NULL ? status : -1;
  free(seconds);
  free(name);
  tilewright_object_release(function);
  tilewright_object_release(prepare);
  free_arguments(&arguments);
  return status;
}

static int32_t free_handles(Request* request) {
  uint32_t count = read_u32(&request->reader);
  for (uint32_t i = 0; i < count && !request->reader.is_bad; ++i) {
    uint64_t handle = read_u64(&request->reader);
    if (!request->reader.is_bad) objects_free(&request->session->objects, handle);
  }
  return 0;
}

/* ---- arrays ---- */

static int32_t array_new(Request* request) {
  DLDataType dtype = {0};
  DLDevice device = {0};
  int32_t ndim = 0;
  int64_t shape[MOST_ARRAY_DIMENSIONS];
  if (read_array_form(&request->reader, &dtype, &device, &ndim, shape) != 0) return -1;
  if (dtype.bits == 0 || dtype.lanes == 0) return tw_fail("ValueError", "elements of no bits");
  uint64_t size = ((uint64_t)dtype.bits * dtype.lanes + 7) / 8;
  for (int32_t i = 0; i < ndim; ++i) {
    if (shape[i] < 0) return tw_fail("ValueError", "an extent of %lld in the shape of an array", (long long)shape[i]);
    if (shape[i] > 0 && size > request->session->most_bulk / (uint64_t)shape[i]) {
      return tw_fail("MemoryError", "an array has at most %llu bytes here", (unsigned long long)request->session->most_bulk);
    }
    size *= (uint64_t)shape[i];
  }
  if (tilewright_device_require(device) != 0) return -1;
  TilewrightObject* tensor;
  if (tilewright_tensor_create(shape, ndim, dtype, device, &tensor) != 0) return -1;
  const DLTensor* made = tilewright_tensor_dltensor(tensor);
  if (tw_host_reads(device) && size > 0) memset(made->data, 0, (size_t)size); /* what was there is nobody's business */
  request->has_value = true;
  return give(request, TILEWRIGHT_TENSOR, tensor);
}

static uint64_t bytes_of(const DLTensor* tensor) {
  uint64_t size = ((uint64_t)tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
  for (int32_t i = 0; i < tensor->ndim; ++i) size *= (uint64_t)tensor->shape[i];
  return size;
}

/* Bytes of an array in host memory, where they are or in a compact copy, which the caller releases. */
typedef struct {
  TilewrightObject *array, *copy;
  uint8_t* data;
} Part;

static int32_t open_part(Session* session, uint64_t handle, uint64_t first, uint64_t count, bool copies, Part* out) {
  *out = (Part){0};
  out->array = objects_need(&session->objects, handle, TILEWRIGHT_TENSOR, "an array");
  if (out->array == NULL) return -1;
  DLTensor* tensor = tilewright_tensor_dltensor(out->array);
  uint64_t size = bytes_of(tensor);
  if (first > size || count > size - first) {
    return tw_fail("ValueError", "bytes %llu to %llu of an array that has %llu", (unsigned long long)first,
                   (unsigned long long)(first + count), (unsigned long long)size);
  }
  if (!tw_host_reads(tensor->device) || !tw_is_compact(tensor)) {
    if (tilewright_tensor_create(tensor->shape, tensor->ndim, tensor->dtype, TW_HOST, &out->copy) != 0) return -1;
    tensor = tilewright_tensor_dltensor(out->copy);
    if (copies && tilewright_tensor_copy(tilewright_tensor_dltensor(out->array), tensor) != 0) {
      tilewright_object_release(out->copy);
      return -1;
    }
  }
  out->data = (uint8_t*)tensor->data + tensor->byte_offset + first;
  return 0;
}

static int32_t array_write(Request* request) {
  Session* session = request->session;
  uint64_t handle = read_u64(&request->reader), first = read_u64(&request->reader);
  if (read_end(&request->reader) != 0) return -1;
  Part part;
  uint64_t count = session->bulk_left;
  if (open_part(session, handle, first, count, true, &part) != 0) return -1;
  int32_t status = read_bulk(session, part.data, count) ? 0 : tw_fail("OSError", "the connection is gone");
  if (status == 0 && part.copy != NULL) {
    status = tilewright_tensor_copy(tilewright_tensor_dltensor(part.copy), tilewright_tensor_dltensor(part.array));
  }
  tilewright_object_release(part.copy);
  return status;
}

static int32_t array_read(Request* request) {
  Channel* channel = request->session->channel;
  uint64_t handle = read_u64(&request->reader), first = read_u64(&request->reader), count = read_u64(&request->reader);
  if (read_end(&request->reader) != 0) return -1;
  Part part;
  if (open_part(request->session, handle, first, count, true, &part) != 0) return -1;
  uint8_t header[FRAME_HEADER];
  write_header(header, FRAME_OK, 0, count);
  (void)(channel_write(channel, header, sizeof header) && channel_write(channel, part.data, count) && channel_flush(channel));
  tilewright_object_release(part.copy);
  request->has_answered = true;
  return 0;
}

static int32_t array_copy(Request* request) {
  const Objects* objects = &request->session->objects;
  uint64_t from = read_u64(&request->reader), to = read_u64(&request->reader);
  if (read_end(&request->reader) != 0) return -1;
  TilewrightObject* source = objects_need(objects, from, TILEWRIGHT_TENSOR, "an array");
  TilewrightObject* target = source != NULL ? objects_need(objects, to, TILEWRIGHT_TENSOR, "an array") : NULL;
  if (target == NULL) return -1;
  if (source == target) return 0;
  return tilewright_tensor_copy(tilewright_tensor_dltensor(source), tilewright_tensor_dltensor(target));
}

/* ---- files ---- */

static int32_t file_write(Request* request) {
  Session* session = request->session;
  char* path = read_string(&request->reader);
  if (path == NULL) return -1;
  FolderFile file;
  uint64_t size = session->bulk_left;
  int32_t status = read_end(&request->reader);
  if (status == 0) status = folder_begin_file(&session->folder, path, size, &file);
  if (status == 0) {
    uint8_t buffer[16384];
    while (status == 0 && session->bulk_left > 0) {
      size_t count = session->bulk_left < sizeof buffer ? (size_t)session->bulk_left : sizeof buffer;
      status = read_bulk(session, buffer, count) ? folder_write(&file, buffer, count) : tw_fail("OSError", "the connection is gone");
    }
    if (folder_end_file(&session->folder, &file, size, status == 0) != 0) status = -1;
  }
  free(path);
  return status;
}

/* The string that is all of a head. */
static char* only_path(Request* request) {
  char* path = read_string(&request->reader);
  if (path != NULL && read_end(&request->reader) != 0) {
    free(path);
    return NULL;
  }
  return path;
}

static int32_t file_read(Request* request) {
  Session* session = request->session;
  char* path = only_path(request);
  if (path == NULL) return -1;
  uint64_t size;
  int descriptor = folder_open_file(&session->folder, path, &size);
  free(path);
  if (descriptor < 0) return -1;
  uint8_t buffer[16384];
  write_header(buffer, FRAME_OK, 0, size);
  bool is_good = channel_write(session->channel, buffer, FRAME_HEADER);
  while (is_good && size > 0) {
    ssize_t count = read(descriptor, buffer, size < sizeof buffer ? (size_t)size : sizeof buffer);
    if (count <= 0) {
      session->channel->is_broken = true; /* the file became shorter meanwhile, and its size was already said */
      break;
    }
    is_good = channel_write(session->channel, buffer, (uint64_t)count);
    size -= (uint64_t)count;
  }
  channel_flush(session->channel);
  close(descriptor);
  request->has_answered = true;
  return 0;
}

static int32_t file_remove(Request* request) {
  char* path = only_path(request);
  int32_t status = path != NULL ? folder_remove_file(&request->session->folder, path) : -1;
  free(path);
  return status;
}

static int32_t file_list(Request* request) {
  char* path = only_path(request);
  request->has_value = true;
  int32_t status = path != NULL ? folder_list(&request->session->folder, path, &request->result) : -1;
  free(path);
  return status;
}

/* ---- modules ---- */

static int32_t load(Request* request) {
  char* path = only_path(request);
  int32_t status = path != NULL ? load_path(request->session, path, &request->result) : -1;
  request->has_value = true;
  free(path);
  return status;
}

static int32_t find_function(Request* request) {
  uint64_t handle = read_u64(&request->reader);
  char* name = read_string(&request->reader);
  if (name == NULL) return -1;
  uint8_t with_imports = read_u8(&request->reader);
  TilewrightObject* module =
      read_end(&request->reader) == 0 ? objects_need(&request->session->objects, handle, TYPE_MODULE, "a module") : NULL;
  if (module != NULL) {
    TilewrightObject* found = module_function(module, name, with_imports != 0);
    if (found != NULL) give(request, TILEWRIGHT_FUNCTION, found);
  }
  request->has_value = true;
  free(name);
  return module != NULL ? 0 : -1;
}

static int32_t import(Request* request) {
  const Objects* objects = &request->session->objects;
  uint64_t into = read_u64(&request->reader), from = read_u64(&request->reader);
  if (read_end(&request->reader) != 0) return -1;
  TilewrightObject* module = objects_need(objects, into, TYPE_MODULE, "a module");
  TilewrightObject* imported = module != NULL ? objects_need(objects, from, TYPE_MODULE, "a module") : NULL;
  return imported != NULL ? module_import(module, imported) : -1;
}

static int32_t system_lib(Request* request) {
  if (read_end(&request->reader) != 0) return -1;
  request->has_value = true;
  return give(request, TYPE_MODULE, module_of_system());
}

/* ---- devices ---- */

static int32_t device_attribute(Request* request) {
  DLDevice device = {0};
  device.device_type = read_i32(&request->reader);
  device.device_id = read_i32(&request->reader);
  int32_t attribute = read_i32(&request->reader);
  if (read_end(&request->reader) != 0) return -1;
  request->has_value = true;
  if (attribute < 0 || attribute > TILEWRIGHT_ATTRIBUTE_MEMORY_BUS_BITS) return 0;
  if (tilewright_device_table(device.device_type) == NULL) {
    if (attribute == TILEWRIGHT_ATTRIBUTE_EXISTS) request->result = (TVMFFIAny){.type_index = TILEWRIGHT_INT};
    return 0;
  }
  return tilewright_device_attribute(device, attribute, &request->result);
}

static int32_t device_sync(Request* request) {
  DLDevice device = {0};
  device.device_type = read_i32(&request->reader);
  device.device_id = read_i32(&request->reader);
  if (read_end(&request->reader) != 0 || tilewright_device_require(device) != 0) return -1;
  return tw_host_reads(device) ? 0 : tilewright_stream_sync(device, NULL);
}

static int32_t ping(Request* request) { return read_end(&request->reader); }

/* ---- the loop ---- */

static int32_t (*const handlers[])(Request* request) = {
    [FRAME_GET_FUNCTION] = get_function, [FRAME_CALL] = call,
    [FRAME_FREE] = free_handles,         [FRAME_ARRAY_NEW] = array_new,
    [FRAME_ARRAY_WRITE] = array_write,   [FRAME_ARRAY_READ] = array_read,
    [FRAME_ARRAY_COPY] = array_copy,     [FRAME_FILE_WRITE] = file_write,
    [FRAME_FILE_READ] = file_read,       [FRAME_FILE_REMOVE] = file_remove,
    [FRAME_FILE_LIST] = file_list,       [FRAME_MODULE_LOAD] = load,
    [FRAME_MODULE_FUNCTION] = find_function, [FRAME_MODULE_IMPORT] = import,
    [FRAME_TIME] = time_calls,           [FRAME_DEVICE_ATTRIBUTE] = device_attribute,
    [FRAME_DEVICE_SYNC] = device_sync,   [FRAME_SYSTEM_LIB] = system_lib,
    [FRAME_PING] = ping,
};

static bool takes_bulk(uint8_t type) {
  return type == FRAME_CALL || type == FRAME_TIME || type == FRAME_ARRAY_WRITE || type == FRAME_FILE_WRITE;
}

/* Sends the value of a request, with the contents of byte strings behind it. */
static bool send_value(Session* session, const TVMFFIAny* value) {
  Writer writer = {0};
  if (write_value(&writer, &session->objects, value) != 0) {
    writer_free(&writer);
    return send_error(session->channel);
  }
  uint64_t bulk = 0;
  const char* data;
  size_t size;
  for (int i = 0; i < writer.num_bytes; ++i) bulk += tilewright_get_bytes(writer.bytes[i], &data, &size) == 0 ? size : 0;
  uint8_t header[FRAME_HEADER];
  write_header(header, FRAME_OK, writer.size, bulk);
  bool is_sent = channel_write(session->channel, header, sizeof header) && channel_write(session->channel, writer.data, writer.size);
  for (int i = 0; is_sent && i < writer.num_bytes; ++i) {
    if (tilewright_get_bytes(writer.bytes[i], &data, &size) == 0) is_sent = channel_write(session->channel, data, size);
  }
  writer_free(&writer);
  return is_sent && channel_flush(session->channel);
}

static bool handle(Session* session, uint8_t type, const uint8_t* head, size_t size) {
  Request request = {.session = session, .reader = {head, head + size, false}, .has_answered = type == FRAME_FREE};
  int32_t status = takes_bulk(type) || session->bulk_left == 0
                       ? handlers[type](&request)
                       : tw_fail("ProtocolError", "this request has no bulk");
  /* What a request that was refused has not read is dropped. */
  bool goes_on = channel_read(session->channel, NULL, session->bulk_left);
  if (goes_on && status != 0 && type != FRAME_FREE) {
    goes_on = send_error(session->channel);
  } else if (goes_on && !request.has_answered) {
    goes_on = request.has_value ? send_value(session, &request.result) : send_frame(session->channel, FRAME_OK, NULL, 0);
  }
  tilewright_any_release(&request.result);
  tilewright_clear_error();
  return goes_on && !session->channel->is_broken;
}

void serve(Session* session) {
  uint8_t* head = malloc(MOST_HEAD);
  bool goes_on = head != NULL;
  while (goes_on) {
    uint8_t header[FRAME_HEADER];
    if (!channel_read(session->channel, header, sizeof header)) break;
    Reader reader = {header + 4, header + sizeof header, false};
    uint32_t size = read_u32(&reader);
    session->bulk_left = read_u64(&reader);
    if (header[0] == FRAME_CLOSE) break;
    bool is_known = header[0] < sizeof handlers / sizeof handlers[0] && handlers[header[0]] != NULL;
    if (!is_known || header[1] != 0 || header[2] != 0 || header[3] != 0 || size > MOST_HEAD || session->bulk_left > session->most_bulk) {
      tw_fail("ProtocolError", "the header of a frame is not valid");
      send_error(session->channel);
      break;
    }
    goes_on = channel_read(session->channel, head, size) && handle(session, header[0], head, size);
  }
  free(head);
  objects_end(&session->objects);
}
