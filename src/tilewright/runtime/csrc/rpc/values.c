#include "values.h"

#include <stdlib.h>
#include <string.h>

#include "modules.h"

enum {
  VALUE_NONE = 0x00,
  VALUE_INT = 0x01,
  VALUE_FLOAT = 0x02,
  VALUE_BOOL = 0x03,
  VALUE_STRING = 0x04,
  VALUE_BYTES = 0x05,
  VALUE_DTYPE = 0x06,
  VALUE_DEVICE = 0x07,
  VALUE_REFERENCE = 0x08,
  VALUE_LIST = 0x09,
  VALUE_ARRAY = 0x10,
  VALUE_FUNCTION = 0x11,
  VALUE_MODULE = 0x12
};

/* ---- reading ---- */

uint64_t read_number(Reader* reader, int bytes) {
  if (reader->is_bad || reader->end - reader->at < bytes) {
    reader->is_bad = true;
    return 0;
  }
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) value = value << 8 | reader->at[i];
  reader->at += bytes;
  return value;
}

static int32_t cut_short(void) { return tw_fail("ProtocolError", "the head of the request ends too early"); }

int32_t read_end(const Reader* reader) {
  if (reader->is_bad) return cut_short();
  if (reader->at != reader->end) return tw_fail("ProtocolError", "the head of the request has bytes left over");
  return 0;
}

/* Well-formed UTF-8 without zero bytes. */
static bool is_text(const uint8_t* at, const uint8_t* end) {
  while (at < end) {
    uint32_t first = *at++, more, least, code;
    if (first == 0) return false;
    if (first < 0x80) continue;
    if (first >= 0xc2 && first <= 0xdf) {
      more = 1, least = 0x80, code = first & 0x1f;
    } else if (first >= 0xe0 && first <= 0xef) {
      more = 2, least = 0x800, code = first & 0x0f;
    } else if (first >= 0xf0 && first <= 0xf4) {
      more = 3, least = 0x10000, code = first & 0x07;
    } else {
      return false;
    }
    for (; more > 0; --more) {
      if (at == end || (*at & 0xc0) != 0x80) return false;
      code = code << 6 | (*at++ & 0x3f);
    }
    if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return false;
  }
  return true;
}

char* read_string(Reader* reader) {
  uint32_t size = read_u32(reader);
  if (reader->is_bad || (uint64_t)(reader->end - reader->at) < size) {
    reader->is_bad = true;
    cut_short();
    return NULL;
  }
  char* text = malloc((size_t)size + 1);
  if (text == NULL) {
    tw_fail("MemoryError", "no memory for a string");
    return NULL;
  }
  bool is_good = is_text(reader->at, reader->at + size);
  memcpy(text, reader->at, size);
  text[size] = 0;
  reader->at += size;
  if (is_good) return text;
  free(text);
  tw_fail("ProtocolError", "a string that is not UTF-8, or has a zero byte in it");
  return NULL;
}

int32_t read_array_form(Reader* reader, DLDataType* dtype, DLDevice* device, int32_t* ndim, int64_t* shape) {
  dtype->code = read_u8(reader);
  dtype->bits = read_u8(reader);
  dtype->lanes = (uint16_t)read_number(reader, 2);
  device->device_type = read_i32(reader);
  device->device_id = read_i32(reader);
  uint32_t count = read_u32(reader);
  if (!reader->is_bad && count > MOST_ARRAY_DIMENSIONS) {
    return tw_fail("ProtocolError", "an array of %u dimensions; at most %d are allowed", count, MOST_ARRAY_DIMENSIONS);
  }
  if (reader->is_bad) return cut_short();
  for (uint32_t i = 0; i < count; ++i) shape[i] = (int64_t)read_u64(reader);
  *ndim = (int32_t)count;
  return read_end(reader);
}

/* Where the values of a request are, while they are read. */
typedef struct {
  Reader* reader;
  Objects* objects;
  const uint8_t* bulk;
  uint64_t bulk_left;
  int values_left;
} Decoding;

static int32_t read_value(Decoding* decoding, TVMFFIAny* out, int depth);

static int32_t read_list(Decoding* decoding, TVMFFIAny* out, int depth) {
  uint32_t count = read_u32(decoding->reader);
  if (depth >= MOST_DEPTH) return tw_fail("ProtocolError", "lists are nested more than %d deep", MOST_DEPTH);
  if (count > MOST_VALUES) return tw_fail("ProtocolError", "a list of %u values; at most %d are allowed", count, MOST_VALUES);
  TVMFFIAny* fields = calloc((size_t)count + 1, sizeof *fields);
  if (fields == NULL) return tw_fail("MemoryError", "no memory for a list");
  int32_t status = 0;
  uint32_t done = 0;
  for (; status == 0 && done < count; ++done) status = read_value(decoding, &fields[done], depth + 1);
  TilewrightObject* list = NULL;
  if (status == 0) status = tilewright_data_create(0, fields, count, &list);
  for (uint32_t i = 0; i < done; ++i) tilewright_any_release(&fields[i]);
  free(fields);
  if (status == 0) *out = (TVMFFIAny){.type_index = TILEWRIGHT_DATA, .v_obj = list};
  return status;
}

static int32_t read_byte_string(Decoding* decoding, TVMFFIAny* out) {
  uint64_t size = read_u64(decoding->reader);
  if (size > decoding->bulk_left) return tw_fail("ProtocolError", "a byte string is longer than the bulk");
  int32_t status = tilewright_make_bytes((const char*)decoding->bulk, (size_t)size, out);
  decoding->bulk += size;
  decoding->bulk_left -= size;
  return status;
}

static int32_t read_reference(Decoding* decoding, TVMFFIAny* out) {
  uint64_t handle = read_u64(decoding->reader);
  if (decoding->reader->is_bad) return cut_short();
  TilewrightObject* object = objects_find(decoding->objects, handle);
  if (object == NULL) return tw_fail("ValueError", "the session has no object with the handle %llu", (unsigned long long)handle);
  tilewright_object_retain(object);
  *out = (TVMFFIAny){.type_index = object->type_index, .v_obj = object};
  return 0;
}

static int32_t read_value(Decoding* decoding, TVMFFIAny* out, int depth) {
  Reader* reader = decoding->reader;
  uint8_t tag = read_u8(reader);
  if (reader->is_bad) return cut_short();
  if (decoding->values_left-- <= 0) return tw_fail("ProtocolError", "a request has more than %d values", MOST_VALUES);
  *out = (TVMFFIAny){0};
  if (tag == VALUE_NONE) return 0;
  if (tag == VALUE_INT) {
    *out = (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = (int64_t)read_u64(reader)};
  } else if (tag == VALUE_FLOAT) {
    *out = (TVMFFIAny){.type_index = TILEWRIGHT_FLOAT, .v_uint64 = read_u64(reader)};
  } else if (tag == VALUE_BOOL) {
    *out = (TVMFFIAny){.type_index = TILEWRIGHT_BOOL, .v_int64 = read_u8(reader)};
    if (out->v_uint64 > 1) return tw_fail("ProtocolError", "a bool that is neither 0 nor 1");
  } else if (tag == VALUE_STRING) {
    char* text = read_string(reader);
    if (text == NULL) return -1;
    int32_t status = tilewright_make_string(text, strlen(text), out);
    free(text);
    return status;
  } else if (tag == VALUE_BYTES) {
    return read_byte_string(decoding, out);
  } else if (tag == VALUE_DTYPE) {
    out->type_index = TILEWRIGHT_DATA_TYPE;
    out->v_dtype.code = read_u8(reader);
    out->v_dtype.bits = read_u8(reader);
    out->v_dtype.lanes = (uint16_t)read_number(reader, 2);
  } else if (tag == VALUE_DEVICE) {
    out->type_index = TILEWRIGHT_DEVICE;
    out->v_device.device_type = read_i32(reader);
    out->v_device.device_id = read_i32(reader);
  } else if (tag == VALUE_REFERENCE) {
    return read_reference(decoding, out);
  } else if (tag == VALUE_LIST) {
    return read_list(decoding, out, depth);
  } else {
    return tw_fail("ProtocolError", "a value with the tag %d in a request", tag);
  }
  return reader->is_bad ? cut_short() : 0;
}

int32_t read_arguments(Reader* reader, Objects* objects, const uint8_t* bulk, uint64_t bulk_size, Arguments* out) {
  *out = (Arguments){0};
  uint32_t count = read_u32(reader);
  if (reader->is_bad) return cut_short();
  if (count > MOST_VALUES) return tw_fail("ProtocolError", "a request has more than %d values", MOST_VALUES);
  out->values = calloc((size_t)count + 1, sizeof *out->values);
  if (out->values == NULL) return tw_fail("MemoryError", "no memory for the arguments");
  Decoding decoding = {reader, objects, bulk, bulk_size, MOST_VALUES};
  for (uint32_t i = 0; i < count; ++i) {
    if (read_value(&decoding, &out->values[i], 0) != 0) return -1;
    ++out->count;
  }
  if (read_end(reader) != 0) return -1;
  return decoding.bulk_left == 0 ? 0 : tw_fail("ProtocolError", "the bulk has bytes that are no argument's");
}

void free_arguments(Arguments* arguments) {
  for (int32_t i = 0; i < arguments->count; ++i) tilewright_any_release(&arguments->values[i]);
  free(arguments->values);
  *arguments = (Arguments){0};
}

/* ---- writing ---- */

void write_bytes(Writer* writer, const void* data, size_t size) {
  if (writer->is_bad) return;
  if (size > MOST_HEAD || writer->size + size > MOST_HEAD) {
    writer->is_bad = true;
    return;
  }
  if (writer->size + size > writer->room) {
    size_t room = 2 * (writer->size + size) + 256;
    uint8_t* grown = realloc(writer->data, room);
    if (grown == NULL) {
      writer->is_bad = true;
      return;
    }
    writer->data = grown;
    writer->room = room;
  }
  if (size > 0) memcpy(writer->data + writer->size, data, size);
  writer->size += size;
}

void write_number(Writer* writer, uint64_t value, int bytes) {
  uint8_t raw[8];
  for (int i = 0; i < bytes; ++i) raw[i] = (uint8_t)(value >> 8 * i);
  write_bytes(writer, raw, (size_t)bytes);
}

static void write_text(Writer* writer, const char* text, size_t size) {
  write_number(writer, size, 4);
  write_bytes(writer, text, size);
}

void write_string(Writer* writer, const char* text) { write_text(writer, text, strlen(text)); }

void writer_free(Writer* writer) {
  free(writer->data);
  memset(writer, 0, sizeof *writer);
}

static void write_dtype(Writer* writer, DLDataType dtype) {
  write_number(writer, dtype.code, 1);
  write_number(writer, dtype.bits, 1);
  write_number(writer, dtype.lanes, 2);
}

static void write_device(Writer* writer, DLDevice device) {
  write_number(writer, (uint32_t)device.device_type, 4);
  write_number(writer, (uint32_t)device.device_id, 4);
}

static int32_t write_object(Writer* writer, Objects* objects, TilewrightObject* object) {
  uint64_t handle = objects_add(objects, object);
  if (handle == 0) return -1;
  if (object->type_index == TILEWRIGHT_TENSOR) {
    const DLTensor* tensor = tilewright_tensor_dltensor(object);
    write_number(writer, VALUE_ARRAY, 1);
    write_number(writer, handle, 8);
    write_dtype(writer, tensor->dtype);
    write_device(writer, tensor->device);
    write_number(writer, (uint32_t)tensor->ndim, 4);
    for (int32_t i = 0; i < tensor->ndim; ++i) write_number(writer, (uint64_t)tensor->shape[i], 8);
  } else {
    write_number(writer, object->type_index == TILEWRIGHT_FUNCTION ? VALUE_FUNCTION : VALUE_MODULE, 1);
    write_number(writer, handle, 8);
    write_string(writer, object->type_index == TILEWRIGHT_FUNCTION ? "" : module_type_key(object));
  }
  return 0;
}

static int32_t write_list(Writer* writer, Objects* objects, const TVMFFIAny* value, int depth);

static int32_t write_at(Writer* writer, Objects* objects, const TVMFFIAny* value, int depth) {
  const char* text;
  size_t size;
  switch (value->type_index) {
    case TILEWRIGHT_NONE:
      write_number(writer, VALUE_NONE, 1);
      return 0;
    case TILEWRIGHT_INT:
    case TILEWRIGHT_FLOAT:
      write_number(writer, value->type_index == TILEWRIGHT_INT ? VALUE_INT : VALUE_FLOAT, 1);
      write_number(writer, value->v_uint64, 8);
      return 0;
    case TILEWRIGHT_BOOL:
      write_number(writer, VALUE_BOOL, 1);
      write_number(writer, value->v_int64 != 0, 1);
      return 0;
    case TILEWRIGHT_DATA_TYPE:
      write_number(writer, VALUE_DTYPE, 1);
      write_dtype(writer, value->v_dtype);
      return 0;
    case TILEWRIGHT_DEVICE:
      write_number(writer, VALUE_DEVICE, 1);
      write_device(writer, value->v_device);
      return 0;
    case TILEWRIGHT_C_STRING:
    case TILEWRIGHT_SMALL_STRING:
    case TILEWRIGHT_STRING:
      if (tilewright_get_bytes(value, &text, &size) != 0) return -1;
      write_number(writer, VALUE_STRING, 1);
      write_text(writer, text, size);
      return 0;
    case TILEWRIGHT_BYTE_ARRAY:
    case TILEWRIGHT_SMALL_BYTES:
    case TILEWRIGHT_BYTES:
      if (tilewright_get_bytes(value, &text, &size) != 0) return -1;
      if (writer->num_bytes == (int)(sizeof writer->bytes / sizeof writer->bytes[0])) {
        return tw_fail("NotImplementedError", "an answer with more than %d byte strings", writer->num_bytes);
      }
      write_number(writer, VALUE_BYTES, 1);
      write_number(writer, size, 8);
      writer->bytes[writer->num_bytes++] = value;
      return 0;
    case TILEWRIGHT_TENSOR:
    case TILEWRIGHT_FUNCTION:
    case TYPE_MODULE:
      return write_object(writer, objects, value->v_obj);
    case TILEWRIGHT_DATA:
      return write_list(writer, objects, value, depth);
    default:
      return tw_fail("TypeError", "%s cannot be sent to the client", tw_argument_kind(value->type_index));
  }
}

/* The fields of a list are the list's, so that their contents outlive the writer as the list does. */
static int32_t write_list(Writer* writer, Objects* objects, const TVMFFIAny* value, int depth) {
  if (depth >= MOST_DEPTH) return tw_fail("ValueError", "lists are nested more than %d deep", MOST_DEPTH);
  int64_t count = tilewright_data_size(value->v_obj);
  write_number(writer, VALUE_LIST, 1);
  write_number(writer, (uint64_t)count, 4);
  for (int64_t i = 0; i < count; ++i) {
    TVMFFIAny field = {0};
    if (tilewright_data_field(value->v_obj, i, &field) != 0) return -1;
    bool is_bytes = field.type_index == TILEWRIGHT_BYTES || field.type_index == TILEWRIGHT_SMALL_BYTES;
    int32_t status = is_bytes ? tw_fail("NotImplementedError", "byte strings in lists cannot be sent by this server")
                              : write_at(writer, objects, &field, depth + 1);
    tilewright_any_release(&field);
    if (status != 0) return -1;
  }
  return 0;
}

int32_t write_value(Writer* writer, Objects* objects, const TVMFFIAny* value) {
  if (write_at(writer, objects, value, 0) != 0) return -1;
  return writer->is_bad ? tw_fail("MemoryError", "the answer is too large") : 0;
}
