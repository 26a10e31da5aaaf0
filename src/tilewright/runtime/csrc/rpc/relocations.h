/* The relocations of one kind of machine each, as they occur in position-independent code from LLVM. */
#ifndef TILEWRIGHT_RPC_RELOCATIONS_H_
#define TILEWRIGHT_RPC_RELOCATIONS_H_

#include <stdbool.h>
#include <stdint.h>

#if UINTPTR_MAX == UINT64_MAX
#define ELF_CLASS 2
#else
#define ELF_CLASS 1
#endif

#if defined(__x86_64__)
#define ELF_MACHINE 62
#define STUB_BYTES 16
#elif defined(__aarch64__)
#define ELF_MACHINE 183
#define STUB_BYTES 16
#elif defined(__arm__)
#define ELF_MACHINE 40
#define STUB_BYTES 8
#elif defined(__riscv)
#define ELF_MACHINE 243
#define STUB_BYTES 24
#else
#define ELF_MACHINE 0
#define STUB_BYTES 8
#endif

/* What the linker does for a relocation. */
typedef enum {
  NEEDS_NOTHING, /* a hint for linkers that shorten code */
  NEEDS_ADDRESS, /* the symbol's address */
  NEEDS_CALL,    /* the address of the symbol or, for one that is not in the objects, of a stub that jumps to it */
  NEEDS_SLOT,    /* the address of a slot that holds the symbol's address */
  NEEDS_PAIR,    /* the distance that the relocation at the symbol's address computed: the lower part of it */
  NOT_SUPPORTED
} Need;

Need relocation_need(uint32_t kind);

/* Bytes that a relocation changes. */
uint32_t relocation_width(uint32_t kind);

/* The addend that is in the code itself, for machines whose relocations have none. */
int64_t relocation_addend(uint32_t kind, const uint8_t* place);

/* Fills in a value at a place that will be run at `address`; false if it does not fit. `target` is where the symbol, its
 * stub or its slot is, with the addend added. */
bool relocation_apply(uint32_t kind, uint8_t* place, uintptr_t address, uintptr_t target);

/* A jump to any address, in STUB_BYTES. */
void write_stub(uint8_t* place, uintptr_t target);

#endif
