/* What the machine offers this process: cores within the affinity mask and the control group, and CPU features. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

static int32_t positive_variable(const char* name) {
  const char* text = getenv(name);
  if (text == NULL) return 0;
  char* end;
  long value = strtol(text, &end, 10);
  return end != text && *end == 0 && value > 0 && value < 1 << 20 ? (int32_t)value : 0;
}

#if defined(__linux__)
/* The first line of a small system file; false when it cannot be read. */
static bool read_line(const char* path, char* line, int size) {
  FILE* file = fopen(path, "re");
  if (file == NULL) return false;
  bool read = fgets(line, size, file) != NULL;
  fclose(file);
  if (read) line[strcspn(line, "\n")] = 0;
  return read;
}

static long read_number(const char* path) {
  char line[64];
  return read_line(path, line, sizeof line) ? strtol(line, NULL, 10) : -1;
}

/* Whole CPUs that a quota allows; 0 for no limit. A part of a CPU counts as one. */
static int32_t cpus_of_quota(long quota, long period) {
  if (quota <= 0 || period <= 0) return 0;
  long cpus = (quota + period - 1) / period;
  return cpus > 1 << 20 ? 0 : (int32_t)cpus;
}

static int32_t tighter(int32_t a, int32_t b) { return a == 0 ? b : b == 0 ? a : a < b ? a : b; }

/* The limit of a control group of version 2 and of all groups above it. `group` is shortened on the way. */
static int32_t quota_version_2(char* group) {
  int32_t limit = 0;
  for (;;) {
    char path[4200], line[64];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", strcmp(group, "/") == 0 ? "" : group);
    long quota, period;
    if (read_line(path, line, sizeof line) && sscanf(line, "%ld %ld", &quota, &period) == 2) {
      limit = tighter(limit, cpus_of_quota(quota, period));
    }
    char* slash = strrchr(group, '/');
    if (slash == NULL || group[0] == 0) return limit;
    *slash = 0;
  }
}

static int32_t quota_version_1(const char* group) {
  const char* roots[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"};
  int32_t limit = 0;
  for (int i = 0; i < 2; ++i) {
    const char* groups[] = {"", group};
    for (int j = 0; j < 2; ++j) {
      char path[4200];
      snprintf(path, sizeof path, "%s%s/cpu.cfs_quota_us", roots[i], groups[j]);
      long quota = read_number(path);
      snprintf(path, sizeof path, "%s%s/cpu.cfs_period_us", roots[i], groups[j]);
      limit = tighter(limit, cpus_of_quota(quota, read_number(path)));
    }
  }
  return limit;
}

static int32_t control_group_limit(void) {
  FILE* file = fopen("/proc/self/cgroup", "re");
  if (file == NULL) return 0;
  char line[4096];
  int32_t limit = 0;
  while (fgets(line, sizeof line, file) != NULL) { /* hierarchy:controllers:path */
    line[strcspn(line, "\n")] = 0;
    char* controllers = strchr(line, ':');
    char* group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL) continue;
    *group++ = 0;
    controllers++;
    if (*controllers == 0) {
      limit = tighter(limit, quota_version_2(group));
    } else if (strcmp(controllers, "cpu") == 0 || strncmp(controllers, "cpu,", 4) == 0 || strstr(controllers, ",cpu") != NULL) {
      limit = tighter(limit, quota_version_1(group));
    }
  }
  fclose(file);
  return limit;
}

/* Cores among the allowed CPUs: of hardware threads that share a core, one is counted. */
static int32_t allowed_cores(void) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : (int32_t)online;
  }
  int32_t cores = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    char path[96], line[256];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    bool counted_before = false;
    if (read_line(path, line, sizeof line)) { /* such as 0,64 or 0-1 */
      for (char* at = line; *at != 0 && !counted_before;) {
        long first = strtol(at, &at, 10);
        long last = *at == '-' ? strtol(at + 1, &at, 10) : first;
        for (long sibling = first; sibling <= last && sibling < cpu; ++sibling) {
          counted_before |= sibling >= 0 && CPU_ISSET((int)sibling, &allowed);
        }
        if (*at != ',') break;
        ++at;
      }
    }
    cores += !counted_before;
  }
  return cores < 1 ? 1 : cores;
}

bool tw_restrict_to_speed_class(int32_t affinity_mode) {
  if (affinity_mode == 0) return true;
  cpu_set_t allowed, chosen;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  long best = -1;
  CPU_ZERO(&chosen);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq", cpu);
    long speed = read_number(path);
    if (speed < 0) return false; /* the system does not say: leave the mask as it is */
    bool better = best < 0 || (affinity_mode > 0 ? speed > best : speed < best);
    if (better) {
      best = speed;
      CPU_ZERO(&chosen);
    }
    if (speed == best) CPU_SET(cpu, &chosen);
  }
  return sched_setaffinity(0, sizeof chosen, &chosen) == 0;
}

int32_t tw_current_cpu(void) { return sched_getcpu(); }

int32_t tw_thread_number(void) { return (int32_t)syscall(SYS_gettid); }

TwCpus tw_keep_off_cpu(int32_t thread, int32_t cpu) {
  TwCpus before = {0};
  cpu_set_t allowed, others;
  _Static_assert(sizeof allowed <= sizeof before.bits, "a set of CPUs must fit");
  if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return before;
  others = allowed;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0) return before;
  memcpy(before.bits, &allowed, sizeof allowed);
  before.changed = sched_setaffinity(thread, sizeof others, &others) == 0;
  return before;
}

void tw_allow_cpus(const TwCpus* before) {
  cpu_set_t allowed;
  if (!before->changed) return;
  memcpy(&allowed, before->bits, sizeof allowed);
  sched_setaffinity(0, sizeof allowed, &allowed);
}

static int32_t machine_threads(void) { return tighter(allowed_cores(), control_group_limit()); }

#else
bool tw_restrict_to_speed_class(int32_t affinity_mode) { return affinity_mode == 0; }
int32_t tw_current_cpu(void) { return -1; }
int32_t tw_thread_number(void) { return 0; }
TwCpus tw_keep_off_cpu(int32_t thread, int32_t cpu) {
  (void)thread, (void)cpu;
  return (TwCpus){0};
}
void tw_allow_cpus(const TwCpus* before) { (void)before; }

static int32_t machine_threads(void) {
#if defined(_WIN32)
  DWORD_PTR allowed = 0, system = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &allowed, &system) && allowed != 0) {
    return (int32_t)__builtin_popcountll((unsigned long long)allowed);
  }
  return 1;
#elif defined(__APPLE__)
  int32_t cores = 1;
  size_t size = sizeof cores;
  /* The fast cores of Apple's chips; on Intel ones the name is unknown and all cores count. */
  if (sysctlbyname("hw.perflevel0.physicalcpu", &cores, &size, NULL, 0) != 0) {
    size = sizeof cores;
    sysctlbyname("hw.physicalcpu", &cores, &size, NULL, 0);
  }
  return cores;
#else
  return 1;
#endif
}
#endif

int32_t tw_default_num_threads(void) {
#if !TW_HAS_THREADS
  return 1;
#endif
  int32_t asked = positive_variable("TILEWRIGHT_NUM_THREADS");
  if (asked == 0) asked = positive_variable("TVM_NUM_THREADS");
  return asked != 0 ? asked : machine_threads();
}
