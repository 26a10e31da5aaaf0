/* Lets a process see a processor without AVX-512 and AMX, for programs that have no switch for it.
 *
 * Preloaded (LD_PRELOAD), it asks Linux to fault on the CPUID instruction, and answers it in the signal's handler with
 * the bits of those features cleared. Threads take the setting over from the one that starts them; programs that the
 * process starts see the whole processor again: some, compilers among them, wait for the signal themselves.
 * Needs an x86-64 processor with CPUID faulting ("cpuid_fault" in /proc/cpuinfo); without, a line says so.
 * cpuid_patch.c is for the others.
 */
#define _GNU_SOURCE
#include "cpuid_limits.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SET_CPUID 0x1012

static struct sigaction before;

static void answer(int number, siginfo_t *information, void *raw)
{
    ucontext_t *context = raw;
    greg_t *registers = context->uc_mcontext.gregs;
    const uint8_t *code = (const uint8_t *)registers[REG_RIP];
    if (information->si_code != SI_KERNEL || code[0] != 0x0f || code[1] != 0xa2) {
        /* Another fault: the instruction runs again, into whoever waited for it before. */
        sigaction(number, &before, NULL);
        return;
    }
    syscall(SYS_arch_prctl, SET_CPUID, 1);
    answer_cpuid(registers);
    syscall(SYS_arch_prctl, SET_CPUID, 0);
}

__attribute__((constructor)) static void begin(void)
{
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, &before);
    unsetenv("LD_PRELOAD");
    if (syscall(SYS_arch_prctl, SET_CPUID, 0) != 0) {
        sigaction(SIGSEGV, &before, NULL);
        fprintf(stderr, "cpuid_fault: this processor does not fault on CPUID; AVX-512 stays visible\n");
    }
}
