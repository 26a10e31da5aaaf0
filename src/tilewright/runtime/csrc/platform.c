/* Locks, threads, clock and aligned memory over pthreads, Win32 or nothing at all. */
#define _GNU_SOURCE
#include "platform.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "guard.h"
#include "tilewright.h"

#if defined(_WIN32)
#include <malloc.h>

#if defined(TILEWRIGHT_EMBEDDED) && (defined(__x86_64__) || defined(__i386__))
/* Code for Microsoft's C library that uses floating point refers to this, and only that library has it. */
int _fltused = 0x9875;
#endif

void tw_mutex_init(TwMutex* mutex) { InitializeSRWLock(mutex); }
void tw_mutex_lock(TwMutex* mutex) { AcquireSRWLockExclusive(mutex); }
void tw_mutex_unlock(TwMutex* mutex) { ReleaseSRWLockExclusive(mutex); }
void tw_condition_init(TwCondition* condition) { InitializeConditionVariable(condition); }
void tw_condition_wait(TwCondition* condition, TwMutex* mutex) {
  SleepConditionVariableSRW(condition, mutex, INFINITE, 0);
}
void tw_condition_signal(TwCondition* condition) { WakeConditionVariable(condition); }
void tw_condition_broadcast(TwCondition* condition) { WakeAllConditionVariable(condition); }
void tw_yield(void) { SwitchToThread(); }

typedef struct {
  void (*body)(void*);
  void* argument;
} ThreadStart;

static DWORD WINAPI thread_main(LPVOID argument) {
  ThreadStart start = *(ThreadStart*)argument;
  free(argument);
  start.body(start.argument);
  return 0;
}

bool tw_thread_start(TwThread* thread, void (*body)(void*), void* argument) {
  ThreadStart* start = malloc(sizeof *start);
  if (start == NULL) return false;
  start->body = body;
  start->argument = argument;
  *thread = CreateThread(NULL, 0, thread_main, start, 0, NULL);
  if (*thread == NULL) free(start);
  return *thread != NULL;
}

void tw_thread_join(TwThread thread) {
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}

static DWORD exit_slot = FLS_OUT_OF_INDEXES;
static SRWLOCK exit_lock = SRWLOCK_INIT;
static void (*exit_release)(void*);

static VOID WINAPI run_exit_release(PVOID value) {
  if (value != NULL) exit_release(value);
}

void tw_at_thread_exit(void (*release)(void*), void* value) {
  AcquireSRWLockExclusive(&exit_lock);
  if (exit_slot == FLS_OUT_OF_INDEXES) {
    tw_pin_library();
    exit_release = release;
    exit_slot = FlsAlloc(run_exit_release);
  }
  ReleaseSRWLockExclusive(&exit_lock);
  if (exit_slot != FLS_OUT_OF_INDEXES) FlsSetValue(exit_slot, value);
}

void tw_pin_library(void) {
  HMODULE module;
  GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN, (LPCSTR)&exit_slot, &module);
}

void tw_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  (void)prepare;
  (void)parent;
  (void)child;
}

uint64_t tw_now_nanoseconds(void) {
  LARGE_INTEGER ticks, frequency;
  QueryPerformanceCounter(&ticks);
  QueryPerformanceFrequency(&frequency);
  uint64_t whole = (uint64_t)(ticks.QuadPart / frequency.QuadPart);
  uint64_t rest = (uint64_t)(ticks.QuadPart % frequency.QuadPart);
  return whole * 1000000000u + rest * 1000000000u / (uint64_t)frequency.QuadPart;
}

static void* system_aligned_alloc(size_t num_bytes) { return _aligned_malloc(num_bytes, TW_ALIGNMENT); }
static void system_aligned_free(void* pointer) { _aligned_free(pointer); }

void* tw_process_symbol(const char* name) {
  return tw_find_symbol((void*)GetModuleHandleA("tvm_ffi.dll"), name);
}

void* tw_open_library(const char* path) { return (void*)LoadLibraryA(path); }
const char* tw_open_problem(void) { return "the system refuses it"; }
void* tw_find_symbol(void* library, const char* name) {
  FARPROC found = GetProcAddress((HMODULE)library, name);
  void* address;
  memcpy(&address, &found, sizeof address);
  return address;
}

#elif TW_HAS_THREADS
#include <dlfcn.h>
#include <sched.h>
#include <sys/mman.h>

void tw_mutex_init(TwMutex* mutex) { pthread_mutex_init(mutex, NULL); }
void tw_mutex_lock(TwMutex* mutex) { pthread_mutex_lock(mutex); }
void tw_mutex_unlock(TwMutex* mutex) { pthread_mutex_unlock(mutex); }
void tw_condition_init(TwCondition* condition) { pthread_cond_init(condition, NULL); }
void tw_condition_wait(TwCondition* condition, TwMutex* mutex) { pthread_cond_wait(condition, mutex); }
void tw_condition_signal(TwCondition* condition) { pthread_cond_signal(condition); }
void tw_condition_broadcast(TwCondition* condition) { pthread_cond_broadcast(condition); }
void tw_yield(void) { sched_yield(); }

typedef struct {
  void (*body)(void*);
  void* argument;
} ThreadStart;

static void* thread_main(void* argument) {
  ThreadStart start = *(ThreadStart*)argument;
  free(argument);
  start.body(start.argument);
  return NULL;
}

bool tw_thread_start(TwThread* thread, void (*body)(void*), void* argument) {
  ThreadStart* start = malloc(sizeof *start);
  if (start == NULL) return false;
  start->body = body;
  start->argument = argument;
  if (pthread_create(thread, NULL, thread_main, start) == 0) return true;
  free(start);
  return false;
}

void tw_thread_join(TwThread thread) { pthread_join(thread, NULL); }

static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static bool exit_key_made;
static void (*exit_release)(void*);

/* The key makes every later thread exit call into this library, so the library has to stay. */
static void make_exit_key(void) {
  tw_pin_library();
  exit_key_made = pthread_key_create(&exit_key, exit_release) == 0;
}

void tw_at_thread_exit(void (*release)(void*), void* value) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  exit_release = release;
  pthread_once(&exit_once, make_exit_key);
  pthread_mutex_unlock(&lock);
  if (exit_key_made) pthread_setspecific(exit_key, value);
}

#if !defined(TILEWRIGHT_OWN_LOADER) /* a program that links objects itself: rpc/archive.c */
void tw_pin_library(void) {
#if defined(RTLD_NOLOAD) && defined(RTLD_NODELETE)
  Dl_info info;
  if (dladdr(&exit_key, &info) != 0 && info.dli_fname != NULL) {
    dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
#endif
}

void* tw_process_symbol(const char* name) { return dlsym(RTLD_DEFAULT, name); }

void* tw_open_library(const char* path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
const char* tw_open_problem(void) {
  const char* problem = dlerror();
  return problem != NULL ? problem : "the system refuses it";
}
void* tw_find_symbol(void* library, const char* name) { return dlsym(library, name); }
#endif

void tw_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  pthread_atfork(prepare, parent, child);
}

uint64_t tw_now_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Large tensors are read from end to end: with pages of two megabytes, where the system gives them when asked, the
 * TLB does not slow that down. What is beyond the last whole page has small ones. */
#define HUGE_PAGE ((size_t)2 << 20)

static void* system_aligned_alloc(size_t num_bytes) {
  void* pointer;
#if defined(MADV_HUGEPAGE)
  if (num_bytes >= 2 * HUGE_PAGE) {
    if (posix_memalign(&pointer, HUGE_PAGE, num_bytes) != 0) return NULL;
    (void)madvise(pointer, num_bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    return pointer;
  }
#endif
  return posix_memalign(&pointer, TW_ALIGNMENT, num_bytes) == 0 ? pointer : NULL;
}
static void system_aligned_free(void* pointer) { free(pointer); }

#else
void tw_mutex_init(TwMutex* mutex) { (void)mutex; }
void tw_mutex_lock(TwMutex* mutex) { (void)mutex; }
void tw_mutex_unlock(TwMutex* mutex) { (void)mutex; }
void tw_condition_init(TwCondition* condition) { (void)condition; }
void tw_condition_wait(TwCondition* condition, TwMutex* mutex) {
  (void)condition;
  (void)mutex;
}
void tw_condition_signal(TwCondition* condition) { (void)condition; }
void tw_condition_broadcast(TwCondition* condition) { (void)condition; }
void tw_yield(void) {}

bool tw_thread_start(TwThread* thread, void (*body)(void*), void* argument) {
  (void)thread;
  (void)body;
  (void)argument;
  return false;
}
void tw_thread_join(TwThread thread) { (void)thread; }
void tw_at_thread_exit(void (*release)(void*), void* value) {
  (void)release;
  (void)value;
}
void tw_pin_library(void) {}
void tw_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  (void)prepare;
  (void)parent;
  (void)child;
}

uint64_t tw_now_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void* system_aligned_alloc(size_t num_bytes) { return aligned_alloc(TW_ALIGNMENT, num_bytes); }
static void system_aligned_free(void* pointer) { free(pointer); }

void* tw_process_symbol(const char* name) {
  (void)name;
  return NULL;
}

/* There is one library, the program itself: what is linked in was registered (`tilewright_register_system_symbol`). */
static char program_itself;

void* tw_open_library(const char* path) { return path[0] == 0 ? &program_itself : NULL; }
const char* tw_open_problem(void) { return "this system loads no libraries; an empty path is what is linked in"; }
void* tw_find_symbol(void* library, const char* name) {
  return library == &program_itself ? tilewright_system_symbol(name) : NULL;
}
#endif

#if defined(_WIN32) || TW_HAS_THREADS
const char* tw_environment(const char* name) { return getenv(name); }
#else
const char* tw_environment(const char* name) {
  (void)name;
  return NULL;
}
#endif

void* tw_aligned_alloc(uint64_t num_bytes) {
  /* Half the address space is more than any allocator gives, and leaves room to round up. */
  if (num_bytes > SIZE_MAX / 2) return NULL;
  /* With a guard at its end, memory is aligned as far as its size is: enough for the elements that it is made of. */
  if (tw_guard() != TW_GUARD_NONE) return tw_guarded_alloc((size_t)num_bytes, 1);
  size_t rounded = ((size_t)num_bytes + TW_ALIGNMENT - 1) / TW_ALIGNMENT * TW_ALIGNMENT;
  return system_aligned_alloc(rounded == 0 ? TW_ALIGNMENT : rounded);
}

void tw_aligned_free(void* pointer) {
  if (tw_guard() != TW_GUARD_NONE) {
    tw_guarded_free(pointer);
  } else {
    system_aligned_free(pointer);
  }
}
