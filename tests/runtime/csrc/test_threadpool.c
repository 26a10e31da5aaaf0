/* The thread pool: every task runs once, errors reach the caller, regions nest, callers share, children fork. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "tilewright.h"

typedef struct {
  _Atomic int ran[1000];
  _Atomic int total;
} Counts;

static int32_t count(int32_t task, int32_t num_tasks, void* closure) {
  Counts* counts = closure;
  CHECK(task >= 0 && task < num_tasks);
  atomic_fetch_add(&counts->ran[task], 1);
  atomic_fetch_add(&counts->total, 1);
  return 0;
}

static void every_task_once(void) {
  static const int sizes[] = {1, 2, 3, 63, 64, 65, 255, 256, 257, 1000};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    static Counts counts;
    memset(&counts, 0, sizeof counts);
    CHECK(tilewright_parallel_launch(count, &counts, sizes[i]) == 0);
    CHECK(counts.total == sizes[i]);
    for (int task = 0; task < sizes[i]; ++task) CHECK(counts.ran[task] == 1);
  }
  Counts* counts = calloc(1, sizeof *counts);
  CHECK(tilewright_parallel_launch(count, counts, 0) == 0);
  CHECK(counts->total == tilewright_num_threads());
  free(counts);
}

/* What a task writes is seen by the caller, and by the tasks of the next region: plain memory, no atomics. */
static int32_t double_it(int32_t task, int32_t num_tasks, void* closure) {
  int* values = closure;
  for (int i = task; i < 1000; i += num_tasks) values[i] *= 2;
  return 0;
}

static void memory_is_ordered(void) {
  int values[1000];
  for (int i = 0; i < 1000; ++i) values[i] = i % 7;
  for (int round = 0; round < 20; ++round) CHECK(tilewright_parallel_launch(double_it, values, 4 + round % 3) == 0);
  for (int i = 0; i < 1000; ++i) CHECK(values[i] == i % 7 << 20);
}

static int32_t fail_at_five(int32_t task, int32_t num_tasks, void* closure) {
  (void)num_tasks;
  atomic_fetch_add((_Atomic int*)closure, 1);
  if (task != 5) return 0;
  tilewright_set_error("IndexError", "task five");
  tilewright_set_error_payload(55);
  return 17;
}

static int32_t fail_silently(int32_t task, int32_t num_tasks, void* closure) {
  (void)num_tasks;
  (void)closure;
  return task == 1 ? -3 : 0;
}

static void errors_reach_the_caller(void) {
  for (int i = 0; i < 200; ++i) {
    _Atomic int begun = 0;
    tilewright_clear_error();
    CHECK(tilewright_parallel_launch(fail_at_five, &begun, 8) == 17);
    CHECK_TEXT(tilewright_error_kind(), "IndexError");
    CHECK_TEXT(tilewright_error_message(), "task five");
    CHECK(tilewright_error_payload() == 55);
    CHECK(begun >= 1 && begun <= 8);
  }
  tilewright_clear_error();
  CHECK(tilewright_parallel_launch(fail_silently, NULL, 4) == -3);
  CHECK(tilewright_error_kind() != NULL);
  tilewright_clear_error();
}

static int32_t nest(int32_t task, int32_t num_tasks, void* closure) {
  (void)task;
  (void)num_tasks;
  return tilewright_parallel_launch(count, closure, 10);
}

static int32_t reconfigure_inside(int32_t task, int32_t num_tasks, void* closure) {
  (void)task;
  (void)num_tasks;
  (void)closure;
  return tilewright_config_threads(0, 1);
}

static void nesting(void) {
  static Counts counts;
  memset(&counts, 0, sizeof counts);
  CHECK(tilewright_parallel_launch(nest, &counts, 6) == 0);
  CHECK(counts.total == 60);
  for (int task = 0; task < 10; ++task) CHECK(counts.ran[task] == 6);
  CHECK(tilewright_parallel_launch(reconfigure_inside, NULL, 2) == -1);
  CHECK(strstr(tilewright_error_message(), "inside a parallel region") != NULL);
  tilewright_clear_error();
}

static void* call_often(void* unused) {
  (void)unused;
  Counts* counts = calloc(1, sizeof *counts);
  for (int i = 0; i < 500; ++i) CHECK(tilewright_parallel_launch(count, counts, 7) == 0);
  CHECK(counts->total == 3500);
  for (int task = 0; task < 7; ++task) CHECK(counts->ran[task] == 500);
  free(counts);
  return NULL;
}

static void* configure_often(void* unused) {
  (void)unused;
  for (int i = 0; i < 30; ++i) CHECK(tilewright_config_threads(0, 1 + i % 4) == 0);
  return NULL;
}

static void many_callers(void) {
  pthread_t threads[20]; /* more than there are slots */
  for (int i = 0; i < 20; ++i) CHECK(pthread_create(&threads[i], NULL, i == 7 ? configure_often : call_often, NULL) == 0);
  for (int i = 0; i < 20; ++i) pthread_join(threads[i], NULL);
}

static void sleeping_workers(void) {
  static Counts counts;
  memset(&counts, 0, sizeof counts);
  for (int i = 0; i < 5; ++i) {
    usleep(5000); /* long enough for everybody to fall asleep */
    CHECK(tilewright_parallel_launch(count, &counts, 4) == 0);
  }
  CHECK(counts.total == 20);
}

static int32_t slow(int32_t task, int32_t num_tasks, void* closure) {
  (void)num_tasks;
  if (task == 1) usleep(5000); /* the caller may have to sleep */
  atomic_fetch_add((_Atomic int*)closure, 1);
  return 0;
}

static void sleeping_caller(void) {
  for (int i = 0; i < 5; ++i) {
    _Atomic int done = 0;
    CHECK(tilewright_parallel_launch(slow, &done, 3) == 0);
    CHECK(done == 3);
  }
}

static void forked_children(void) {
  for (int i = 0; i < 3; ++i) {
    static Counts counts;
    memset(&counts, 0, sizeof counts);
    CHECK(tilewright_parallel_launch(count, &counts, 4) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      for (int round = 0; round < 10; ++round) CHECK(tilewright_parallel_launch(count, &counts, 4) == 0);
      _exit(counts.total == 44 ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

static void configuration(void) {
  CHECK(tilewright_config_threads(0, 3) == 0);
  CHECK(tilewright_num_threads() == 3);
  CHECK(tilewright_config_threads(2, 3) == -1);
  CHECK(tilewright_config_threads(0, -1) == -1);
  CHECK(tilewright_config_threads(0, 100000) == -1);
  CHECK(tilewright_num_threads() == 3);
  CHECK(tilewright_config_threads(1, 2) == 0);
  every_task_once();
  CHECK(setenv("TILEWRIGHT_NUM_THREADS", "5", 1) == 0);
  CHECK(tilewright_config_threads(0, 0) == 0);
  CHECK(tilewright_num_threads() == 5);
  CHECK(setenv("TILEWRIGHT_NUM_THREADS", "five", 1) == 0);
  CHECK(tilewright_config_threads(0, 0) == 0);
  CHECK(tilewright_num_threads() >= 1);
  tilewright_clear_error();
}

int main(int argc, char** argv) {
  for (int threads = 1; threads <= 4; ++threads) {
    CHECK(tilewright_config_threads(0, threads) == 0);
    every_task_once();
    memory_is_ordered();
    errors_reach_the_caller();
    nesting();
    sleeping_workers();
    sleeping_caller();
  }
  configuration();
  many_callers();
  CHECK(tilewright_config_threads(0, 3) == 0);
  /* Neither ThreadSanitizer nor QEMU follows threads that a forked child starts. */
  const char* way = argc > 2 ? argv[2] : "plain";
  if (strcmp(way, "thread") != 0 && strcmp(way, "emulated") != 0) forked_children();
  CHECK(tilewright_config_threads(0, 1) == 0);
  return 0;
}
