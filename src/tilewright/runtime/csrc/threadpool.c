/* The thread pool.
 *
 * A parallel region is a slot: its tasks are grouped into units, and a bit mask says which units nobody has claimed.
 * The caller publishes the slot, works on it itself, and returns when every unit is done. Workers claim units of any
 * published slot, each starting in its own part of the range, so that a task id tends to stay on one core from region
 * to region; whoever runs out takes what is left. Nothing ever depends on a worker being there: a caller can finish its
 * region by itself, which is what happens in a forked child, while the pool is being reconfigured, or when the system gives
 * no threads.
 *
 * A claim is one atomic AND. A claim that succeeds keeps its region from finishing, so the slot's plain fields are
 * stable from then until the unit is reported done. Workers spin for a short time when there is nothing to do, then
 * sleep; the counters that decide whether somebody sleeps are sequentially consistent on both sides, so no wake-up is
 * lost.
 */
#include <stdlib.h>

#include "internal.h"

#define MASK_WORDS 4
#define MOST_UNITS (64 * MASK_WORDS)
#define MOST_THREADS MOST_UNITS
#define SLOTS 16
/* Tasks that a loop's iterations are grouped into, for each thread: when the system takes a core away for a while, the others
 * do what is left of its share. */
#define TASKS_A_THREAD 8
/* Long enough to bridge the gaps between the regions of one model, and regions whose tasks take unequal times: waking a core
 * that has gone idle takes up to milliseconds on a virtual machine. */
#define SPIN_NANOSECONDS 2000000u
/* Whoever yields on a busy machine gets its core back milliseconds later, so this comes late. */
#define BUSY_SPIN_NANOSECONDS 1000000u
#define MOVE_NANOSECONDS 1000000u

typedef struct {
  /* Contended by everybody: one cache line. */
  _Alignas(64) _Atomic uint64_t unclaimed[MASK_WORDS];
  _Atomic int32_t remaining; /* units not yet done */
  _Atomic int32_t status;    /* the first non-zero return of a task */
  _Atomic int32_t units;
  _Atomic int32_t caller_sleeps;
  _Atomic int32_t taken;
  /* Written by the owner between regions only. */
  _Alignas(64) TilewrightTask body;
  void* closure;
  int32_t num_tasks;
  TwError error; /* written by whoever set `status` */
  TwMutex mutex;
  TwCondition done;
} Slot;

static struct {
  _Alignas(64) _Atomic uint32_t epoch; /* grows with every published region */
  _Atomic int32_t caller_cpu;          /* where the latest caller was */
  _Alignas(64) _Atomic int32_t sleepers;
  _Atomic int32_t stopping;
  _Atomic int32_t num_threads; /* 0: not decided yet */
  _Atomic int32_t started;     /* workers have been started, or the attempt was made */
  _Atomic int32_t worker_numbers[MOST_THREADS]; /* the system's, 0 for a worker that is not there */
  TwMutex sleep_mutex;
  TwCondition work;
  Slot slots[SLOTS];
  /* Guarded by `setup_mutex`. */
  TwMutex setup_mutex;
  bool initialised;
  int32_t affinity_mode;
  int32_t num_workers;
  TwThread workers[MOST_THREADS];
} pool = {.setup_mutex = TW_MUTEX_INIT, .sleep_mutex = TW_MUTEX_INIT, .work = TW_CONDITION_INIT};

/* ---- claiming and running ---- */

/* An unclaimed unit at or after `first`, going round; -1 when there is none. */
static int32_t claim_unit(Slot* slot, int32_t first) {
  for (int32_t step = 0; step <= MASK_WORDS; ++step) {
    int32_t word = (first / 64 + step) % MASK_WORDS;
    uint64_t allowed = step == 0 ? ~(uint64_t)0 << (first % 64) : ~(uint64_t)0;
    uint64_t bits = atomic_load_explicit(&slot->unclaimed[word], memory_order_relaxed) & allowed;
    while (bits != 0) {
      uint64_t bit = bits & (~bits + 1);
      uint64_t before = atomic_fetch_and_explicit(&slot->unclaimed[word], ~bit, memory_order_acq_rel);
      if (before & bit) return word * 64 + __builtin_ctzll(bit);
      bits = before & allowed & ~bit;
    }
  }
  return -1;
}

/* The first failure is the region's: the others stop before their next task. */
static void fail_region(Slot* slot, int32_t code) {
  int32_t none = 0;
  if (atomic_compare_exchange_strong(&slot->status, &none, code)) slot->error = tw_error_take();
}

static void run_unit(Slot* slot, int32_t unit) {
  int32_t units = atomic_load_explicit(&slot->units, memory_order_relaxed);
  int64_t tasks = slot->num_tasks;
  int32_t begin = (int32_t)(tasks * unit / units);
  int32_t end = (int32_t)(tasks * (unit + 1) / units);
  for (int32_t task = begin; task < end; ++task) {
    if (atomic_load_explicit(&slot->status, memory_order_relaxed) != 0) break;
    int32_t code = slot->body(task, slot->num_tasks, slot->closure);
    if (code != 0) fail_region(slot, code);
  }
  if (atomic_fetch_sub(&slot->remaining, 1) == 1 && atomic_load(&slot->caller_sleeps)) {
    tw_mutex_lock(&slot->mutex);
    tw_condition_broadcast(&slot->done);
    tw_mutex_unlock(&slot->mutex);
  }
}

/* Runs units of a region. Its caller, who has `interrupts`, asks between two of them whether to go on. */
static bool help(Slot* slot, int32_t thread, TwInterrupts* interrupts) {
  int32_t units = atomic_load_explicit(&slot->units, memory_order_relaxed);
  int32_t threads = atomic_load_explicit(&pool.num_threads, memory_order_relaxed);
  int32_t first = thread < threads ? (int32_t)((int64_t)units * thread / threads) : 0;
  bool helped = false;
  for (int32_t unit; (unit = claim_unit(slot, first)) >= 0; helped = true) {
    if (interrupts != NULL) {
      interrupts->left = 1; /* a unit may take long: look at the clock before each */
      int32_t code = tw_interrupted(interrupts);
      if (code != 0) fail_region(slot, code);
    }
    run_unit(slot, unit);
  }
  return helped;
}

/* ---- waiting ---- */
typedef struct {
  uint64_t begin;
  uint32_t turns;
} Spin;

/* One turn of a spinning loop; false when it has lasted long enough. */
static bool keep_spinning(Spin* spin) {
  if (++spin->turns % 32 != 0) {
    tw_relax();
    return true;
  }
  uint64_t now = tw_now_nanoseconds();
  if (spin->begin == 0) spin->begin = now;
  if (now - spin->begin > BUSY_SPIN_NANOSECONDS) tw_yield(); /* somebody else may need this core to finish our work */
  return now - spin->begin < SPIN_NANOSECONDS;
}

static void wait_for_work(uint32_t seen) {
  Spin spin = {0};
  do {
    if (atomic_load_explicit(&pool.epoch, memory_order_acquire) != seen) return;
  } while (keep_spinning(&spin));
  TwCpus before = tw_keep_off_cpu(0, atomic_load_explicit(&pool.caller_cpu, memory_order_relaxed));
  tw_mutex_lock(&pool.sleep_mutex);
  atomic_fetch_add(&pool.sleepers, 1);
  while (atomic_load(&pool.epoch) == seen) tw_condition_wait(&pool.work, &pool.sleep_mutex);
  atomic_fetch_sub(&pool.sleepers, 1);
  tw_mutex_unlock(&pool.sleep_mutex);
  tw_allow_cpus(&before);
}

static void announce(void) {
  atomic_fetch_add(&pool.epoch, 1);
  if (atomic_load(&pool.sleepers) == 0) return;
  tw_mutex_lock(&pool.sleep_mutex);
  tw_condition_broadcast(&pool.work);
  tw_mutex_unlock(&pool.sleep_mutex);
}

static void wait_for_units(Slot* slot) {
  Spin spin = {0};
  do {
    if (atomic_load_explicit(&slot->remaining, memory_order_acquire) == 0) return;
  } while (keep_spinning(&spin));
  tw_mutex_lock(&slot->mutex);
  atomic_store(&slot->caller_sleeps, 1);
  while (atomic_load(&slot->remaining) != 0) tw_condition_wait(&slot->done, &slot->mutex);
  atomic_store(&slot->caller_sleeps, 0);
  tw_mutex_unlock(&slot->mutex);
}

/* A system likes to put a woken thread where its waker is, and then the two only take turns: a region would be over before
 * the worker gets to run. So a worker sleeps with its caller's CPU forbidden to it (see `wait_for_work`), a caller that has
 * moved since forbids its own to the sleepers before it wakes them, and a worker that finds itself on its caller's CPU all
 * the same moves away, at most once a millisecond. A worker that is awake may run anywhere. */
static void keep_apart(uint64_t* moved) {
  int32_t cpu = tw_current_cpu();
  if (cpu < 0 || cpu != atomic_load_explicit(&pool.caller_cpu, memory_order_relaxed)) return;
  uint64_t now = tw_now_nanoseconds();
  if (now - *moved < MOVE_NANOSECONDS) return;
  *moved = now;
  TwCpus before = tw_keep_off_cpu(0, cpu);
  tw_allow_cpus(&before);
}

static void note_caller(void) {
  int32_t cpu = tw_current_cpu();
  int32_t before = atomic_exchange_explicit(&pool.caller_cpu, cpu, memory_order_relaxed);
  if (cpu == before || atomic_load(&pool.sleepers) == 0) return;
  int32_t workers = atomic_load_explicit(&pool.num_threads, memory_order_relaxed) - 1;
  for (int32_t i = 0; i < workers; ++i) {
    int32_t number = atomic_load_explicit(&pool.worker_numbers[i], memory_order_relaxed);
    if (number != 0) tw_keep_off_cpu(number, cpu);
  }
}

static void worker_main(void* argument) {
  int32_t thread = (int32_t)(intptr_t)argument;
  uint64_t moved = 0;
  tw_thread()->in_parallel = true;
  atomic_store(&pool.worker_numbers[thread - 1], tw_thread_number());
  tw_restrict_to_speed_class(pool.affinity_mode); /* written before the thread was started */
  for (;;) {
    uint32_t seen = atomic_load_explicit(&pool.epoch, memory_order_acquire);
    if (atomic_load(&pool.stopping)) break;
    bool helped = false;
    for (int32_t i = 0; i < SLOTS; ++i) helped |= help(&pool.slots[i], thread, NULL);
    if (helped) continue;
    wait_for_work(seen);
    keep_apart(&moved);
  }
  atomic_store(&pool.worker_numbers[thread - 1], 0);
}

/* ---- starting, stopping, forking ---- */
static void reset_locks(void) {
  tw_mutex_init(&pool.setup_mutex);
  tw_mutex_init(&pool.sleep_mutex);
  tw_condition_init(&pool.work);
  for (int32_t i = 0; i < SLOTS; ++i) {
    tw_mutex_init(&pool.slots[i].mutex);
    tw_condition_init(&pool.slots[i].done);
  }
}

/* The child has none of the parent's workers, and whatever they held is in an unknown state: begin afresh. */
static void reset_in_child(void) {
  reset_locks();
  for (int32_t i = 0; i < SLOTS; ++i) {
    Slot* slot = &pool.slots[i];
    for (int32_t word = 0; word < MASK_WORDS; ++word) atomic_store(&slot->unclaimed[word], 0);
    atomic_store(&slot->taken, 0);
    atomic_store(&slot->caller_sleeps, 0);
  }
  atomic_store(&pool.sleepers, 0);
  atomic_store(&pool.stopping, 0);
  atomic_store(&pool.started, 0);
  for (int32_t i = 0; i < MOST_THREADS; ++i) atomic_store(&pool.worker_numbers[i], 0);
  pool.num_workers = 0;
}

static void initialise(void) {
  if (pool.initialised) return;
  pool.initialised = true;
  for (int32_t i = 0; i < SLOTS; ++i) {
    tw_mutex_init(&pool.slots[i].mutex);
    tw_condition_init(&pool.slots[i].done);
  }
  tw_at_fork(NULL, NULL, reset_in_child);
  tw_pin_library();
}

int32_t tilewright_num_threads(void) {
  int32_t threads = atomic_load_explicit(&pool.num_threads, memory_order_acquire);
  if (threads != 0) return threads;
  tw_mutex_lock(&pool.setup_mutex);
  threads = atomic_load(&pool.num_threads);
  if (threads == 0) {
    threads = tw_default_num_threads();
    threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
    atomic_store(&pool.num_threads, threads);
  }
  tw_mutex_unlock(&pool.setup_mutex);
  return threads;
}

static void start_workers(void) {
  int32_t threads = tilewright_num_threads();
  tw_mutex_lock(&pool.setup_mutex);
  if (!atomic_load(&pool.started)) {
    initialise();
    while (pool.num_workers < threads - 1) {
      void* argument = (void*)(intptr_t)(pool.num_workers + 1);
      if (!tw_thread_start(&pool.workers[pool.num_workers], worker_main, argument)) break;
      pool.num_workers += 1;
    }
    atomic_store(&pool.started, 1);
  }
  tw_mutex_unlock(&pool.setup_mutex);
}

int32_t tilewright_config_threads(int32_t affinity_mode, int32_t num_threads) {
  if (affinity_mode < -1 || affinity_mode > 1) {
    return tw_fail("ValueError", "affinity mode %d is none of -1, 0 and 1", (int)affinity_mode);
  }
  if (num_threads < 0 || num_threads > MOST_THREADS) {
    return tw_fail("ValueError", "%d threads were asked for; 0 (the default) to %d can be", (int)num_threads, MOST_THREADS);
  }
  if (tw_thread()->in_parallel) return tw_fail("RuntimeError", "the thread pool cannot be configured from inside a parallel region");
  int32_t threads = num_threads != 0 ? num_threads : tw_default_num_threads();
  tw_mutex_lock(&pool.setup_mutex);
  atomic_store(&pool.stopping, 1);
  announce();
  while (pool.num_workers > 0) tw_thread_join(pool.workers[--pool.num_workers]);
  atomic_store(&pool.stopping, 0);
  pool.affinity_mode = affinity_mode;
  atomic_store(&pool.num_threads, threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads);
  atomic_store(&pool.started, 0);
  tw_mutex_unlock(&pool.setup_mutex);
  return 0;
}

/* ---- launching ---- */
static int32_t run_in_place(TwThreadState* state, TilewrightTask body, void* closure, int32_t num_tasks) {
  bool before = state->in_parallel;
  state->in_parallel = before || num_tasks > 1; /* a region of one task leaves the pool to what it calls */
  int32_t code = 0;
  TwInterrupts interrupts = {0};
  for (int32_t task = 0; task < num_tasks && code == 0; ++task) {
    interrupts.left = 1;
    code = tw_interrupted(&interrupts);
    if (code == 0) code = body(task, num_tasks, closure);
  }
  state->in_parallel = before;
  if (code != 0) tw_error_require();
  return code;
}

static Slot* take_slot(void) {
  for (int32_t i = 0; i < SLOTS; ++i) {
    Slot* slot = &pool.slots[i];
    if (atomic_load_explicit(&slot->taken, memory_order_relaxed) == 0 &&
        atomic_exchange_explicit(&slot->taken, 1, memory_order_acq_rel) == 0) {
      return slot;
    }
  }
  return NULL;
}

static void publish(Slot* slot, TilewrightTask body, void* closure, int32_t num_tasks) {
  int32_t units = num_tasks < MOST_UNITS ? num_tasks : MOST_UNITS;
  slot->body = body;
  slot->closure = closure;
  slot->num_tasks = num_tasks;
  atomic_store_explicit(&slot->units, units, memory_order_relaxed);
  atomic_store_explicit(&slot->status, 0, memory_order_relaxed);
  atomic_store_explicit(&slot->remaining, units, memory_order_relaxed);
  for (int32_t word = 0; word * 64 < units; ++word) {
    int32_t left = units - word * 64;
    uint64_t mask = left >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << left) - 1;
    atomic_store_explicit(&slot->unclaimed[word], mask, memory_order_release);
  }
  note_caller();
  announce();
}

int32_t tilewright_parallel_launch(TilewrightTask body, void* closure, int32_t num_tasks) {
  const TilewrightHost* host = tw_bound_host();
  if (host != NULL) return host->parallel_launch(body, closure, num_tasks);
  int32_t threads = tilewright_num_threads();
  if (num_tasks < 0) {
    int64_t iterations = -(int64_t)num_tasks, most = (int64_t)threads * TASKS_A_THREAD;
    num_tasks = (int32_t)(iterations < most ? iterations : most);
  }
  if (num_tasks == 0) num_tasks = threads;
  TwThreadState* state = tw_thread();
  if (num_tasks == 1 || threads == 1 || state->in_parallel) return run_in_place(state, body, closure, num_tasks);
  if (!atomic_load_explicit(&pool.started, memory_order_acquire)) start_workers();
  Slot* slot = take_slot();
  if (slot == NULL) return run_in_place(state, body, closure, num_tasks);

  publish(slot, body, closure, num_tasks);
  state->in_parallel = true;
  TwInterrupts interrupts = {0};
  help(slot, 0, &interrupts);
  state->in_parallel = false;
  wait_for_units(slot);

  int32_t status = atomic_load_explicit(&slot->status, memory_order_relaxed);
  if (status != 0) {
    tw_error_give(slot->error);
    slot->error = (TwError){0};
  }
  atomic_store_explicit(&slot->taken, 0, memory_order_release);
  return status;
}
