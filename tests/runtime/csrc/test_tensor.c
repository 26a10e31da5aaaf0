/* Tensors: aligned storage, DLPack without copies and with the right owner, copies between any strides. */
#include "check.h"
#include "tilewright.h"

static const DLDataType float32 = {kDLFloat, 32, 1};
static const DLDevice cpu = {kDLCPU, 0};

static TilewrightObject* create(int32_t ndim, const int64_t* shape, DLDataType dtype) {
  TilewrightObject* tensor = NULL;
  CHECK(tilewright_tensor_create(shape, ndim, dtype, cpu, &tensor) == 0);
  return tensor;
}

static void storage(void) {
  int64_t shape[3] = {2, 3, 5};
  TilewrightObject* object = create(3, shape, float32);
  DLTensor* tensor = tilewright_tensor_dltensor(object);
  CHECK((uintptr_t)tensor->data % 64 == 0);
  CHECK((char*)tensor - (char*)object == 24);
  CHECK(tensor->ndim == 3 && tensor->shape[2] == 5);
  CHECK(tensor->strides[0] == 15 && tensor->strides[1] == 5 && tensor->strides[2] == 1);
  memset(tensor->data, 1, 2 * 3 * 5 * 4);
  tilewright_object_release(object);

  tilewright_object_release(create(0, NULL, float32));
  int64_t empty[2] = {0, 7};
  tilewright_object_release(create(2, empty, float32));

  TilewrightObject* none = NULL;
  int64_t negative[1] = {-1};
  CHECK(tilewright_tensor_create(negative, 1, float32, cpu, &none) == -1);
  CHECK_TEXT(tilewright_error_kind(), "ValueError");
  int64_t huge[3] = {INT64_MAX, INT64_MAX, INT64_MAX};
  CHECK(tilewright_tensor_create(huge, 3, float32, cpu, &none) == -1);
  CHECK_TEXT(tilewright_error_kind(), "MemoryError");
  CHECK(tilewright_tensor_create(huge, 100, float32, cpu, &none) == -1);
  CHECK(tilewright_tensor_create(NULL, 1, float32, cpu, &none) == -1);
  DLDevice gpu = {kDLCUDA, 0};
  CHECK(tilewright_tensor_create(shape, 3, float32, gpu, &none) == -1);
  CHECK_TEXT(tilewright_error_kind(), "RuntimeError");
  CHECK(none == NULL);
}

static int deleted;
static void delete_it(DLManagedTensor* managed) {
  deleted += 1;
  free(managed);
}

static void exchange(void) {
  int64_t shape[1] = {4};
  TilewrightObject* object = create(1, shape, (DLDataType){kDLUInt, 1, 1});
  DLManagedTensor* plain = tilewright_tensor_to_dlpack(object);
  DLManagedTensorVersioned* versioned = tilewright_tensor_to_dlpack_versioned(object);
  void* data = tilewright_tensor_dltensor(object)->data;
  tilewright_object_release(object);
  CHECK(plain->dl_tensor.data == data && versioned->dl_tensor.data == data);
  CHECK(versioned->version.major == 1);
  CHECK(plain->dl_tensor.dtype.code == kDLBool && plain->dl_tensor.dtype.bits == 8);
  plain->deleter(plain);
  TilewrightObject* again = NULL;
  CHECK(tilewright_tensor_from_dlpack_versioned(versioned, &again) == 0);
  CHECK(tilewright_tensor_dltensor(again)->dtype.code == kDLUInt && tilewright_tensor_dltensor(again)->dtype.bits == 1);
  memset(tilewright_tensor_dltensor(again)->data, 0, 4);
  tilewright_object_release(again);

  float values[6];
  int64_t extents[2] = {2, 3};
  DLManagedTensor* mine = malloc(sizeof *mine);
  *mine = (DLManagedTensor){{values, cpu, 2, float32, extents, NULL, 0}, NULL, delete_it};
  TilewrightObject* taken = NULL;
  CHECK(tilewright_tensor_from_dlpack(mine, &taken) == 0);
  CHECK(tilewright_tensor_dltensor(taken)->strides[0] == 3);
  tilewright_object_retain(taken);
  tilewright_object_release(taken);
  CHECK(deleted == 0);
  tilewright_object_release(taken);
  CHECK(deleted == 1);

  DLManagedTensorVersioned future = {.version = {2, 0}};
  CHECK(tilewright_tensor_from_dlpack_versioned(&future, &taken) == -1);
}

static void copies(void) {
  float source[24], target[24];
  for (int i = 0; i < 24; ++i) source[i] = (float)i;
  int64_t shape[3] = {2, 3, 4}, transposed_shape[3] = {4, 3, 2}, transposed_strides[3] = {1, 4, 12};
  DLTensor from = {source, cpu, 3, float32, shape, NULL, 0};
  DLTensor to = {target, cpu, 3, float32, shape, NULL, 0};
  CHECK(tilewright_tensor_copy(&from, &to) == 0);
  CHECK(memcmp(source, target, sizeof source) == 0);

  from.shape = transposed_shape;
  from.strides = transposed_strides;
  to.shape = transposed_shape;
  CHECK(tilewright_tensor_copy(&from, &to) == 0);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 2; ++k) CHECK(target[(i * 3 + j) * 2 + k] == source[k * 12 + j * 4 + i]);
    }
  }
  /* One element of eleven, with an offset, and a reversed direction. */
  int64_t two[1] = {2}, eleven[1] = {11}, back[1] = {-1};
  DLTensor sparse = {source, cpu, 1, float32, two, eleven, 4};
  DLTensor reversed = {target + 1, cpu, 1, float32, two, back, 0};
  CHECK(tilewright_tensor_copy(&sparse, &reversed) == 0);
  CHECK(target[1] == 1.0f && target[0] == 12.0f);

  CHECK(tilewright_tensor_copy(&sparse, &to) == -1);
  DLTensor other = sparse;
  other.dtype.bits = 16;
  CHECK(tilewright_tensor_copy(&sparse, &other) == -1);
  CHECK_TEXT(tilewright_error_kind(), "TypeError");
  other = sparse;
  other.device.device_type = kDLCUDA;
  CHECK(tilewright_tensor_copy(&sparse, &other) == -1);
  int64_t none[2] = {0, INT64_MAX};
  DLTensor empty = {NULL, cpu, 2, float32, none, NULL, 0};
  CHECK(tilewright_tensor_copy(&empty, &empty) == 0);
}

int main(void) {
  storage();
  exchange();
  copies();
  return 0;
}
