/* Reading parameters in the form that TVM's `save_param_dict` writes: names, then tensors. Nothing read is trusted. */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "graph.h"

#define LIST_MAGIC 0xF7E58D4F05049CB7u
#define TENSOR_MAGIC 0xDD5E40F096B4A13Fu
#define MOST_DIMENSIONS 64

typedef struct {
  const char* at;
  const char* end;
} Reader;

static bool read_bytes(Reader* reader, void* out, size_t size) {
  if ((size_t)(reader->end - reader->at) < size) return false;
  memcpy(out, reader->at, size);
  reader->at += size;
  return true;
}

static bool read_u64(Reader* reader, uint64_t* out) { return read_bytes(reader, out, sizeof *out); }

static int32_t damaged(void) { return tw_fail("ValueError", "the parameters are damaged: they are cut short or not what they say"); }

/* The next tensor; its elements stay where they are, wherever that is aligned. */
static bool read_tensor(Reader* reader, DLTensor* out, int64_t* shape) {
  uint64_t magic, reserved;
  int64_t num_bytes;
  if (!read_u64(reader, &magic) || magic != TENSOR_MAGIC || !read_u64(reader, &reserved)) return false;
  *out = (DLTensor){.shape = shape};
  if (!read_bytes(reader, &out->device, 8) || !read_bytes(reader, &out->ndim, 4) || !read_bytes(reader, &out->dtype, 4)) return false;
  if (out->ndim < 0 || out->ndim > MOST_DIMENSIONS || !read_bytes(reader, shape, 8 * (size_t)out->ndim)) return false;
  if (!read_bytes(reader, &num_bytes, 8) || num_bytes < 0 || reader->end - reader->at < num_bytes) return false;
  uint64_t expected = ((uint64_t)out->dtype.bits * out->dtype.lanes + 7) / 8;
  for (int32_t i = 0; i < out->ndim; ++i) {
    if (shape[i] < 0 || __builtin_mul_overflow(expected, (uint64_t)shape[i], &expected)) return false;
  }
  if (expected != (uint64_t)num_bytes) return false;
  out->device = TW_HOST; /* whatever device they came from, their bytes are here */
  out->data = (void*)reader->at;
  reader->at += num_bytes;
  return true;
}

int32_t tw_for_each_param(const char* data, size_t size, int32_t (*visit)(void*, const char*, const DLTensor*), void* context) {
  Reader reader = {data, data + size};
  uint64_t magic, reserved, count, tensors;
  if (!read_u64(&reader, &magic) || magic != LIST_MAGIC || !read_u64(&reader, &reserved) || !read_u64(&reader, &count)) return damaged();
  Reader names = reader;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t length;
    if (!read_u64(&reader, &length) || (uint64_t)(reader.end - reader.at) < length) return damaged();
    reader.at += length;
  }
  if (!read_u64(&reader, &tensors) || tensors != count) return damaged();
  int32_t status = 0;
  for (uint64_t i = 0; i < count && status == 0; ++i) {
    uint64_t length = 0;
    DLTensor tensor;
    int64_t shape[MOST_DIMENSIONS];
    if (!read_u64(&names, &length) || !read_tensor(&reader, &tensor, shape)) return damaged();
    char* name = malloc((size_t)length + 1);
    if (name == NULL) return tw_fail("MemoryError", "no memory for a parameter's name");
    memcpy(name, names.at, (size_t)length);
    name[length] = 0;
    names.at += length;
    status = visit(context, name, &tensor);
    free(name);
  }
  return status;
}
