/* Measuring a function without the cost of the language that asks. */
#include "internal.h"

/* Calls in one repeat, however short they are. */
#define MOST_CALLS ((int64_t)1000000000)

static int32_t call_once(TilewrightFunction call, void* self, const TVMFFIAny* args, int32_t num_args) {
  TVMFFIAny result = {0};
  int32_t status = call(self, args, num_args, &result);
  tilewright_any_release(&result);
  return status;
}

/* Nanoseconds of `number` calls in a row, or -1 after a failure. */
static int64_t time_calls(TilewrightFunction call, void* self, const TVMFFIAny* args, int32_t num_args, int64_t number) {
  uint64_t begin = tw_now_nanoseconds();
  for (int64_t i = 0; i < number; ++i) {
    if (call_once(call, self, args, num_args) != 0) return -1;
  }
  return (int64_t)(tw_now_nanoseconds() - begin);
}

int32_t tilewright_time_function(TilewrightFunction call, void* self, const TVMFFIAny* args, int32_t num_args, int32_t number,
                                 int32_t repeat, int32_t min_repeat_ms, TilewrightObject* prepare, double* seconds) {
  if (number < 1 || repeat < 1) return tw_fail("ValueError", "number and repeat must be at least 1");
  if (call_once(call, self, args, num_args) != 0) return -1;
  int64_t count = number;
  double least_nanoseconds = (double)min_repeat_ms * 1e6;
  for (int32_t i = 0; i < repeat; ++i) {
    if (prepare != NULL) {
      TVMFFIAny ignored = {0};
      int32_t status = tilewright_function_call(prepare, args, num_args, &ignored);
      tilewright_any_release(&ignored);
      if (status != 0) return -1;
    }
    for (;;) {
      int64_t spent = time_calls(call, self, args, num_args, count);
      if (spent < 0) return -1;
      seconds[i] = (double)spent * 1e-9 / (double)count;
      if ((double)spent >= least_nanoseconds || count >= MOST_CALLS) break;
      /* Aim at the wanted time, and grow by the golden ratio at least, so that few tries are needed. */
      double wanted = least_nanoseconds * (double)count / (double)(spent > 0 ? spent : 1) + 1.0;
      double grown = (double)count * 1.618 + 1.0;
      double next = wanted > grown ? wanted : grown;
      count = next > (double)MOST_CALLS ? MOST_CALLS : (int64_t)next;
    }
  }
  return 0;
}

static const DLTensor* tensor_of(const TVMFFIAny* value) {
  if (value->type_index == TILEWRIGHT_DLTENSOR) return value->v_ptr;
  if (value->type_index == TILEWRIGHT_TENSOR) return tilewright_tensor_dltensor(value->v_obj);
  return NULL;
}

/* Drops the cache line that holds `address`, on machines where a program may. */
static void flush_line(const char* address) {
#if defined(__x86_64__) || defined(__i386__)
  __asm__ volatile("clflush (%0)" ::"r"(address) : "memory");
#elif defined(__aarch64__)
  __asm__ volatile("dc civac, %0" ::"r"(address) : "memory");
#else
  (void)address;
#endif
}

/* A `prepare` for kernels whose weights come cold from memory: flushes every tensor argument but the first. */
int32_t tw_cache_flush_cpu_non_first_arg(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)result;
  for (int32_t i = 1; i < num_args; ++i) {
    const DLTensor* tensor = tensor_of(&args[i]);
    if (tensor == NULL || tensor->device.device_type != kDLCPU) continue;
    uint64_t num_bytes = ((uint64_t)tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
    for (int32_t d = 0; d < tensor->ndim; ++d) num_bytes *= (uint64_t)tensor->shape[d];
    const char* begin = (const char*)tensor->data + tensor->byte_offset;
    for (uint64_t at = 0; at < num_bytes; at += TW_ALIGNMENT) flush_line(begin + at);
  }
  return 0;
}
