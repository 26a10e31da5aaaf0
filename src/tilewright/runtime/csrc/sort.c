/* Sorting for compiled code: `tvm.contrib.sort.*`. Equal values keep their order; NaN is above everything. */
#include <stdlib.h>
#include <string.h>

#include "host_tensors.h"

/* A value as an integer of the same order, and where it stood. */
typedef struct {
  uint64_t key;
  int64_t position;
} Item;

/* A tensor as rows along one axis. */
typedef struct {
  int64_t length, stride, count;
} Rows;

#define TOP UINT64_C(0x8000000000000000)

static uint64_t key_of_double(double value) {
  uint64_t bits;
  value += 0.0; /* -0.0 is equal to 0.0 */
  memcpy(&bits, &value, sizeof bits);
  if (value != value) return UINT64_MAX;
  return bits & TOP ? ~bits : bits | TOP;
}

static double value_of_half(uint16_t bits) {
  uint32_t exponent = bits >> 10 & 31u, mantissa = bits & 1023u;
  uint32_t wide = exponent == 31 ? 0x7f800000u | mantissa << 13 : (exponent + 112) << 23 | mantissa << 13;
  float magnitude;
  memcpy(&magnitude, &wide, sizeof magnitude);
  if (exponent == 0) magnitude = (float)mantissa * 0x1p-24f;
  return bits & 0x8000u ? -magnitude : magnitude;
}

static bool key_at(const DLTensor* tensor, int64_t index, uint64_t* key) {
  const void* data = tw_elements(tensor);
  int32_t bits = tensor->dtype.bits;
  if (tensor->dtype.lanes != 1) return false;
  if (tensor->dtype.code == kDLFloat && bits == 64) *key = key_of_double(((const double*)data)[index]);
  else if (tensor->dtype.code == kDLFloat && bits == 32) *key = key_of_double(((const float*)data)[index]);
  else if (tensor->dtype.code == kDLFloat && bits == 16) *key = key_of_double(value_of_half(((const uint16_t*)data)[index]));
  else if (tensor->dtype.code == kDLInt && bits == 64) *key = (uint64_t)((const int64_t*)data)[index] ^ TOP;
  else if (tensor->dtype.code == kDLInt && bits == 32) *key = (uint64_t)(int64_t)((const int32_t*)data)[index] ^ TOP;
  else if (tensor->dtype.code == kDLInt && bits == 16) *key = (uint64_t)(int64_t)((const int16_t*)data)[index] ^ TOP;
  else if (tensor->dtype.code == kDLInt && bits == 8) *key = (uint64_t)(int64_t)((const int8_t*)data)[index] ^ TOP;
  else if (tensor->dtype.code == kDLUInt && bits == 64) *key = ((const uint64_t*)data)[index];
  else if (tensor->dtype.code == kDLUInt && bits == 32) *key = ((const uint32_t*)data)[index];
  else if (tensor->dtype.code == kDLUInt && bits == 16) *key = ((const uint16_t*)data)[index];
  else if (bits <= 8 && (tensor->dtype.code == kDLUInt || tensor->dtype.code == kDLBool)) *key = ((const uint8_t*)data)[index];
  else return false;
  return true;
}

static int compare(const void* one, const void* other) {
  const Item* left = one;
  const Item* right = other;
  if (left->key != right->key) return left->key < right->key ? -1 : 1;
  return (left->position > right->position) - (left->position < right->position);
}

static int32_t rows_of(const char* function, const DLTensor* tensor, double given, Rows* out) {
  int32_t axis = (int32_t)given < 0 ? (int32_t)given + tensor->ndim : (int32_t)given;
  if (axis < 0 || axis >= tensor->ndim) {
    return tw_fail("ValueError", "%s: axis %d of a tensor of %d dimensions", function, (int)given, (int)tensor->ndim);
  }
  *out = (Rows){tensor->shape[axis], 1, 1};
  for (int32_t i = axis + 1; i < tensor->ndim; ++i) out->stride *= tensor->shape[i];
  for (int32_t i = 0; i < axis; ++i) out->count *= tensor->shape[i];
  out->count *= out->stride;
  return 0;
}

/* Where a row begins: rows that lie beside each other, then the next block of them. `length` is that of the tensor's axis. */
static int64_t start_of(const Rows* rows, int64_t row, int64_t length) {
  return row / rows->stride * (length * rows->stride) + row % rows->stride;
}

/* What is to be done: where the results go, NULL for neither, and how many of each row. */
typedef struct {
  const char* function;
  const DLTensor* data;
  const DLTensor* values;
  const DLTensor* positions;
  const DLTensor* valid; /* NULL: every element of a row is sorted */
  int64_t most;          /* results a row */
  double axis;
  bool ascends;
} Task;

static int32_t unsupported(const Task* task, const DLTensor* tensor) {
  TwDataTypeName name;
  return tw_fail("TypeError", "%s does not take tensors of %s", task->function, tw_data_type_name(&name, tensor->dtype));
}

static int32_t sort_row(const Task* task, const Rows* rows, int64_t row, Item* items) {
  int64_t start = start_of(rows, row, rows->length), valid = rows->length;
  if (task->valid != NULL) valid = ((const int32_t*)tw_elements(task->valid))[row];
  if (valid > rows->length) valid = rows->length;
  for (int64_t i = 0; i < rows->length; ++i) {
    items[i].position = i;
    if (!key_at(task->data, start + i * rows->stride, &items[i].key)) return unsupported(task, task->data);
    if (!task->ascends) items[i].key = ~items[i].key;
  }
  if (valid > 1) qsort(items, (size_t)valid, sizeof *items, compare);
  int64_t out = start_of(rows, row, task->most);
  size_t num_bytes = (task->data->dtype.bits + 7u) / 8u;
  for (int64_t i = 0; i < task->most; ++i) {
    int64_t to = out + i * rows->stride;
    if (task->positions != NULL && !tw_store(task->positions, to, (double)items[i].position)) return unsupported(task, task->positions);
    if (task->values != NULL) {
      const char* from = (const char*)tw_elements(task->data) + (size_t)(start + items[i].position * rows->stride) * num_bytes;
      memcpy((char*)tw_elements(task->values) + (size_t)to * num_bytes, from, num_bytes);
    }
  }
  return 0;
}

static int32_t check_size(const Task* task, const DLTensor* out, int64_t expected) {
  if (out == NULL || tw_num_elements(out) == expected) return 0;
  return tw_fail("ValueError", "%s: a result has %lld elements, and %lld are computed", task->function,
                 (long long)tw_num_elements(out), (long long)expected);
}

static int32_t sort_rows(Task task) {
  Rows rows = {0};
  if (rows_of(task.function, task.data, task.axis, &rows) != 0) return -1;
  if (task.most < 1) task.most = rows.length;
  if (task.most > rows.length) {
    return tw_fail("ValueError", "%s: the first %lld of %lld values", task.function, (long long)task.most, (long long)rows.length);
  }
  if (check_size(&task, task.values, rows.count * task.most) != 0 || check_size(&task, task.positions, rows.count * task.most) != 0) return -1;
  if (task.values != NULL && memcmp(&task.values->dtype, &task.data->dtype, sizeof(DLDataType)) != 0) return unsupported(&task, task.values);
  if (task.valid != NULL && (task.valid->dtype.code != kDLInt || task.valid->dtype.bits != 32)) return unsupported(&task, task.valid);
  if (check_size(&task, task.valid, rows.count) != 0) return -1;
  Item* items = malloc((size_t)(rows.length > 0 ? rows.length : 1) * sizeof *items);
  if (items == NULL) return tw_fail("MemoryError", "no memory to sort %lld values", (long long)rows.length);
  int32_t status = 0;
  for (int64_t row = 0; row < rows.count && status == 0; ++row) status = sort_row(&task, &rows, row, items);
  free(items);
  return status;
}

/* The axis and the direction, which come last. */
static int32_t read_order(Task* task, const TVMFFIAny* args, int32_t num_args, int32_t position) {
  double ascends = 1;
  if (tw_number(task->function, args, num_args, position, &task->axis) != 0) return -1;
  if (position + 1 < num_args && tw_number(task->function, args, num_args, position + 1, &ascends) != 0) return -1;
  task->ascends = ascends != 0;
  return 0;
}

int32_t tw_argsort(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)result;
  Task task = {.function = "tvm.contrib.sort.argsort"};
  if ((task.data = tw_host_tensor(task.function, args, num_args, 0)) == NULL) return -1;
  if ((task.positions = tw_host_tensor(task.function, args, num_args, 1)) == NULL) return -1;
  return read_order(&task, args, num_args, 2) == 0 ? sort_rows(task) : -1;
}

int32_t tw_argsort_valid(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)result;
  Task task = {.function = "tvm.contrib.sort.argsort_nms"};
  if ((task.data = tw_host_tensor(task.function, args, num_args, 0)) == NULL) return -1;
  if ((task.valid = tw_host_tensor(task.function, args, num_args, 1)) == NULL) return -1;
  if ((task.positions = tw_host_tensor(task.function, args, num_args, 2)) == NULL) return -1;
  return read_order(&task, args, num_args, 3) == 0 ? sort_rows(task) : -1;
}

int32_t tw_sort(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)result;
  Task task = {.function = "tvm.contrib.sort.sort"};
  if ((task.data = tw_host_tensor(task.function, args, num_args, 0)) == NULL) return -1;
  if ((task.values = tw_host_tensor(task.function, args, num_args, 1)) == NULL) return -1;
  return read_order(&task, args, num_args, 2) == 0 ? sort_rows(task) : -1;
}

/* data, the results that `ret_type` names, k, axis, ret_type ("both", "values" or "indices"), is_ascend. */
int32_t tw_topk(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)result;
  Task task = {.function = "tvm.contrib.sort.topk"};
  const char* kind;
  size_t size;
  double most;
  if (num_args < 6 || tilewright_get_bytes(&args[num_args - 2], &kind, &size) != 0) {
    return tw_fail("TypeError", "%s takes data, results, k, axis, ret_type and is_ascend", task.function);
  }
  bool both = size == 4 && memcmp(kind, "both", 4) == 0;
  if ((task.data = tw_host_tensor(task.function, args, num_args, 0)) == NULL) return -1;
  const DLTensor* first = tw_host_tensor(task.function, args, num_args, 1);
  if (first == NULL) return -1;
  if (both && (task.positions = tw_host_tensor(task.function, args, num_args, 2)) == NULL) return -1;
  if (both || (size == 6 && memcmp(kind, "values", 6) == 0)) task.values = first;
  else if (size == 7 && memcmp(kind, "indices", 7) == 0) task.positions = first;
  else return tw_fail("ValueError", "%s: ret_type is both, values or indices", task.function);
  if (tw_number(task.function, args, num_args, both ? 3 : 2, &most) != 0) return -1;
  task.most = (int64_t)most;
  double ascends;
  if (tw_number(task.function, args, num_args, both ? 4 : 3, &task.axis) != 0) return -1;
  if (tw_number(task.function, args, num_args, num_args - 1, &ascends) != 0) return -1;
  task.ascends = ascends != 0;
  return sort_rows(task);
}
