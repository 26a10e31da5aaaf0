/* A log of calls: functions that note when each call of them began, how long it took, and the shapes of its tensors.
 *
 * It costs two looks at the clock and a few words a call. Only one thread at a time may call the functions of a log. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "platform.h"

struct TilewrightCallLog {
  int64_t references; /* the owner's, and one of every watched function */
  uint64_t start;
  int64_t* words;
  size_t count;
  size_t capacity;
};

typedef struct {
  TilewrightCallLog* log;
  TilewrightObject* function;
  int64_t number;
} Watched;

int32_t tilewright_call_log_create(TilewrightCallLog** out) {
  *out = calloc(1, sizeof **out);
  if (*out == NULL) return tw_fail("MemoryError", "no memory for a log of calls");
  (*out)->references = 1;
  tilewright_call_log_clear(*out);
  return 0;
}

void tilewright_call_log_release(TilewrightCallLog* log) {
  if (log == NULL || --log->references > 0) return;
  free(log->words);
  free(log);
}

void tilewright_call_log_clear(TilewrightCallLog* log) {
  log->count = 0;
  log->start = tw_now_nanoseconds();
}

const int64_t* tilewright_call_log_words(const TilewrightCallLog* log, size_t* count) {
  *count = log->count;
  return log->words;
}

static int32_t make_room(TilewrightCallLog* log, size_t more) {
  if (log->count + more <= log->capacity) return 0;
  size_t capacity = 2 * log->capacity + more + 1024;
  int64_t* words = realloc(log->words, capacity * sizeof *words);
  if (words == NULL) return tw_fail("MemoryError", "no memory to log more calls");
  log->words = words;
  log->capacity = capacity;
  return 0;
}

static const DLTensor* tensor_in(const TVMFFIAny* value) {
  return value->type_index == TILEWRIGHT_DLTENSOR ? value->v_ptr : NULL;
}

/* The tensors of a call: type and shape of each. Everything else among the arguments is left out. */
static int32_t note_arguments(TilewrightCallLog* log, const TVMFFIAny* args, int32_t num_args) {
  size_t most = 0;
  for (int32_t i = 0; i < num_args; ++i) {
    const DLTensor* tensor = tensor_in(&args[i]);
    if (tensor != NULL) most += 4 + (size_t)tensor->ndim;
  }
  if (make_room(log, 4 + most) != 0) return -1;
  int64_t tensors = 0;
  int64_t* word = log->words + log->count + 4;
  for (int32_t i = 0; i < num_args; ++i) {
    const DLTensor* tensor = tensor_in(&args[i]);
    if (tensor == NULL) continue;
    ++tensors;
    *word++ = tensor->dtype.code;
    *word++ = tensor->dtype.bits;
    *word++ = tensor->dtype.lanes;
    *word++ = tensor->ndim;
    for (int32_t axis = 0; axis < tensor->ndim; ++axis) *word++ = tensor->shape[axis];
  }
  log->words[log->count + 3] = tensors;
  return (int32_t)(word - (log->words + log->count));
}

static int32_t call_watched(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  Watched* watched = self;
  TilewrightCallLog* log = watched->log;
  int32_t length = note_arguments(log, args, num_args);
  if (length < 0) return -1;
  size_t at = log->count;
  log->count += (size_t)length; /* before the call: a function that calls another one comes first */
  uint64_t begin = tw_now_nanoseconds();
  int32_t status = tilewright_function_call(watched->function, args, num_args, result);
  uint64_t end = tw_now_nanoseconds();
  log->words[at] = watched->number;
  log->words[at + 1] = (int64_t)(begin - log->start);
  log->words[at + 2] = (int64_t)(end - begin);
  return status;
}

int64_t tw_call_log_begin(TilewrightCallLog* log, int64_t number) {
  if (make_room(log, 4) != 0) return -1;
  int64_t at = (int64_t)log->count;
  log->count += 4;
  int64_t* words = log->words + at;
  words[0] = number;
  words[2] = words[3] = 0;
  words[1] = (int64_t)(tw_now_nanoseconds() - log->start);
  return at;
}

void tw_call_log_end(TilewrightCallLog* log, int64_t at) {
  log->words[at + 2] = (int64_t)(tw_now_nanoseconds() - log->start) - log->words[at + 1];
}

void tw_call_log_retain(TilewrightCallLog* log) { ++log->references; }

static void release_watched(void* owner) {
  Watched* watched = owner;
  tilewright_object_release(watched->function);
  tilewright_call_log_release(watched->log);
  free(watched);
}

int32_t tilewright_call_log_watch(TilewrightCallLog* log, TilewrightObject* function, int64_t number, TilewrightObject** out) {
  Watched* watched = malloc(sizeof *watched);
  if (watched == NULL) return tw_fail("MemoryError", "no memory to watch a function");
  *watched = (Watched){.log = log, .function = function, .number = number};
  if (tilewright_function_create(call_watched, watched, watched, release_watched, out) != 0) {
    free(watched);
    return -1;
  }
  ++log->references;
  tilewright_object_retain(function);
  return 0;
}
