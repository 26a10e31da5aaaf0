/* The arguments of generated code: one call checks all tensors whose form is known when the code is made. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* What the table has for a tensor. */
typedef struct {
  int64_t index;
  int64_t is_written;
  int64_t dtype; /* code | bits << 8 | lanes << 16 */
  int64_t device_type;
  int64_t alignment;
  int64_t ndim;
  int64_t shape[]; /* -1: any size */
} Expected;

#define NUMBERS_BEFORE_SHAPE (offsetof(Expected, shape) / sizeof(int64_t))

/* A tensor of the table, for messages about it. */
typedef struct {
  const char* names;
  int32_t position;
  int32_t index;
} Subject;

static const char* line_of(const char* text, int32_t number, int* length) {
  while (number-- > 0) text = strchr(text, '\n') + 1;
  *length = (int)strcspn(text, "\n");
  return text;
}

/* Sets the error "FUNCTION: BEFORE argument N (NAME) FORMAT". */
static int32_t refuse(Subject subject, const char* kind, const char* before, const char* format, ...)
    __attribute__((format(printf, 4, 5)));

static int32_t refuse(Subject subject, const char* kind, const char* before, const char* format, ...) {
  char message[1024];
  int function_length, name_length;
  const char* function = line_of(subject.names, 0, &function_length);
  const char* name = line_of(subject.names, subject.position + 1, &name_length);
  int used = snprintf(message, sizeof message, "%.*s: %sargument %d (%.*s) ", function_length, function, before,
                      (int)subject.index, name_length, name);
  if (used >= 0 && (size_t)used < sizeof message) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + used, sizeof message - (size_t)used, format, arguments);
    va_end(arguments);
  }
  tilewright_set_error(kind, message);
  return -1;
}

static int64_t packed_type(DLDataType dtype) { return (int64_t)dtype.code | (int64_t)dtype.bits << 8 | (int64_t)dtype.lanes << 16; }

/* A bool comes as one bit, as eight bits of DLPack's own code, or as a byte; a bfloat16 also as its bits, a uint16. */
static bool is_of_type(DLDataType given, int64_t expected) {
  if (packed_type(given) == expected) return true;
  if (given.lanes != expected >> 16) return false;
  if ((expected & 0xffff) == (kDLBfloat | 16 << 8)) return given.code == kDLUInt && given.bits == 16;
  if ((expected & 0xff) != kDLBool) return false;
  return given.code == kDLUInt ? given.bits == 1 || given.bits == 8 : given.code == kDLInt && given.bits == 8;
}

static int32_t refuse_type(Subject subject, DLDataType given, int64_t expected) {
  TwDataTypeName name, wanted;
  DLDataType dtype = {(uint8_t)expected, (uint8_t)(expected >> 8), (uint16_t)(expected >> 16)};
  tw_data_type_name(&wanted, dtype);
  return refuse(subject, "TypeError", "", "has data type %s, expected %s", tw_data_type_name(&name, given), wanted.text);
}

static int32_t refuse_device(Subject subject, int32_t given, int64_t expected) {
  TwDeviceKind name, wanted;
  tw_device_kind(&wanted, (int32_t)expected);
  return refuse(subject, "ValueError", "", "is on device %s, expected %s", tw_device_kind(&name, given), wanted.text);
}

static int32_t check_shape(Subject subject, const DLTensor* tensor, const Expected* expected) {
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (expected->shape[i] >= 0 && tensor->shape[i] != expected->shape[i]) {
      char before[40];
      snprintf(before, sizeof before, "dimension %d of ", (int)i);
      return refuse(subject, "ValueError", before, "is %" PRId64 ", expected %" PRId64, tensor->shape[i], expected->shape[i]);
    }
  }
  return 0;
}

static bool is_empty(const DLTensor* tensor) {
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (tensor->shape[i] == 0) return true;
  }
  return false;
}

/* A dimension of one element may have any stride, and so may all of a tensor without elements. */
static int32_t check_strides(Subject subject, const DLTensor* tensor) {
  if (tensor->strides == NULL) return 0;
  int32_t wrong = -1;
  uint64_t step = 1, expected = 0; /* sizes that no memory has must not overflow */
  for (int32_t i = tensor->ndim; i-- > 0;) {
    if (tensor->shape[i] > 1 && tensor->strides[i] != (int64_t)step) {
      wrong = i;
      expected = step;
    }
    step *= (uint64_t)tensor->shape[i];
  }
  if (wrong < 0 || is_empty(tensor)) return 0;
  char before[40];
  snprintf(before, sizeof before, "stride %d of ", (int)wrong);
  return refuse(subject, "ValueError", before, "is %" PRId64 ", expected %" PRId64 ": the array must be compact and row-major",
                tensor->strides[wrong], (int64_t)expected);
}

/* 0, or -1 with an error. */
static int32_t check_form(Subject subject, const DLTensor* tensor, const Expected* expected) {
  if (!is_of_type(tensor->dtype, expected->dtype)) return refuse_type(subject, tensor->dtype, expected->dtype);
  if (tensor->ndim != expected->ndim) {
    return refuse(subject, "ValueError", "", "has %d dimensions, expected %" PRId64, (int)tensor->ndim, expected->ndim);
  }
  if (tensor->device.device_type != expected->device_type) {
    return refuse_device(subject, tensor->device.device_type, expected->device_type);
  }
  if (check_shape(subject, tensor, expected) != 0 || check_strides(subject, tensor) != 0) return -1;
  if (tensor->data == NULL && !is_empty(tensor)) {
    return refuse(subject, "ValueError", "", "has elements, but its data pointer is NULL");
  }
  uint64_t past = ((uint64_t)(uintptr_t)tensor->data + tensor->byte_offset) & (uint64_t)(expected->alignment - 1);
  if (past == 0) return 0;
  return refuse(subject, "ValueError", "the memory of ", "must be aligned to %" PRId64 " bytes, it is %" PRIu64 " bytes past alignment",
                expected->alignment, past);
}

/* The tensor that a value holds, if it is as expected; else NULL, with an error. */
static const DLTensor* checked_tensor(Subject subject, const TVMFFIAny* value, const Expected* expected) {
  const DLTensor* tensor = value->v_ptr;
  if (value->type_index == TILEWRIGHT_TENSOR) {
    tensor = tilewright_tensor_dltensor(value->v_obj);
  } else if (value->type_index != TILEWRIGHT_DLTENSOR) {
    refuse(subject, "TypeError", "", "must be a tensor, not %s", tw_argument_kind(value->type_index));
    return NULL;
  }
  if (expected->is_written && value->zero_padding == TILEWRIGHT_READ_ONLY) {
    refuse(subject, "ValueError", "", "is written by the function, but its memory is read-only; pass a copy of it");
    return NULL;
  }
  return check_form(subject, tensor, expected) == 0 ? tensor : NULL;
}

int32_t tilewright_check_tensors(const TVMFFIAny* args, int32_t num_args, const int64_t* table, const char* names) {
  if (num_args != table[0]) {
    int length;
    const char* function = line_of(names, 0, &length);
    return tw_fail("TypeError", "%.*s: expected %d argument%s, got %d", length, function, (int)table[0], table[0] == 1 ? "" : "s",
                   (int)num_args);
  }
  int32_t device = 0, other_device = 0;
  Subject other = {NULL, 0, 0};
  const int64_t* at = table + 2;
  for (int32_t position = 0; position < table[1]; ++position) {
    const Expected* expected = (const Expected*)at;
    Subject subject = {names, position, (int32_t)expected->index};
    const DLTensor* tensor = checked_tensor(subject, &args[expected->index], expected);
    if (tensor == NULL) return -1;
    if (position == 0) device = tensor->device.device_id;
    if (tensor->device.device_id != device && other.names == NULL) {
      other = subject;
      other_device = tensor->device.device_id;
    }
    at += NUMBERS_BEFORE_SHAPE + (size_t)expected->ndim;
  }
  if (other.names == NULL) return 0;
  return refuse(other, "ValueError", "the device number of ", "is %d, expected %d (the value of device_id)", (int)other_device,
                (int)device);
}
