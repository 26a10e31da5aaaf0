/* What loaded code may call: the runtime, and what LLVM's code needs of a C library and of the compiler's own library. */
#include <math.h>
#include <string.h>

#include "loader.h"

#define RUNTIME(X)                                                                                                         \
  X(tilewright_any_release) X(tilewright_call_packed) X(tilewright_check_tensors) X(tilewright_object_release)             \
  X(tilewright_object_retain)                                                                                              \
  X(tilewright_parallel_launch) X(tilewright_register_system_symbol) X(tilewright_set_error)                               \
  X(tilewright_set_error_format) X(tilewright_workspace_alloc) X(tilewright_workspace_free)

#define C_LIBRARY(X) X(memcpy) X(memmove) X(memset) X(memcmp) X(strlen)

#define MATH(X)                                                                                                            \
  X(acos) X(acosf) X(acosh) X(acoshf) X(asin) X(asinf) X(asinh) X(asinhf) X(atan) X(atanf) X(atan2) X(atan2f) X(atanh)     \
  X(atanhf) X(ceil) X(ceilf) X(copysign) X(copysignf) X(cos) X(cosf) X(cosh) X(coshf) X(erf) X(erff) X(exp) X(expf)       \
  X(exp2) X(exp2f) X(fabs) X(fabsf) X(floor) X(floorf) X(fma) X(fmaf) X(fmax) X(fmaxf) X(fmin) X(fminf) X(fmod) X(fmodf)  \
  X(hypot) X(hypotf) X(ldexp) X(ldexpf) X(lgamma) X(lgammaf) X(log) X(logf) X(log10) X(log10f) X(log1p) X(log1pf)         \
  X(log2) X(log2f) X(lrint) X(lrintf) X(lround) X(lroundf) X(llrint) X(llrintf) X(llround) X(llroundf) X(nearbyint)       \
  X(nearbyintf) X(nextafter) X(nextafterf) X(pow) X(powf) X(rint) X(rintf) X(round) X(roundf) X(sin) X(sinf) X(sinh)      \
  X(sinhf) X(sqrt) X(sqrtf) X(tan) X(tanf) X(tanh) X(tanhf) X(tgamma) X(tgammaf) X(trunc) X(truncf)

/* Functions of the compiler's own library, which have no header: only their addresses are used. */
#define COMPILER(X) \
  X(__divti3) X(__udivti3) X(__modti3) X(__umodti3) X(__multi3)
#define COMPILER_HALF(X) X(__extendhfsf2) X(__truncsfhf2) X(__truncdfhf2)
#define COMPILER_ARM(X)                                                                                                                  \
  X(__aeabi_idiv) X(__aeabi_idivmod) X(__aeabi_uidiv) X(__aeabi_uidivmod) X(__aeabi_ldivmod) X(__aeabi_uldivmod) X(__aeabi_lmul)         \
  X(__aeabi_l2f) X(__aeabi_l2d) X(__aeabi_ul2f) X(__aeabi_ul2d) X(__aeabi_f2lz) X(__aeabi_d2lz) X(__aeabi_f2ulz) X(__aeabi_d2ulz)        \
  X(__aeabi_llsl) X(__aeabi_llsr) X(__aeabi_lasr) X(__aeabi_memcpy) X(__aeabi_memcpy4) X(__aeabi_memcpy8) X(__aeabi_memmove)             \
  X(__aeabi_memmove4) X(__aeabi_memmove8) X(__aeabi_memset) X(__aeabi_memset4) X(__aeabi_memset8) X(__aeabi_memclr) X(__aeabi_memclr4)   \
  X(__aeabi_memclr8) X(__aeabi_d2h)

#define DECLARE(name) extern char name##_of_the_compiler[] __asm__(#name);
#if UINTPTR_MAX == UINT64_MAX && !defined(TILEWRIGHT_FEW_SYMBOLS)
COMPILER(DECLARE)
#endif
#if !defined(TILEWRIGHT_FEW_SYMBOLS)
COMPILER_HALF(DECLARE)
#endif
#if defined(__arm__)
COMPILER_ARM(DECLARE)
#endif

typedef struct {
  const char* name;
  void* address;
} Entry;

void* server_symbol(const char* name) {
#define FUNCTION(name) {#name, (void*)(uintptr_t)name},
#define MADE(name) {#name, name##_of_the_compiler},
  static const Entry entries[] = {
      RUNTIME(FUNCTION) C_LIBRARY(FUNCTION) MATH(FUNCTION)
#if UINTPTR_MAX == UINT64_MAX && !defined(TILEWRIGHT_FEW_SYMBOLS)
      COMPILER(MADE)
#endif
#if !defined(TILEWRIGHT_FEW_SYMBOLS)
      COMPILER_HALF(MADE)
#endif
#if defined(__arm__)
      COMPILER_ARM(MADE)
#endif
  };
#if defined(__arm__) && !defined(TILEWRIGHT_FEW_SYMBOLS)
  /* ARM's names for two of them, which not every compiler's library has. */
  if (strcmp(name, "__aeabi_h2f") == 0 || strcmp(name, "__gnu_h2f_ieee") == 0) name = "__extendhfsf2";
  if (strcmp(name, "__aeabi_f2h") == 0 || strcmp(name, "__gnu_f2h_ieee") == 0) name = "__truncsfhf2";
#endif
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; ++i) {
    if (strcmp(entries[i].name, name) == 0) return entries[i].address;
  }
  return NULL;
}
