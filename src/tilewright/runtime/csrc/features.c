/* Which CPU features this machine has, under LLVM's names. */
#include <string.h>

#include "internal.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

/* Where a feature's bit is, and which registers the system must save for it to be usable. */
typedef enum { SAVE_NONE, SAVE_YMM, SAVE_ZMM, SAVE_TILES } Saved;
typedef struct {
  const char* name;
  uint32_t leaf, subleaf;
  uint8_t reg; /* 0 eax, 1 ebx, 2 ecx, 3 edx */
  uint8_t bit;
  Saved saved;
} Feature;

static const Feature features[] = {
    {"cmov", 1, 0, 3, 15, SAVE_NONE},
    {"cx8", 1, 0, 3, 8, SAVE_NONE},
    {"mmx", 1, 0, 3, 23, SAVE_NONE},
    {"fxsr", 1, 0, 3, 24, SAVE_NONE},
    {"sse", 1, 0, 3, 25, SAVE_NONE},
    {"sse2", 1, 0, 3, 26, SAVE_NONE},
    {"sse3", 1, 0, 2, 0, SAVE_NONE},
    {"pclmul", 1, 0, 2, 1, SAVE_NONE},
    {"ssse3", 1, 0, 2, 9, SAVE_NONE},
    {"fma", 1, 0, 2, 12, SAVE_YMM},
    {"cx16", 1, 0, 2, 13, SAVE_NONE},
    {"sse4.1", 1, 0, 2, 19, SAVE_NONE},
    {"sse4.2", 1, 0, 2, 20, SAVE_NONE},
    {"crc32", 1, 0, 2, 20, SAVE_NONE},
    {"movbe", 1, 0, 2, 22, SAVE_NONE},
    {"popcnt", 1, 0, 2, 23, SAVE_NONE},
    {"aes", 1, 0, 2, 25, SAVE_NONE},
    {"xsave", 1, 0, 2, 26, SAVE_NONE},
    {"avx", 1, 0, 2, 28, SAVE_YMM},
    {"f16c", 1, 0, 2, 29, SAVE_YMM},
    {"rdrnd", 1, 0, 2, 30, SAVE_NONE},
    {"fsgsbase", 7, 0, 1, 0, SAVE_NONE},
    {"bmi", 7, 0, 1, 3, SAVE_NONE},
    {"avx2", 7, 0, 1, 5, SAVE_YMM},
    {"bmi2", 7, 0, 1, 8, SAVE_NONE},
    {"avx512f", 7, 0, 1, 16, SAVE_ZMM},
    {"avx512dq", 7, 0, 1, 17, SAVE_ZMM},
    {"rdseed", 7, 0, 1, 18, SAVE_NONE},
    {"adx", 7, 0, 1, 19, SAVE_NONE},
    {"avx512ifma", 7, 0, 1, 21, SAVE_ZMM},
    {"clflushopt", 7, 0, 1, 23, SAVE_NONE},
    {"clwb", 7, 0, 1, 24, SAVE_NONE},
    {"avx512cd", 7, 0, 1, 28, SAVE_ZMM},
    {"sha", 7, 0, 1, 29, SAVE_NONE},
    {"avx512bw", 7, 0, 1, 30, SAVE_ZMM},
    {"avx512vl", 7, 0, 1, 31, SAVE_ZMM},
    {"avx512vbmi", 7, 0, 2, 1, SAVE_ZMM},
    {"waitpkg", 7, 0, 2, 5, SAVE_NONE},
    {"avx512vbmi2", 7, 0, 2, 6, SAVE_ZMM},
    {"gfni", 7, 0, 2, 8, SAVE_NONE},
    {"vaes", 7, 0, 2, 9, SAVE_YMM},
    {"vpclmulqdq", 7, 0, 2, 10, SAVE_YMM},
    {"avx512vnni", 7, 0, 2, 11, SAVE_ZMM},
    {"avx512bitalg", 7, 0, 2, 12, SAVE_ZMM},
    {"avx512vpopcntdq", 7, 0, 2, 14, SAVE_ZMM},
    {"rdpid", 7, 0, 2, 22, SAVE_NONE},
    {"cldemote", 7, 0, 2, 25, SAVE_NONE},
    {"movdiri", 7, 0, 2, 27, SAVE_NONE},
    {"movdir64b", 7, 0, 2, 28, SAVE_NONE},
    {"avx512vp2intersect", 7, 0, 3, 8, SAVE_ZMM},
    {"serialize", 7, 0, 3, 14, SAVE_NONE},
    {"amx-bf16", 7, 0, 3, 22, SAVE_TILES},
    {"avx512fp16", 7, 0, 3, 23, SAVE_ZMM},
    {"amx-tile", 7, 0, 3, 24, SAVE_TILES},
    {"amx-int8", 7, 0, 3, 25, SAVE_TILES},
    {"avxvnni", 7, 1, 0, 4, SAVE_YMM},
    {"avx512bf16", 7, 1, 0, 5, SAVE_ZMM},
    {"cmpccxadd", 7, 1, 0, 7, SAVE_NONE},
    {"amx-fp16", 7, 1, 0, 21, SAVE_TILES},
    {"avxifma", 7, 1, 0, 23, SAVE_YMM},
    {"avxvnniint8", 7, 1, 3, 4, SAVE_YMM},
    {"avxneconvert", 7, 1, 3, 5, SAVE_YMM},
    {"avxvnniint16", 7, 1, 3, 10, SAVE_YMM},
    {"xsaveopt", 13, 1, 0, 0, SAVE_NONE},
    {"xsavec", 13, 1, 0, 1, SAVE_NONE},
    {"xsaves", 13, 1, 0, 3, SAVE_NONE},
    {"sahf", 0x80000001u, 0, 2, 0, SAVE_NONE},
    {"lzcnt", 0x80000001u, 0, 2, 5, SAVE_NONE},
    {"sse4a", 0x80000001u, 0, 2, 6, SAVE_NONE},
    {"prfchw", 0x80000001u, 0, 2, 8, SAVE_NONE},
    {"xop", 0x80000001u, 0, 2, 11, SAVE_YMM},
    {"fma4", 0x80000001u, 0, 2, 16, SAVE_YMM},
    {"64bit", 0x80000001u, 0, 3, 29, SAVE_NONE},
};

static bool system_saves(Saved saved) {
  uint32_t eax, ebx, ecx, edx;
  if (saved == SAVE_NONE) return true;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx >> 27 & 1)) return false; /* OSXSAVE */
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  uint32_t needed = saved == SAVE_YMM ? 0x6 : saved == SAVE_ZMM ? 0xe6 : 0x60000;
  return (low & needed) == needed;
}

int32_t tilewright_cpu_has_feature(const char* name) {
  for (size_t i = 0; i < sizeof features / sizeof features[0]; ++i) {
    const Feature* feature = &features[i];
    if (strcmp(feature->name, name) != 0) continue;
    uint32_t registers[4];
    if (!__get_cpuid_count(feature->leaf, feature->subleaf, &registers[0], &registers[1], &registers[2], &registers[3])) return 0;
    return (registers[feature->reg] >> feature->bit & 1) && system_saves(feature->saved);
  }
  return -1;
}

#elif defined(__linux__) && (defined(__aarch64__) || defined(__arm__))
#include <sys/auxv.h>

/* Bits of AT_HWCAP (word 0) and AT_HWCAP2 (word 1), from the kernel's documented interface. */
typedef struct {
  const char* name;
  uint8_t word, bit;
} Feature;

static const Feature features[] = {
#if defined(__aarch64__)
    {"fp-armv8", 0, 0}, {"neon", 0, 1},  {"aes", 0, 3},     {"sha2", 0, 6},     {"crc", 0, 7},  {"lse", 0, 8},
    {"fullfp16", 0, 9}, {"rdm", 0, 12},  {"jsconv", 0, 13}, {"complxnum", 0, 14}, {"rcpc", 0, 15}, {"sha3", 0, 17},
    {"sm4", 0, 19},     {"dotprod", 0, 20}, {"sve", 0, 22}, {"fp16fml", 0, 23}, {"sve2", 1, 1}, {"i8mm", 1, 13},
    {"bf16", 1, 14},    {"sme", 1, 23},
#else
    {"vfp2", 0, 6},     {"neon", 0, 12}, {"vfp3", 0, 13},   {"vfp4", 0, 16},    {"aes", 1, 0},  {"sha2", 1, 3},
    {"crc", 1, 4},
#endif
};

int32_t tilewright_cpu_has_feature(const char* name) {
  unsigned long words[2] = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
  for (size_t i = 0; i < sizeof features / sizeof features[0]; ++i) {
    if (strcmp(features[i].name, name) == 0) return (int32_t)(words[features[i].word] >> features[i].bit & 1);
  }
  return -1;
}

#else
int32_t tilewright_cpu_has_feature(const char* name) {
  (void)name;
  return -1;
}
#endif
