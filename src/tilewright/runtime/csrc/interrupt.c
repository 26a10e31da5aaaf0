/* Long runs can be interrupted: between kernels, instructions and the tasks of a parallel loop they ask the language around
 * them whether to go on. */
#include "internal.h"

#define STEPS_BETWEEN_LOOKS 64
#define NANOSECONDS_BETWEEN_QUESTIONS ((uint64_t)50000000)

static _Atomic(TilewrightInterruptCheck) interrupt_check;
static _Atomic(TwThreadState*) asking_thread;
static bool is_asking; /* read and written on that thread only */

void tilewright_set_interrupt_check(TilewrightInterruptCheck check) {
  atomic_store(&asking_thread, tw_thread());
  atomic_store(&interrupt_check, check);
}

int32_t tw_ask_interrupt(TwInterrupts* state) {
  state->left = STEPS_BETWEEN_LOOKS;
  uint64_t now = tw_now_nanoseconds();
  if (state->asked == 0) state->asked = now;
  if (now - state->asked < NANOSECONDS_BETWEEN_QUESTIONS) return 0;
  state->asked = now;
  TilewrightInterruptCheck check = atomic_load(&interrupt_check);
  /* The answer may be found by running something, which asks again. */
  if (check == NULL || atomic_load(&asking_thread) != tw_thread() || is_asking) return 0;
  is_asking = true;
  int32_t status = check();
  is_asking = false;
  return status;
}
