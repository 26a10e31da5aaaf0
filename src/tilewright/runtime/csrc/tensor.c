/* Tensors: reference-counted objects around a DLTensor, and their exchange through DLPack. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_DIMENSIONS 64

typedef struct {
  TilewrightObject header;
  DLTensor tensor;
  void* owner;
  void (*release)(void* owner);
  int64_t extents[]; /* the shape, then the strides */
} TensorObject;

static void delete_tensor(void* self, int flags) {
  TensorObject* object = self;
  if ((flags & TW_DELETE_VALUE) && object->release != NULL) object->release(object->owner);
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
  uint64_t compact = 1; /* unsigned: an empty tensor may have extents whose product wraps, and it does not matter */
  for (int32_t i = ndim - 1; i >= 0; --i) {
    object->tensor.shape[i] = description->shape[i];
    object->tensor.strides[i] = description->strides != NULL ? description->strides[i] : (int64_t)compact;
    compact *= (uint64_t)description->shape[i];
  }
  *out = &object->header;
  return 0;
}

static void free_storage(void* storage) { tw_aligned_free(storage); }

int32_t tilewright_tensor_create(const int64_t* shape, int32_t ndim, DLDataType dtype, DLDevice device, TilewrightObject** out) {
  if (check_shape(shape, ndim) != 0) return -1;
  if (device.device_type != kDLCPU) {
    return tw_fail("RuntimeError", "no memory on a device of type %d: the runtime has no driver for it", (int)device.device_type);
  }
  if (dtype.bits == 0 || dtype.lanes == 0) return tw_fail("ValueError", "a tensor's data type needs bits and lanes");
  uint64_t num_bytes;
  void* storage = total_bytes(shape, ndim, dtype, &num_bytes) ? tw_aligned_alloc(num_bytes) : NULL;
  if (storage == NULL) return tw_fail("MemoryError", "no memory for a tensor of this shape");
  DLTensor description = {storage, device, ndim, dtype, (int64_t*)shape, NULL, 0};
  int32_t status = tilewright_tensor_wrap(&description, storage, free_storage, out);
  if (status != 0) tw_aligned_free(storage);
  return status;
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
static bool is_host(DLDevice device) { return device.device_type == kDLCPU || device.device_type == kDLCUDAHost; }

static bool same_dtype(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

/* Bytes from one index to the next along a dimension. */
static int64_t byte_stride(const DLTensor* tensor, int32_t dimension, uint64_t element) {
  if (tensor->strides != NULL) return tensor->strides[dimension] * (int64_t)element;
  int64_t stride = (int64_t)element;
  for (int32_t i = dimension + 1; i < tensor->ndim; ++i) stride *= tensor->shape[i];
  return stride;
}

int32_t tilewright_tensor_copy(const DLTensor* from, const DLTensor* to) {
  if (!is_host(from->device) || !is_host(to->device)) {
    return tw_fail("RuntimeError", "cannot copy between devices of types %d and %d: the runtime has no driver for them",
                   (int)from->device.device_type, (int)to->device.device_type);
  }
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

  uint64_t element = element_bytes(from->dtype);
  const char* source = (const char*)from->data + from->byte_offset;
  char* target = (char*)to->data + to->byte_offset;
  /* The longest run of inner dimensions that lie compactly in both goes in one memcpy. */
  uint64_t run = element;
  int32_t outer = from->ndim;
  while (outer > 0 && (from->shape[outer - 1] == 1 || (byte_stride(from, outer - 1, element) == (int64_t)run &&
                                                        byte_stride(to, outer - 1, element) == (int64_t)run))) {
    run *= (uint64_t)from->shape[--outer];
  }
  int64_t index[MOST_DIMENSIONS] = {0};
  for (;;) {
    memcpy(target, source, (size_t)run);
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
