/* Memory of the virtual machine's tensors: what is given back is used again, also for somewhat smaller tensors. */
#include "check.h"
#include "vm.h"

#define KIB ((uint64_t)1 << 10)

static const DLDevice host = {kDLCPU, 0};

static TilewrightObject* take(TwPool* pool, uint64_t num_bytes) {
  TilewrightObject* storage = NULL;
  CHECK(tw_pool_storage(pool, 0, num_bytes, &storage) == 0);
  CHECK(tw_storage_bytes(storage) == num_bytes);
  return storage;
}

static void* memory_of(TilewrightObject* storage) {
  int64_t size = (int64_t)tw_storage_bytes(storage);
  TilewrightObject* tensor = NULL;
  CHECK(tw_storage_tensor(storage, 0, &size, 1, (DLDataType){kDLUInt, 8, 1}, &tensor) == 0);
  void* data = tilewright_tensor_dltensor(tensor)->data;
  memset(data, 1, (size_t)size);
  tilewright_object_release(tensor);
  return data;
}

int main(void) {
  TwPool* pool = tw_pool_create(true, &host, 1);
  TilewrightObject* large = take(pool, 1000 * KIB);
  void* block = memory_of(large);
  tilewright_object_release(large);

  /* The same size, and a quarter of it, take the block that waits; a second tensor has memory of its own. */
  TilewrightObject* same = take(pool, 1000 * KIB);
  CHECK(memory_of(same) == block);
  tilewright_object_release(same);
  TilewrightObject* first = take(pool, 300 * KIB);
  TilewrightObject* second = take(pool, 300 * KIB);
  CHECK(memory_of(first) == block && memory_of(second) != block);

  /* Of two that wait, the smaller one that is large enough is taken, and the larger one is left for a larger tensor. */
  void* small = memory_of(second);
  tilewright_object_release(first);
  tilewright_object_release(second);
  second = take(pool, 280 * KIB);
  large = take(pool, 900 * KIB);
  CHECK(memory_of(second) == small && memory_of(large) == block);
  tilewright_object_release(second);
  tilewright_object_release(large);

  /* A block many times as large as the tensor stays where it is. */
  first = take(pool, 300 * KIB);
  second = take(pool, 100 * KIB);
  CHECK(memory_of(first) == small && memory_of(second) != block);
  tilewright_object_release(second);
  tilewright_object_release(first);

  /* A limit counts whole blocks: a tensor that would be within it does not take a block that is not. */
  tw_pool_set_limit(pool, 700 * KIB);
  first = take(pool, 600 * KIB);
  CHECK(memory_of(first) != block);
  CHECK(tw_pool_storage(pool, 0, 400 * KIB, &second) != 0);
  CHECK_TEXT(tilewright_error_kind(), "MemoryError");
  tilewright_clear_error();

  /* What is in use outlives the pool. */
  tw_pool_release(pool);
  memory_of(first);
  tilewright_object_release(first);
  return 0;
}
