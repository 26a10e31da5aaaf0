/* Tensors: reference-counted objects around a DLTensor, and their exchange through DLPack. */
#include <stdlib.h>
#include <string.h>

#include "device.h"

#define MOST_DIMENSIONS 64

typedef struct {
  TilewrightObject header;
  DLTensor tensor;
  void* owner;
  void (*release)(void* owner);
  void* storage;     /* memory of the tensor's device that ends with it, or NULL */
  int64_t extents[]; /* the shape, then the strides */
} TensorObject;

static void delete_tensor(void* self, int flags) {
  TensorObject* object = self;
  if (flags & TW_DELETE_VALUE) {
    if (object->release != NULL) object->release(object->owner);
    if (object->storage != NULL) tw_device_free(object->tensor.device, object->storage);
  }
  if (flags & TW_DELETE_MEMORY) free(object);
}

DLTensor* tilewright_tensor_dltensor(TilewrightObject* tensor) { return &((TensorObject*)tensor)->tensor; }

static int32_t check_shape(const int64_t* shape, int32_t ndim) {
  if (ndim < 0 || ndim > MOST_DIMENSIONS) {
    return tw_fail("ValueError", "a tensor cannot have %d dimensions; 0 to %d can", (int)ndim, MOST_DIMENSIONS);
  }
  if (ndim > 0 && shape == NULL) return tw_fail("ValueError", "a tensor of %d dimensions has no shape", (int)ndim);
  for (int32_t i = 0; i < ndim; ++i) {
    if (shape[i] < 0) {
      return tw_fail("ValueError", "dimension %d of a tensor is negative: %lld", (int)i, (long long)shape[i]);
    }
  }
  return 0;
}

static uint64_t element_bytes(DLDataType dtype) { return ((uint64_t)dtype.bits * dtype.lanes + 7) / 8; }

/* False when the size does not fit. */
static bool total_bytes(const int64_t* shape, int32_t ndim, DLDataType dtype, uint64_t* out) {
  uint64_t total = element_bytes(dtype);
  for (int32_t i = 0; i < ndim; ++i) {
    if (__builtin_mul_overflow(total, (uint64_t)shape[i], &total)) return false;
  }
  *out = total;
  return true;
}

/* DLPack has had a boolean of its own since 1.0; the compiler's is the one-bit unsigned integer. */
static DLDataType dtype_of_exchange(DLDataType dtype) {
  if (dtype.code == kDLBool && dtype.bits == 8) return (DLDataType){kDLUInt, 1, dtype.lanes};
  return dtype;
}

static DLDataType dtype_for_exchange(DLDataType dtype) {
  if (dtype.code == kDLUInt && dtype.bits == 1) return (DLDataType){kDLBool, 8, dtype.lanes};
  return dtype;
}

int32_t tilewright_tensor_wrap(const DLTensor* description, void* owner, void (*release)(void*), TilewrightObject** out) {
  int32_t ndim = description->ndim;
  if (check_shape(description->shape, ndim) != 0) return -1;
  TensorObject* object = malloc(sizeof *object + 2 * (size_t)ndim * sizeof(int64_t));
  if (object == NULL) return tw_fail("MemoryError", "no memory for a tensor object");
  tw_object_init(&object->header, TILEWRIGHT_TENSOR, delete_tensor);
  object->tensor = *description;
  object->tensor.dtype = dtype_of_exchange(description->dtype);
  object->tensor.shape = object->extents;
  object->tensor.strides = object->extents + ndim;
  object->owner = owner;
  object->release = release;
  object->storage = NULL;
  uint64_t compact = 1; /* unsigned: an empty tensor may have extents whose product wraps, and it does not matter */
  for (int32_t i = ndim - 1; i >= 0; --i) {
    object->tensor.shape[i] = description->shape[i];
    object->tensor.strides[i] = description->strides != NULL ? description->strides[i] : (int64_t)compact;
    compact *= (uint64_t)description->shape[i];
  }
  *out = &object->header;
  return 0;
}

int32_t tilewright_tensor_create(const int64_t* shape, int32_t ndim, DLDataType dtype, DLDevice device, TilewrightObject** out) {
  if (check_shape(shape, ndim) != 0 || tilewright_device_require(device) != 0) return -1;
  if (dtype.bits == 0 || dtype.lanes == 0) return tw_fail("ValueError", "a tensor's data type needs bits and lanes");
  uint64_t num_bytes;
  if (!total_bytes(shape, ndim, dtype, &num_bytes)) return tw_fail("MemoryError", "no memory for a tensor of this shape");
  DLTensor description = {NULL, device, ndim, dtype, (int64_t*)shape, NULL, 0};
  void* storage;
  if (tilewright_device_alloc(device, num_bytes, TW_ALIGNMENT, dtype, &storage) != 0) return -1;
  description.data = storage;
  if (tilewright_tensor_wrap(&description, NULL, NULL, out) != 0) {
    tw_device_free(device, storage);
    return -1;
  }
  ((TensorObject*)*out)->storage = storage;
  return 0;
}

static void release_managed(void* owner) {
  DLManagedTensor* managed = owner;
  if (managed->deleter != NULL) managed->deleter(managed);
}

static void release_managed_versioned(void* owner) {
  DLManagedTensorVersioned* managed = owner;
  if (managed->deleter != NULL) managed->deleter(managed);
}

int32_t tilewright_tensor_from_dlpack(DLManagedTensor* from, TilewrightObject** out) {
  return tilewright_tensor_wrap(&from->dl_tensor, from, release_managed, out);
}

int32_t tilewright_tensor_from_dlpack_versioned(DLManagedTensorVersioned* from, TilewrightObject** out) {
  if (from->version.major != DLPACK_MAJOR_VERSION) {
    return tw_fail("ValueError", "the tensor speaks DLPack %u.%u; this runtime speaks 1.x", (unsigned)from->version.major,
                   (unsigned)from->version.minor);
  }
  return tilewright_tensor_wrap(&from->dl_tensor, from, release_managed_versioned, out);
}

static void delete_managed(DLManagedTensor* managed) {
  tilewright_object_release(managed->manager_ctx);
  free(managed);
}

static void delete_managed_versioned(DLManagedTensorVersioned* managed) {
  tilewright_object_release(managed->manager_ctx);
  free(managed);
}

DLManagedTensor* tilewright_tensor_to_dlpack(TilewrightObject* tensor) {
  DLManagedTensor* managed = malloc(sizeof *managed);
  if (managed == NULL) {
    tw_fail("MemoryError", "no memory for a DLPack tensor");
    return NULL;
  }
  tilewright_object_retain(tensor);
  managed->dl_tensor = *tilewright_tensor_dltensor(tensor);
  managed->dl_tensor.dtype = dtype_for_exchange(managed->dl_tensor.dtype);
  managed->manager_ctx = tensor;
  managed->deleter = delete_managed;
  return managed;
}

DLManagedTensorVersioned* tilewright_tensor_to_dlpack_versioned(TilewrightObject* tensor) {
  DLManagedTensorVersioned* managed = malloc(sizeof *managed);
  if (managed == NULL) {
    tw_fail("MemoryError", "no memory for a DLPack tensor");
    return NULL;
  }
  tilewright_object_retain(tensor);
  managed->version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->manager_ctx = tensor;
  managed->deleter = delete_managed_versioned;
  managed->flags = 0;
  managed->dl_tensor = *tilewright_tensor_dltensor(tensor);
  managed->dl_tensor.dtype = dtype_for_exchange(managed->dl_tensor.dtype);
  return managed;
}

/* ---- copying ---- */
bool tw_is_compact(const DLTensor* tensor) {
  int64_t expected = 1;
  for (int32_t i = tensor->ndim - 1; tensor->strides != NULL && i >= 0; --i) {
    if (tensor->shape[i] != 1 && tensor->strides[i] != expected) return false;
    expected *= tensor->shape[i];
  }
  return true;
}

static bool same_dtype(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

/* Bytes from one index to the next along a dimension. */
static int64_t byte_stride(const DLTensor* tensor, int32_t dimension, uint64_t element) {
  if (tensor->strides != NULL) return tensor->strides[dimension] * (int64_t)element;
  int64_t stride = (int64_t)element;
  for (int32_t i = dimension + 1; i < tensor->ndim; ++i) stride *= tensor->shape[i];
  return stride;
}

/* Moves `num_bytes` from one place of a source to one of a target; both are offsets from the tensors' first elements. */
typedef int32_t (*MoveBytes)(const DLTensor* from, int64_t at_from, const DLTensor* to, int64_t at_to, uint64_t num_bytes);

static int32_t move_on_host(const DLTensor* from, int64_t at_from, const DLTensor* to, int64_t at_to, uint64_t num_bytes) {
  memcpy((char*)to->data + to->byte_offset + at_to, (const char*)from->data + from->byte_offset + at_from, (size_t)num_bytes);
  return 0;
}

static int32_t move_between_devices(const DLTensor* from, int64_t at_from, const DLTensor* to, int64_t at_to, uint64_t num_bytes) {
  return tilewright_device_copy(from->data, from->byte_offset + (uint64_t)at_from, from->device, to->data,
                                to->byte_offset + (uint64_t)at_to, to->device, num_bytes, NULL);
}

/* Copies all elements, of which there is one at least. The longest run of inner dimensions that lie compactly in both goes
 * in one move. */
static int32_t copy_runs(const DLTensor* from, const DLTensor* to, MoveBytes move) {
  uint64_t element = element_bytes(from->dtype);
  uint64_t run = element;
  int32_t outer = from->ndim;
  while (outer > 0 && (from->shape[outer - 1] == 1 || (byte_stride(from, outer - 1, element) == (int64_t)run &&
                                                        byte_stride(to, outer - 1, element) == (int64_t)run))) {
    run *= (uint64_t)from->shape[--outer];
  }
  int64_t index[MOST_DIMENSIONS] = {0};
  int64_t source = 0, target = 0;
  for (;;) {
    if (move(from, source, to, target, run) != 0) return -1;
    int32_t dimension = outer - 1;
    for (; dimension >= 0; --dimension) {
      int64_t step_from = byte_stride(from, dimension, element);
      int64_t step_to = byte_stride(to, dimension, element);
      source += step_from;
      target += step_to;
      if (++index[dimension] < from->shape[dimension]) break;
      source -= step_from * from->shape[dimension];
      target -= step_to * from->shape[dimension];
      index[dimension] = 0;
    }
    if (dimension < 0) return 0;
  }
}

/* The bytes that the elements lie in: from `low`, which is not positive, up to `high`, from the first element. */
static void span_of(const DLTensor* tensor, int64_t* low, int64_t* high) {
  uint64_t element = element_bytes(tensor->dtype);
  *low = 0;
  *high = (int64_t)element;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    int64_t reach = byte_stride(tensor, i, element) * (tensor->shape[i] - 1);
    *(reach < 0 ? low : high) += reach;
  }
}

/* Brings the bytes of a device's tensor to the host, gaps and all; `*copy` describes them there. Free `*memory`. */
static int32_t bring_to_host(const DLTensor* tensor, DLTensor* copy, void** memory) {
  int64_t low, high;
  span_of(tensor, &low, &high);
  *memory = tw_aligned_alloc((uint64_t)(high - low));
  if (*memory == NULL) return tw_fail("MemoryError", "no memory on the host to copy a tensor of a device");
  *copy = *tensor;
  copy->data = *memory;
  copy->device = TW_HOST;
  copy->byte_offset = (uint64_t)-low;
  return move_between_devices(tensor, low, copy, low, (uint64_t)(high - low));
}

/* Copies between two memories one of which the host cannot read, where the strides of one have gaps. The source is brought
 * to the host whole; a target on a device gets what is contiguous in it, so that its gaps stay as they are. */
static int32_t copy_through_host(const DLTensor* from, const DLTensor* to) {
  DLTensor source = *from, compact = *to;
  void* memory = NULL;
  void* packed = NULL;
  int32_t status = tw_host_reads(from->device) ? 0 : bring_to_host(from, &source, &memory);
  if (status == 0 && tw_host_reads(to->device)) {
    status = copy_runs(&source, to, move_on_host);
  } else if (status == 0 && !tw_is_compact(&source)) {
    uint64_t num_bytes = 0;
    total_bytes(to->shape, to->ndim, to->dtype, &num_bytes); /* not more than the memory that both are in */
    packed = tw_aligned_alloc(num_bytes);
    if (packed == NULL) status = tw_fail("MemoryError", "no memory on the host to copy a tensor to a device");
    compact = (DLTensor){packed, TW_HOST, to->ndim, to->dtype, to->shape, NULL, 0};
    if (status == 0) status = copy_runs(&source, &compact, move_on_host);
    if (status == 0) status = copy_runs(&compact, to, move_between_devices);
  } else if (status == 0) {
    status = copy_runs(&source, to, move_between_devices);
  }
  tw_aligned_free(packed);
  tw_aligned_free(memory);
  return status;
}

int32_t tilewright_tensor_copy(const DLTensor* from, const DLTensor* to) {
  if (tilewright_device_require(from->device) != 0 || tilewright_device_require(to->device) != 0) return -1;
  if (!same_dtype(dtype_of_exchange(from->dtype), dtype_of_exchange(to->dtype))) {
    TwDataTypeName given, expected;
    return tw_fail("TypeError", "cannot copy a tensor of %s into one of %s", tw_data_type_name(&given, from->dtype),
                   tw_data_type_name(&expected, to->dtype));
  }
  bool same_shape = from->ndim == to->ndim && from->ndim <= MOST_DIMENSIONS;
  bool empty = false;
  for (int32_t i = 0; same_shape && i < from->ndim; ++i) {
    same_shape = from->shape[i] == to->shape[i];
    empty |= from->shape[i] == 0;
  }
  if (!same_shape) return tw_fail("ValueError", "cannot copy between tensors of different shapes");
  if (empty) return 0;
  if (tw_host_reads(from->device) && tw_host_reads(to->device)) return copy_runs(from, to, move_on_host);
  if (tw_is_compact(from) && tw_is_compact(to)) return copy_runs(from, to, move_between_devices);
  return copy_through_host(from, to);
}

/* A tensor like another, with its elements in a row in memory of the host. */
static DLTensor in_a_row(const DLTensor* like, void* memory) {
  return (DLTensor){memory, TW_HOST, like->ndim, like->dtype, like->shape, NULL, 0};
}

int32_t tilewright_tensor_read(const DLTensor* from, void* memory) {
  DLTensor to = in_a_row(from, memory);
  return tilewright_tensor_copy(from, &to);
}

int32_t tilewright_tensor_write(const DLTensor* to, const void* memory) {
  DLTensor from = in_a_row(to, (void*)memory);
  return tilewright_tensor_copy(&from, to);
}
