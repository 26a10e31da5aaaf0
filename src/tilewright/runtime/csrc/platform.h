/* The few things that differ between operating systems: locks, threads, clock, aligned memory.
 * Internal to the runtime. */
#ifndef TILEWRIGHT_PLATFORM_H_
#define TILEWRIGHT_PLATFORM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__wasm__)
#define TW_HAS_THREADS 0
#else
#define TW_HAS_THREADS 1
#endif

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
typedef SRWLOCK TwMutex;
typedef CONDITION_VARIABLE TwCondition;
typedef HANDLE TwThread;
#define TW_MUTEX_INIT SRWLOCK_INIT
#define TW_CONDITION_INIT CONDITION_VARIABLE_INIT
#elif TW_HAS_THREADS
#include <pthread.h>
typedef pthread_mutex_t TwMutex;
typedef pthread_cond_t TwCondition;
typedef pthread_t TwThread;
#define TW_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#define TW_CONDITION_INIT PTHREAD_COND_INITIALIZER
#else
typedef int TwMutex;
typedef int TwCondition;
typedef int TwThread;
#define TW_MUTEX_INIT 0
#define TW_CONDITION_INIT 0
#endif

#define TW_ALIGNMENT 64

void tw_mutex_init(TwMutex* mutex);
void tw_mutex_lock(TwMutex* mutex);
void tw_mutex_unlock(TwMutex* mutex);
void tw_condition_init(TwCondition* condition);
void tw_condition_wait(TwCondition* condition, TwMutex* mutex);
void tw_condition_signal(TwCondition* condition);
void tw_condition_broadcast(TwCondition* condition);

/* False when the system refuses another thread. */
bool tw_thread_start(TwThread* thread, void (*body)(void*), void* argument);
void tw_thread_join(TwThread thread);
void tw_yield(void);

/* Tells the core that this is a spinning loop. */
static inline void tw_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__arm__) && __ARM_ARCH >= 7)
  __asm__ volatile("yield" ::: "memory");
#endif
}

/* Runs `release` with the thread's value when a thread that called `tw_at_thread_exit` ends. */
void tw_at_thread_exit(void (*release)(void*), void* value);

/* Keeps this library mapped for the rest of the process: its threads would otherwise run unmapped code. */
void tw_pin_library(void);

/* Calls the handlers around fork(), where the system has it. Any of them may be NULL. */
void tw_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

uint64_t tw_now_nanoseconds(void);

/* NULL when there is no memory or the size overflows. */
void* tw_aligned_alloc(uint64_t num_bytes);
void tw_aligned_free(void* pointer);

/* Address of a symbol of the whole process, or NULL. */
void* tw_process_symbol(const char* name);

/* An environment variable; NULL where it is not set, or where the system has none. */
const char* tw_environment(const char* name);

/* A shared library, which is never unloaded; NULL where the system refuses it, and `tw_open_problem` says why. */
void* tw_open_library(const char* path);
const char* tw_open_problem(void);
void* tw_find_symbol(void* library, const char* name);

#endif
