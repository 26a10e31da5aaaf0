/* Errors of generated code: a message whose numbers are known only when the check fails. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static void write_data_type(char* out, size_t size, int64_t packed) {
  static const char* const names[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  unsigned code = packed & 0xff, bits = (packed >> 8) & 0xff, lanes = (packed >> 16) & 0xffff;
  int written;
  if (code == kDLBool || (code == kDLUInt && bits == 1)) {
    written = snprintf(out, size, "bool");
  } else if (code < sizeof names / sizeof *names) {
    written = snprintf(out, size, "%s%u", names[code], bits);
  } else {
    written = snprintf(out, size, "type of code %u with %u bits", code, bits);
  }
  if (lanes != 1 && written > 0 && (size_t)written < size) snprintf(out + written, size - written, "x%u", lanes);
}

const char* tw_data_type_name(TwDataTypeName* name, DLDataType dtype) {
  write_data_type(name->text, sizeof name->text, (int64_t)dtype.code | (int64_t)dtype.bits << 8 | (int64_t)dtype.lanes << 16);
  return name->text;
}

/* The name that its driver has for a kind of device; without a driver, DLPack's. */
static void write_device(char* out, size_t size, int64_t device_type) {
  static const char* const names[] = {NULL,     "cpu",   "cuda", "cuda_host", "opencl", NULL,    NULL,       "vulkan",
                                      "metal",  "vpi",   "rocm", "rocm_host", "ext_dev", "cuda_managed", "oneapi", "webgpu",
                                      "hexagon"};
  const char* name = device_type >= 0 && device_type < (int64_t)(sizeof names / sizeof *names) ? names[device_type] : NULL;
  const TilewrightDeviceTable* driver = device_type >= 0 && device_type <= INT32_MAX ? tilewright_device_table((int32_t)device_type) : NULL;
  if (driver != NULL) name = driver->name;
  if (name != NULL) {
    snprintf(out, size, "%s", name);
  } else {
    snprintf(out, size, "of type %" PRId64, device_type);
  }
}

const char* tw_device_kind(TwDeviceKind* kind, int32_t device_type) {
  write_device(kind->text, sizeof kind->text, device_type);
  return kind->text;
}

const char* tw_argument_kind(int32_t type_index) {
  static const char* const names[] = {"None",   "an integer", "a bool", "a float", "a pointer", "a data type",
                                      "a device", "a tensor", "a string", "bytes", "a reference", "a string", "bytes"};
  if (type_index >= 0 && type_index < (int32_t)(sizeof names / sizeof *names)) return names[type_index];
  if (type_index == TILEWRIGHT_STRING) return "a string";
  if (type_index == TILEWRIGHT_BYTES) return "bytes";
  if (type_index == TILEWRIGHT_FUNCTION) return "a function";
  return type_index == TILEWRIGHT_TENSOR ? "a tensor" : "an object";
}

/* The value that a placeholder `{digits}` or `{digits:letter}` at `text` stands for, written to `out`. Returns the
 * placeholder's length, or 0 where there is none. */
static size_t write_placeholder(const char* text, const int64_t* values, int32_t num_values, char* out, size_t size) {
  const char* at = text + 1;
  int32_t index = 0;
  while (*at >= '0' && *at <= '9' && index < num_values) index = index * 10 + (*at++ - '0');
  if (at == text + 1 || index >= num_values) return 0;
  char form = 0;
  if (*at == ':') {
    form = at[1];
    at += form != 0 ? 2 : 1;
  }
  if (*at != '}') return 0;
  if (form == 't') {
    write_data_type(out, size, values[index]);
  } else if (form == 'k') {
    write_device(out, size, values[index]);
  } else if (form == 'a') {
    snprintf(out, size, "%s", tw_argument_kind((int32_t)values[index]));
  } else {
    snprintf(out, size, "%" PRId64, values[index]);
  }
  return (size_t)(at + 1 - text);
}

void tilewright_set_error_format(const char* kind, const char* format, const int64_t* values, int32_t num_values) {
  char message[1024];
  size_t used = 0;
  while (*format != 0 && used + 1 < sizeof message) {
    size_t length = *format == '{' ? write_placeholder(format, values, num_values, message + used, sizeof message - used) : 0;
    if (length > 0) {
      used += strlen(message + used);
      format += length;
    } else {
      message[used++] = *format++;
    }
  }
  message[used] = 0;
  tilewright_set_error(kind, message);
}
