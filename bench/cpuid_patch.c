/* Lets a process see a processor without AVX-512 and AMX where the processor cannot fault on CPUID: every AMD one.
 *
 * An audit library (LD_AUDIT): the dynamic linker calls la_objopen for the program and for each library once it is
 * mapped and before any of its code runs. There the CPUID instructions become UD2, which has two bytes as well, and the
 * handler of SIGILL answers them with the bits of those features cleared. Where the instructions are is found by
 * cpuid_sites.py, once for a file, and kept in FOLDER. What the dynamic linker itself found out before is out of reach:
 * by it the C library picks its memcpy and strlen. So is code that a program writes at run time. A program that handles
 * SIGILL itself, or has it blocked, ends at its next CPUID. Programs that the process starts see the whole processor
 * again.
 *
 * The library and its own C library are in a namespace of their own, which is not audited: CPUID is CPUID here.
 * Compiled with PYTHON, FINDER and FOLDER, as strings.
 */
#define _GNU_SOURCE
#include "cpuid_limits.h"
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_SITES 65536

static const uint8_t cpuid[2] = {0x0f, 0xa2}, trap[2] = {0x0f, 0x0b};

static struct sigaction before;
static uintptr_t sites[MOST_SITES];
static atomic_size_t count;

/* A library with its CPUID untouched would be measured with AVX-512 and look as if it had none: better no result. */
static void give_up(const char *path, const char *reason)
{
    fprintf(stderr, "cpuid_patch: %s: %s\n", path, reason);
    _exit(1);
}

static int is_site(uintptr_t address)
{
    size_t number = atomic_load_explicit(&count, memory_order_acquire);
    for (size_t i = 0; i < number; ++i) {
        if (sites[i] == address) return 1;
    }
    return 0;
}

static void answer(int number, siginfo_t *information, void *raw)
{
    ucontext_t *context = raw;
    greg_t *registers = context->uc_mcontext.gregs;
    if (information->si_code <= 0 || !is_site((uintptr_t)registers[REG_RIP])) {
        /* Another fault: the instruction runs again, into whoever waited for it before. */
        sigaction(number, &before, NULL);
        return;
    }
    answer_cpuid(registers);
}

static void patch(const char *path, uintptr_t address)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = address & -page;
    size_t size = ((address + 1) & -page) - first + page;
    size_t number = atomic_load_explicit(&count, memory_order_relaxed);
    if (number == MOST_SITES) give_up(path, "too many CPUID instructions");
    if (memcmp((const void *)address, cpuid, 2) != 0) give_up(path, "no CPUID instruction where one was found");
    if (mprotect((void *)first, size, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) give_up(path, "its code cannot be written");
    sites[number] = address;
    atomic_store_explicit(&count, number + 1, memory_order_release);
    memcpy((void *)address, trap, 2);
    mprotect((void *)first, size, PROT_READ | PROT_EXEC);
}

static int has_bytes(const char *path, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    void *content = file < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (content == MAP_FAILED) give_up(path, "cannot be read");
    int found = memmem(content, size, cpuid, 2) != NULL;
    munmap(content, size);
    close(file);
    return found;
}

/* The name of the list of a file: another one when the file has changed. */
static void name_list(char *list, size_t size, const char *path, const struct stat *file)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *letter = path; *letter; ++letter) hash = (hash ^ (uint8_t)*letter) * 0x100000001b3u;
    snprintf(list, size, "%s/%016llx-%llx-%llx.%lx", FOLDER, (unsigned long long)hash, (long long)file->st_size,
             (long long)file->st_mtim.tv_sec, file->st_mtim.tv_nsec);
}

/* The list of the places of CPUID in a file, which is made where it is missing; NULL if there are none. */
static FILE *open_list(const char *path)
{
    char list[PATH_MAX];
    struct stat file;
    pid_t finder;
    if (stat(path, &file) != 0) give_up(path, "cannot be read");
    name_list(list, sizeof list, path, &file);
    FILE *found = fopen(list, "re");
    if (found || !has_bytes(path, (size_t)file.st_size)) return found;
    char *arguments[] = {PYTHON, "-I", "-S", FINDER, (char *)path, list, NULL};
    if (posix_spawn(&finder, PYTHON, NULL, NULL, arguments, environ) != 0) give_up(path, "cannot start " PYTHON);
    waitpid(finder, NULL, 0);
    found = fopen(list, "re");
    if (!found) give_up(path, "its CPUID instructions were not found");
    return found;
}

unsigned la_version(unsigned version)
{
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGILL, &action, &before);
    /* In the place where the program's own C library finds its environment later. */
    unsetenv("LD_AUDIT");
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
    char path[PATH_MAX];
    unsigned long place;
    (void)namespace;
    (void)cookie;
    const char *name = map->l_name[0] ? map->l_name : "/proc/self/exe";
    /* The kernel's vDSO has a name without a folder, and no file. */
    if (!strchr(name, '/')) return 0;
    if (!realpath(name, path)) give_up(name, "cannot be found");
    FILE *list = open_list(path);
    if (!list) return 0;
    while (fscanf(list, "%lx", &place) == 1) patch(path, map->l_addr + place);
    fclose(list);
    return 0;
}
