/* Random numbers for compiled code: `tvm.contrib.random.*`. Each thread has a generator of its own. */
#include <stdlib.h>
#include <string.h>

#include "host_tensors.h"

static _Thread_local uint64_t state;
static _Thread_local bool is_seeded;

/* SplitMix64. A thread that was given no seed starts where no other thread and no other run does. */
static uint64_t next(void) {
  if (!is_seeded) {
    state = tw_now_nanoseconds() ^ (uint64_t)(uintptr_t)&state * UINT64_C(0x9e3779b97f4a7c15);
    is_seeded = true;
  }
  uint64_t value = state += UINT64_C(0x9e3779b97f4a7c15);
  value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
  return value ^ value >> 31;
}

/* In [0, 1), with 53 random bits. */
static double unit(void) { return (double)(next() >> 11) * 0x1p-53; }

/* The natural logarithm of a positive number. The runtime does without the mathematics library. */
static double logarithm(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  int exponent = (int)(bits >> 52) - 1023;
  bits = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(0x3ff0000000000000);
  memcpy(&value, &bits, sizeof value);
  double ratio = (value - 1) / (value + 1), square = ratio * ratio, term = ratio, sum = 0;
  for (int power = 1; power < 36; power += 2, term *= square) sum += term / power;
  return 2 * sum + exponent * 0.69314718055994530942;
}

static double square_root(double value) {
  double guess = value < 1 ? 1 : value;
  for (int i = 0; i < 64; ++i) {
    double better = 0.5 * (guess + value / guess);
    if (better >= guess) break;
    guess = better;
  }
  return guess;
}

/* Marsaglia's polar method: two normal numbers for a point in the unit circle. */
static void normal_pair(double pair[2]) {
  double x, y, square;
  do {
    x = 2 * unit() - 1;
    y = 2 * unit() - 1;
    square = x * x + y * y;
  } while (square >= 1 || square < 0x1p-1000);
  double factor = square_root(-2 * logarithm(square) / square);
  pair[0] = x * factor;
  pair[1] = y * factor;
}

static int32_t cannot_store(const char* function, const DLTensor* out) {
  TwDataTypeName name;
  return tw_fail("TypeError", "%s cannot fill a tensor of %s", function, tw_data_type_name(&name, out->dtype));
}

static const DLTensor* two_numbers_and_out(const char* function, const TVMFFIAny* args, int32_t num_args, double numbers[2]) {
  if (tw_number(function, args, num_args, 0, &numbers[0]) != 0 || tw_number(function, args, num_args, 1, &numbers[1]) != 0) return NULL;
  return tw_host_tensor(function, args, num_args, 2);
}

int32_t tw_random_seed(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)result;
  double seed;
  if (tw_number("tvm.contrib.random.seed", args, num_args, 0, &seed) != 0) return -1;
  state = (uint64_t)(int64_t)seed;
  is_seeded = true;
  return 0;
}

int32_t tw_random_integers(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)result;
  const char* function = "tvm.contrib.random.randint";
  double range[2];
  const DLTensor* out = two_numbers_and_out(function, args, num_args, range);
  if (out == NULL) return -1;
  int64_t low = (int64_t)range[0], high = (int64_t)range[1];
  if (low >= high) return tw_fail("ValueError", "%s: low (%lld) must be below high (%lld)", function, (long long)low, (long long)high);
  uint64_t span = (uint64_t)high - (uint64_t)low;
  for (int64_t i = 0, count = tw_num_elements(out); i < count; ++i) {
    if (!tw_store(out, i, (double)(low + (int64_t)(next() % span)))) return cannot_store(function, out);
  }
  return 0;
}

int32_t tw_random_uniform(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)result;
  const char* function = "tvm.contrib.random.uniform";
  double range[2];
  const DLTensor* out = two_numbers_and_out(function, args, num_args, range);
  if (out == NULL) return -1;
  for (int64_t i = 0, count = tw_num_elements(out); i < count; ++i) {
    if (!tw_store(out, i, range[0] + (range[1] - range[0]) * unit())) return cannot_store(function, out);
  }
  return 0;
}

int32_t tw_random_normal(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)result;
  const char* function = "tvm.contrib.random.normal";
  double shape[2], pair[2];
  const DLTensor* out = two_numbers_and_out(function, args, num_args, shape);
  if (out == NULL) return -1;
  if (shape[1] < 0) return tw_fail("ValueError", "%s: the scale is %g, below zero", function, shape[1]);
  for (int64_t i = 0, count = tw_num_elements(out); i < count; ++i) {
    if (i % 2 == 0) normal_pair(pair);
    if (!tw_store(out, i, shape[0] + shape[1] * pair[i % 2])) return cannot_store(function, out);
  }
  return 0;
}

/* Values for measurements: none is zero, and sums and products of them do not overflow. */
static int32_t fill(const DLTensor* out) {
  bool is_float = out->dtype.code == kDLFloat;
  uint64_t most = out->dtype.bits == 1 || out->dtype.code == kDLBool ? 1 : out->dtype.bits <= 4 ? 7 : 10;
  for (int64_t i = 0, count = tw_num_elements(out); i < count; ++i) {
    if (!tw_store(out, i, is_float ? 1 + 9 * unit() : (double)(1 + next() % most))) {
      return cannot_store("tvm.contrib.random.random_fill", out);
    }
  }
  return 0;
}

/* The only one that takes a tensor of any device: it is filled on the host, then copied. */
int32_t tw_random_fill(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)result;
  const DLTensor* out = NULL;
  if (num_args > 0 && args[0].type_index == TILEWRIGHT_DLTENSOR) out = args[0].v_ptr;
  if (num_args > 0 && args[0].type_index == TILEWRIGHT_TENSOR) out = tilewright_tensor_dltensor(args[0].v_obj);
  if (out == NULL || tw_host_reads(out->device)) {
    out = tw_host_tensor("tvm.contrib.random.random_fill", args, num_args, 0);
    return out == NULL ? -1 : fill(out);
  }
  DLTensor on_host = *out;
  on_host.device = TW_HOST;
  on_host.byte_offset = 0;
  on_host.data = malloc((size_t)tw_num_elements(out) * (out->dtype.bits + 7) / 8 + 1);
  if (on_host.data == NULL) return tw_fail("MemoryError", "no memory for random numbers");
  int32_t status = fill(&on_host);
  if (status == 0) status = tilewright_tensor_copy(&on_host, out);
  free(on_host.data);
  return status;
}
