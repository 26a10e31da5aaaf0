/* Lets a process see a processor without AVX-512 and AMX, for programs that have no switch for it.
 *
 * Preloaded (LD_PRELOAD), it asks Linux to fault on the CPUID instruction, and answers it in the signal's handler with
 * the bits of those features cleared. Threads take the setting over from the one that starts them; programs that the
 * process starts see the whole processor again: some, compilers among them, wait for the signal themselves.
 * Needs an x86-64 processor with CPUID faulting ("cpuid_fault" in /proc/cpuinfo); without, a line says so.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define SET_CPUID 0x1012

static struct sigaction before;

/* Leaf 7: AVX-512 F DQ IFMA PF ER CD BW VL | VBMI VBMI2 VNNI BITALG VPOPCNTDQ | 4VNNIW 4FMAPS VP2INTERSECT FP16, AMX. */
#define LEAF_7_EBX 0xdc230000u
#define LEAF_7_ECX 0x00005842u
#define LEAF_7_EDX 0x03c0010cu
/* Leaf 7, subleaf 1: AVX512_BF16, AMX_FP16. */
#define LEAF_7_1_EAX 0x00200020u
/* Leaf 13: the state components of AVX-512 (5 to 7) and AMX (17, 18), so that the operating system seems not to save them. */
#define LEAF_13_EAX 0x000600e0u

static void answer(int number, siginfo_t *information, void *raw)
{
    ucontext_t *context = raw;
    greg_t *registers = context->uc_mcontext.gregs;
    const uint8_t *code = (const uint8_t *)registers[REG_RIP];
    uint32_t leaf, part, a, b, c, d;
    if (information->si_code != SI_KERNEL || code[0] != 0x0f || code[1] != 0xa2) {
        /* Another fault: the instruction runs again, into whoever waited for it before. */
        sigaction(number, &before, NULL);
        return;
    }
    leaf = (uint32_t)registers[REG_RAX];
    part = (uint32_t)registers[REG_RCX];
    syscall(SYS_arch_prctl, SET_CPUID, 1);
    __cpuid_count(leaf, part, a, b, c, d);
    syscall(SYS_arch_prctl, SET_CPUID, 0);
    if (leaf == 7 && part == 0) {
        b &= ~LEAF_7_EBX;
        c &= ~LEAF_7_ECX;
        d &= ~LEAF_7_EDX;
    } else if (leaf == 7 && part == 1) {
        a &= ~LEAF_7_1_EAX;
    } else if (leaf == 13 && part == 0) {
        a &= ~LEAF_13_EAX;
    }
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void)
{
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, &before);
    unsetenv("LD_PRELOAD");
    if (syscall(SYS_arch_prctl, SET_CPUID, 0) != 0) {
        sigaction(SIGSEGV, &before, NULL);
        fprintf(stderr, "cpuid_avx2: this processor does not fault on CPUID; AVX-512 stays visible\n");
    }
}
