/* Scratch memory for generated code: each thread keeps the blocks it freed, so that a kernel's second run allocates
 * nothing. Other devices are asked each time: whether their freed memory is kept is for their driver to say. */
#include "device.h"
#include "guard.h"

/* What one thread may keep; larger blocks go back to the system at once. */
#define MOST_CACHED_BYTES ((uint64_t)256 << 20)

/* Sits in the 64 bytes before the memory handed out. */
typedef struct TwBlock {
  uint64_t num_bytes;
} TwBlock;

static void* memory_of(TwBlock* block) { return (char*)block + TW_ALIGNMENT; }
static TwBlock* block_of(void* memory) { return (TwBlock*)(void*)((char*)memory - TW_ALIGNMENT); }

static TwBlock* remove_block(TwThreadState* state, int32_t index) {
  TwBlock* block = state->workspace.blocks[index];
  state->workspace.num_bytes -= block->num_bytes;
  state->workspace.count -= 1;
  for (int32_t i = index; i < state->workspace.count; ++i) {
    state->workspace.blocks[i] = state->workspace.blocks[i + 1];
  }
  return block;
}

void* tilewright_workspace_alloc(int32_t device_type, int32_t device_id, uint64_t num_bytes) {
  const TilewrightHost* host = tw_bound_host();
  if (host != NULL) return host->workspace_alloc(device_type, device_id, num_bytes);
  DLDevice device = {device_type, device_id};
  if (!tw_is_host(device)) {
    void* memory = NULL;
    return tw_device_alloc(device, num_bytes, &memory) == 0 ? memory : NULL;
  }
  if (tw_guard() != TW_GUARD_NONE) {
    /* Generated code relies on the alignment of workspaces. */
    void* memory = num_bytes > SIZE_MAX / 4 ? NULL : tw_guarded_alloc((size_t)num_bytes, TW_ALIGNMENT);
    if (memory == NULL) tw_fail("MemoryError", "no memory for a workspace of %llu bytes", (unsigned long long)num_bytes);
    return memory;
  }
  TwThreadState* state = tw_thread();
  int32_t best = -1;
  for (int32_t i = state->workspace.count - 1; i >= 0; --i) { /* the latest freed first: it is warm */
    uint64_t size = state->workspace.blocks[i]->num_bytes;
    if (size >= num_bytes && (best < 0 || size < state->workspace.blocks[best]->num_bytes)) best = i;
  }
  if (best >= 0) return memory_of(remove_block(state, best));
  TwBlock* block = num_bytes > UINT64_MAX / 4 ? NULL : tw_aligned_alloc(num_bytes + TW_ALIGNMENT);
  if (block == NULL) {
    tw_fail("MemoryError", "no memory for a workspace of %llu bytes", (unsigned long long)num_bytes);
    return NULL;
  }
  block->num_bytes = num_bytes;
  return memory_of(block);
}

int32_t tilewright_workspace_free(int32_t device_type, int32_t device_id, void* pointer) {
  const TilewrightHost* host = tw_bound_host();
  if (host != NULL) return host->workspace_free(device_type, device_id, pointer);
  DLDevice device = {device_type, device_id};
  if (!tw_is_host(device)) return tilewright_device_free(device, pointer);
  if (pointer == NULL) return 0;
  if (tw_guard() != TW_GUARD_NONE) {
    tw_guarded_free(pointer);
    return 0;
  }
  TwThreadState* state = tw_thread();
  TwBlock* block = block_of(pointer);
  if (block->num_bytes > MOST_CACHED_BYTES) {
    tw_aligned_free(block);
    return 0;
  }
  while (state->workspace.count == TW_CACHED_BLOCKS || state->workspace.num_bytes + block->num_bytes > MOST_CACHED_BYTES) {
    tw_aligned_free(remove_block(state, 0));
  }
  state->workspace.blocks[state->workspace.count++] = block;
  state->workspace.num_bytes += block->num_bytes;
  return 0;
}

void tw_workspace_release_all(TwThreadState* state) {
  while (state->workspace.count > 0) tw_aligned_free(remove_block(state, state->workspace.count - 1));
}
