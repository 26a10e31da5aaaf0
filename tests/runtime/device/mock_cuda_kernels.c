/* The kernels of the simulated CUDA driver. */
#include "mock_cuda.h"

#define ARG(type, index) (*(type*)launch->args[index])

static bool add_one(const MockLaunch* launch) {
  const float* from = ARG(float*, 0);
  float* to = ARG(float*, 1);
  for (int64_t i = 0; i < ARG(int64_t, 2); ++i) to[i] = from[i] + 1.0f;
  return true;
}

static bool add(const MockLaunch* launch) {
  const float *a = ARG(float*, 0), *b = ARG(float*, 1);
  for (unsigned i = 0; i < launch->grid[0] * launch->block[0]; ++i) ARG(float*, 2)[i] = a[i] + b[i];
  return true;
}

static bool fill(const MockLaunch* launch) {
  for (unsigned i = 0; i < launch->grid[0] * launch->block[0]; ++i) ARG(int32_t*, 0)[i] = ARG(int32_t, 1) + (int32_t)i;
  return true;
}

static bool use_shared(const MockLaunch* launch) {
  int32_t* scratch = launch->shared;
  for (unsigned i = 0; i < launch->block[0]; ++i) scratch[i] = (int32_t)i;
  for (unsigned i = 0; i < launch->block[0]; ++i) ARG(int32_t*, 0)[i] = scratch[launch->block[0] - 1 - i];
  return true;
}

/* Every kind of argument that is no pointer, as doubles. */
static bool show_args(const MockLaunch* launch) {
  double* to = ARG(double*, 0);
  to[0] = ARG(int8_t, 1);
  to[1] = ARG(int16_t, 2);
  to[2] = ARG(int32_t, 3);
  to[3] = (double)ARG(int64_t, 4);
  to[4] = (double)ARG(float, 5);
  to[5] = ARG(double, 6);
  return true;
}

/* Copies the words of a tensor map, which this driver fills with what it was asked for. */
static bool show_map(const MockLaunch* launch) {
  if ((uintptr_t)launch->args[1] % 64 != 0) return false;
  memcpy(ARG(uint64_t*, 0), launch->args[1], sizeof(CUtensorMap));
  return true;
}

/* Writes a number, at once. */
static bool spin(const MockLaunch* launch) {
  *ARG(int32_t*, 0) = ARG(int32_t, 2);
  return true;
}

/* Brings a box of a tensor of floats to memory; outside of the tensor are zeros. */
static bool tma_copy(const MockLaunch* launch) {
  const uint64_t* map = launch->args[1];
  int64_t columns = (int64_t)map[2], rows = (int64_t)map[3], stride = (int64_t)map[12];
  int64_t width = (int64_t)(map[7] & 0xFFFFFFFF), height = (int64_t)(map[8] & 0xFFFFFFFF);
  for (int64_t i = 0; i < height; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      int64_t x = ARG(int32_t, 2) + j, y = ARG(int32_t, 3) + i;
      bool inside = x >= 0 && x < columns && y >= 0 && y < rows;
      ARG(float*, 0)[i * width + j] = inside ? *(float*)((uintptr_t)map[0] + (uintptr_t)(y * stride + x * 4)) : 0;
    }
  }
  return true;
}

static bool cluster_size(const MockLaunch* launch) {
  for (unsigned i = 0; i < launch->grid[0]; ++i) ARG(int32_t*, 0)[i] = (int32_t)launch->cluster;
  return true;
}

static bool crash(const MockLaunch* launch) {
  (void)launch;
  return false;
}

/* The candidate of a tuner, which is measured and not checked. */
static bool candidate(const MockLaunch* launch) {
  (void)launch;
  return true;
}

const MockKernel mock_kernels[] = {
    {"add_one", {8, 8, 8}, 0, 16, add_one},
    {"add", {8, 8, 8}, 0, 16, add},
    {"fill", {8, 4}, 0, 16, fill},
    {"use_shared", {8}, 1024, 32, use_shared},
    {"show_args", {8, 1, 2, 4, 8, 4, 8}, 0, 40, show_args},
    {"show_map", {8, 128}, 0, 24, show_map},
    {"spin", {8, 8, 4}, 0, 16, spin},
    {"tma_copy", {8, 128, 4, 4}, 1032, 24, tma_copy},
    {"cluster_size", {8}, 0, 16, cluster_size},
    {"crash", {0}, 0, 8, crash},
    {"default_function_kernel0", {8, 8, 8}, 0, 32, candidate},
    {"main_kernel0", {8, 8, 8}, 0, 32, candidate},
    {NULL, {0}, 0, 0, NULL},
};
