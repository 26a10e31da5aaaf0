/* The answer of the CPUID instruction on a processor with AVX2 and nothing beyond it: no AVX-512, no AMX, and none of
 * the later instructions on 256 bits that AVX-512 brought (AVX-VNNI, AVX-IFMA, AVX-NE-CONVERT and their kin).
 * With KEEP_AVX_VNNI, AVX-VNNI stays: the dot products of bytes that laptops of today have.
 */
#include <cpuid.h>
#include <stdint.h>
#include <ucontext.h>

/* Leaf 7: AVX-512 F DQ IFMA PF ER CD BW VL | VBMI VBMI2 VNNI BITALG VPOPCNTDQ | 4VNNIW 4FMAPS VP2INTERSECT FP16, AMX. */
#define LEAF_7_EBX 0xdc230000u
#define LEAF_7_ECX 0x00005842u
#define LEAF_7_EDX 0x03c0010cu
/* Leaf 7, subleaf 1: AVX_VNNI, AVX512_BF16, AMX_FP16, AVX_IFMA | AVX_VNNI_INT8, AVX_NE_CONVERT, AMX_COMPLEX,
 * AVX_VNNI_INT16, AVX10. */
#define LEAF_7_1_EAX 0x00a00030u
#define LEAF_7_1_EDX 0x00080530u
#define AVX_VNNI 0x00000010u
/* Leaf 13: the state components of AVX-512 (5 to 7) and AMX (17, 18), so that the operating system seems not to save them. */
#define LEAF_13_EAX 0x000600e0u

/* Answers the CPUID instruction of a signal's context, two bytes long, and moves on to the next one. */
static inline void answer_cpuid(greg_t *registers)
{
    uint32_t leaf = (uint32_t)registers[REG_RAX], part = (uint32_t)registers[REG_RCX], a, b, c, d;
    __cpuid_count(leaf, part, a, b, c, d);
    if (leaf == 7 && part == 0) {
        b &= ~LEAF_7_EBX;
        c &= ~LEAF_7_ECX;
        d &= ~LEAF_7_EDX;
    } else if (leaf == 7 && part == 1) {
#ifdef KEEP_AVX_VNNI
        a &= ~LEAF_7_1_EAX | AVX_VNNI;
#else
        a &= ~LEAF_7_1_EAX;
#endif
        d &= ~LEAF_7_1_EDX;
    } else if (leaf == 13 && part == 0) {
        a &= ~LEAF_13_EAX;
    }
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}
