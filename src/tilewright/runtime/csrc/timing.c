/* Measuring a function without the cost of the language that asks. */
#include "device.h"

/* Calls in one repeat, however short they are. */
#define MOST_CALLS ((int64_t)1000000000)

static int32_t call_once(TilewrightFunction call, void* self, const TVMFFIAny* args, int32_t num_args) {
  TVMFFIAny result = {0};
  int32_t status = call(self, args, num_args, &result);
  tilewright_any_release(&result);
  return status;
}

/* What measures: the host's clock or, where the device has a clock, two events of it. */
typedef struct {
  DLDevice device;
  bool by_events;
  void* start;
  void* end;
} Stopwatch;

static int32_t make_stopwatch(DLDevice device, Stopwatch* out) {
  *out = (Stopwatch){.device = device, .by_events = tw_device_has_events(device)};
  if (!out->by_events) return 0;
  if (tilewright_event_create(device, &out->start) != 0) return -1;
  if (tilewright_event_create(device, &out->end) == 0) return 0;
  tilewright_event_free(device, out->start);
  return -1;
}

static void end_stopwatch(const Stopwatch* watch) {
  if (!watch->by_events) return;
  tilewright_event_free(watch->device, watch->start);
  tilewright_event_free(watch->device, watch->end);
}

static int32_t call_often(TilewrightFunction call, void* self, const TVMFFIAny* args, int32_t num_args, int64_t number) {
  for (int64_t i = 0; i < number; ++i) {
    if (call_once(call, self, args, num_args) != 0) return -1;
  }
  return 0;
}

/* Nanoseconds of `number` calls in a row, or -1 after a failure. */
static int64_t time_calls(const Stopwatch* watch, TilewrightFunction call, void* self, const TVMFFIAny* args, int32_t num_args,
                          int64_t number) {
  if (watch->by_events) {
    double milliseconds;
    if (tilewright_event_record(watch->device, watch->start, NULL) != 0 || call_often(call, self, args, num_args, number) != 0 ||
        tilewright_event_record(watch->device, watch->end, NULL) != 0 || tilewright_event_sync(watch->device, watch->end) != 0 ||
        tilewright_event_elapsed(watch->device, watch->start, watch->end, &milliseconds) != 0) {
      return -1;
    }
    return (int64_t)(milliseconds * 1e6);
  }
  if (tw_device_wait(watch->device) != 0) return -1;
  uint64_t begin = tw_now_nanoseconds();
  if (call_often(call, self, args, num_args, number) != 0 || tw_device_wait(watch->device) != 0) return -1;
  return (int64_t)(tw_now_nanoseconds() - begin);
}

int32_t tilewright_time_function(TilewrightFunction call, void* self, const TVMFFIAny* args, int32_t num_args, int32_t number,
                                 int32_t repeat, int32_t min_repeat_ms, TilewrightObject* prepare, double* seconds) {
  return tilewright_time_function_on(TW_HOST, call, self, args, num_args, number, repeat, min_repeat_ms, prepare, seconds);
}

static int32_t time_repeats(const Stopwatch* watch, TilewrightFunction call, void* self, const TVMFFIAny* args, int32_t num_args,
                            int32_t number, int32_t repeat, int32_t min_repeat_ms, TilewrightObject* prepare, double* seconds) {
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
      int64_t spent = time_calls(watch, call, self, args, num_args, count);
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

int32_t tilewright_time_function_on(DLDevice device, TilewrightFunction call, void* self, const TVMFFIAny* args, int32_t num_args,
                                    int32_t number, int32_t repeat, int32_t min_repeat_ms, TilewrightObject* prepare, double* seconds) {
  Stopwatch watch;
  if (number < 1 || repeat < 1) return tw_fail("ValueError", "number and repeat must be at least 1");
  if (tilewright_device_require(device) != 0 || make_stopwatch(device, &watch) != 0) return -1;
  int32_t status = time_repeats(&watch, call, self, args, num_args, number, repeat, min_repeat_ms, prepare, seconds);
  end_stopwatch(&watch);
  return status;
}

/* A clock is read once for so many nanoseconds at least: reading it must not show in what is measured. */
#define SHORTEST_PIECE ((int64_t)50000000)

int32_t tilewright_time_some(DLDevice device, TilewrightFunction call, void* self, const TVMFFIAny* args, int32_t num_args, int64_t number,
                             int64_t most_nanoseconds, int64_t* piece, int64_t* done, int64_t* nanoseconds) {
  Stopwatch watch;
  if (number < 1 || *piece < 1) return tw_fail("ValueError", "number and piece must be at least 1");
  if (tilewright_device_require(device) != 0 || make_stopwatch(device, &watch) != 0) return -1;
  int64_t spent = 0;
  *done = *nanoseconds = 0;
  while (spent >= 0 && *done < number && *nanoseconds < most_nanoseconds) {
    int64_t count = number - *done < *piece ? number - *done : *piece;
    spent = time_calls(&watch, call, self, args, num_args, count);
    if (spent < 0) break;
    *nanoseconds += spent;
    *done += count;
    if (spent < SHORTEST_PIECE && *piece < MOST_CALLS) *piece *= 2;
    if (spent > 4 * SHORTEST_PIECE && *piece > 1) *piece /= 2;
  }
  end_stopwatch(&watch);
  return spent < 0 ? -1 : 0;
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
    if (tensor == NULL || !tw_host_reads(tensor->device)) continue;
    uint64_t num_bytes = ((uint64_t)tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
    for (int32_t d = 0; d < tensor->ndim; ++d) num_bytes *= (uint64_t)tensor->shape[d];
    const char* begin = (const char*)tensor->data + tensor->byte_offset;
    for (uint64_t at = 0; at < num_bytes; at += TW_ALIGNMENT) flush_line(begin + at);
  }
  return 0;
}
