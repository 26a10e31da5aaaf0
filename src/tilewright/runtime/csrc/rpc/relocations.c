#include "relocations.h"

#include <string.h>

#if !defined(__x86_64__) /* where instructions are not changed in parts */
static uint32_t read32(const uint8_t* at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}
#endif

static void write32(uint8_t* at, uint32_t value) { memcpy(at, &value, sizeof value); }

#if UINTPTR_MAX == UINT64_MAX
static void write64(uint8_t* at, uint64_t value) { memcpy(at, &value, sizeof value); }
#endif

/* True if a distance is a signed number of so many bits. */
static bool fits(int64_t value, int bits) { return value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1); }

#if defined(__x86_64__)

enum { X86_64_64 = 1, X86_64_PC32 = 2, X86_64_PLT32 = 4, X86_64_GOTPCREL = 9, X86_64_PC64 = 24, X86_64_GOTPCRELX = 41, X86_64_REX_GOTPCRELX = 42 };

Need relocation_need(uint32_t kind) {
  switch (kind) {
    case 0:
      return NEEDS_NOTHING;
    case X86_64_64:
    case X86_64_PC32:
    case X86_64_PC64:
      return NEEDS_ADDRESS;
    case X86_64_PLT32:
      return NEEDS_CALL;
    case X86_64_GOTPCREL:
    case X86_64_GOTPCRELX:
    case X86_64_REX_GOTPCRELX:
      return NEEDS_SLOT;
    default:
      return NOT_SUPPORTED;
  }
}

uint32_t relocation_width(uint32_t kind) { return kind == X86_64_64 || kind == X86_64_PC64 ? 8 : 4; }

bool relocation_apply(uint32_t kind, uint8_t* place, uintptr_t address, uintptr_t target) {
  int64_t distance = (int64_t)(target - address);
  if (kind == X86_64_64) {
    write64(place, target);
  } else if (kind == X86_64_PC64) {
    write64(place, (uint64_t)distance);
  } else {
    write32(place, (uint32_t)distance);
    return fits(distance, 32);
  }
  return true;
}

void write_stub(uint8_t* place, uintptr_t target) {
  static const uint8_t jump[8] = {0xff, 0x25, 0x02, 0, 0, 0, 0x0f, 0x0b}; /* jmp *2(%rip), then the address */
  memcpy(place, jump, sizeof jump);
  write64(place + 8, target);
}

#elif defined(__aarch64__)

enum {
  A64_ABS64 = 257,
  A64_ABS32 = 258,
  A64_PREL64 = 260,
  A64_PREL32 = 261,
  A64_ADR_PAGE = 275,
  A64_ADR_PAGE_NC = 276,
  A64_ADD_LOW = 277,
  A64_LDST8_LOW = 278,
  A64_JUMP26 = 282,
  A64_CALL26 = 283,
  A64_LDST16_LOW = 284,
  A64_LDST32_LOW = 285,
  A64_LDST64_LOW = 286,
  A64_LDST128_LOW = 299,
  A64_ADR_SLOT_PAGE = 311,
  A64_LD64_SLOT_LOW = 312
};

Need relocation_need(uint32_t kind) {
  switch (kind) {
    case 0:
    case 256:
      return NEEDS_NOTHING;
    case A64_ABS64:
    case A64_ABS32:
    case A64_PREL64:
    case A64_PREL32:
    case A64_ADR_PAGE:
    case A64_ADR_PAGE_NC:
    case A64_ADD_LOW:
    case A64_LDST8_LOW:
    case A64_LDST16_LOW:
    case A64_LDST32_LOW:
    case A64_LDST64_LOW:
    case A64_LDST128_LOW:
      return NEEDS_ADDRESS;
    case A64_JUMP26:
    case A64_CALL26:
      return NEEDS_CALL;
    case A64_ADR_SLOT_PAGE:
    case A64_LD64_SLOT_LOW:
      return NEEDS_SLOT;
    default:
      return NOT_SUPPORTED;
  }
}

uint32_t relocation_width(uint32_t kind) { return kind == A64_ABS64 || kind == A64_PREL64 ? 8 : 4; }

/* The lower twelve bits of an address, in units of an access, in bits 10 to 21. */
static bool set_low(uint8_t* place, uintptr_t target, int unit) {
  uint32_t low = (uint32_t)target & 0xfff;
  write32(place, (read32(place) & ~(0xfffu << 10)) | (low >> unit) << 10);
  return (low & ((1u << unit) - 1)) == 0;
}

bool relocation_apply(uint32_t kind, uint8_t* place, uintptr_t address, uintptr_t target) {
  int64_t distance = (int64_t)(target - address);
  int64_t pages = (int64_t)((target & ~(uintptr_t)0xfff) - (address & ~(uintptr_t)0xfff)) >> 12;
  switch (kind) {
    case A64_ABS64:
      write64(place, target);
      return true;
    case A64_PREL64:
      write64(place, (uint64_t)distance);
      return true;
    case A64_ABS32:
      write32(place, (uint32_t)target);
      return target <= UINT32_MAX;
    case A64_PREL32:
      write32(place, (uint32_t)distance);
      return fits(distance, 32);
    case A64_ADR_PAGE:
    case A64_ADR_PAGE_NC:
    case A64_ADR_SLOT_PAGE:
      write32(place, (read32(place) & ~(3u << 29 | 0x7ffffu << 5)) | ((uint32_t)pages & 3) << 29 | ((uint32_t)(pages >> 2) & 0x7ffff) << 5);
      return fits(pages, 21);
    case A64_JUMP26:
    case A64_CALL26:
      write32(place, (read32(place) & ~0x3ffffffu) | ((uint32_t)(distance >> 2) & 0x3ffffff));
      return fits(distance, 28) && (distance & 3) == 0;
    case A64_ADD_LOW:
    case A64_LDST8_LOW:
      return set_low(place, target, 0);
    case A64_LDST16_LOW:
      return set_low(place, target, 1);
    case A64_LDST32_LOW:
      return set_low(place, target, 2);
    case A64_LDST64_LOW:
    case A64_LD64_SLOT_LOW:
      return set_low(place, target, 3);
    case A64_LDST128_LOW:
      return set_low(place, target, 4);
    default:
      return false;
  }
}

void write_stub(uint8_t* place, uintptr_t target) {
  write32(place, 0x58000050);     /* ldr x16, 8 bytes ahead */
  write32(place + 4, 0xd61f0200); /* br x16 */
  write64(place + 8, target);
}

#elif defined(__arm__)

enum {
  ARM_ABS32 = 2,
  ARM_REL32 = 3,
  ARM_CALL = 28,
  ARM_JUMP24 = 29,
  ARM_V4BX = 40,
  ARM_MOVW_ABS = 43,
  ARM_MOVT_ABS = 44,
  ARM_MOVW_PREL = 45,
  ARM_MOVT_PREL = 46,
  ARM_SLOT_PREL = 96
};

Need relocation_need(uint32_t kind) {
  switch (kind) {
    case 0:
    case ARM_V4BX:
      return NEEDS_NOTHING;
    case ARM_ABS32:
    case ARM_REL32:
    case ARM_MOVW_ABS:
    case ARM_MOVT_ABS:
    case ARM_MOVW_PREL:
    case ARM_MOVT_PREL:
      return NEEDS_ADDRESS;
    case ARM_CALL:
    case ARM_JUMP24:
      return NEEDS_CALL;
    case ARM_SLOT_PREL:
      return NEEDS_SLOT;
    default:
      return NOT_SUPPORTED;
  }
}

uint32_t relocation_width(uint32_t kind) {
  (void)kind;
  return 4;
}

int64_t relocation_addend(uint32_t kind, const uint8_t* place) {
  uint32_t code = read32(place);
  if (kind == ARM_CALL || kind == ARM_JUMP24) return (int32_t)(code << 8) >> 6;
  if (kind >= ARM_MOVW_ABS && kind <= ARM_MOVT_PREL) return (int16_t)((code >> 4 & 0xf000) | (code & 0xfff));
  return (int32_t)code;
}

bool relocation_apply(uint32_t kind, uint8_t* place, uintptr_t address, uintptr_t target) {
  int32_t distance = (int32_t)(target - address);
  uint32_t value = kind == ARM_ABS32 || kind == ARM_MOVW_ABS || kind == ARM_MOVT_ABS ? (uint32_t)target : (uint32_t)distance;
  switch (kind) {
    case ARM_ABS32:
    case ARM_REL32:
    case ARM_SLOT_PREL:
      write32(place, value);
      return true;
    case ARM_CALL:
    case ARM_JUMP24:
      write32(place, (read32(place) & 0xff000000) | ((uint32_t)(distance >> 2) & 0xffffff));
      return fits(distance, 26) && (target & 3) == 0; /* an odd address is Thumb code, which these do not switch to */
    case ARM_MOVT_ABS:
    case ARM_MOVT_PREL:
      value >>= 16;
      break;
    default:
      break;
  }
  write32(place, (read32(place) & 0xfff0f000) | (value & 0xf000) << 4 | (value & 0xfff));
  return true;
}

void write_stub(uint8_t* place, uintptr_t target) {
  write32(place, 0xe51ff004); /* ldr pc, the next word; switches to Thumb by itself */
  write32(place + 4, (uint32_t)target);
}

#elif defined(__riscv)

enum {
  RV_32 = 1,
  RV_64 = 2,
  RV_BRANCH = 16,
  RV_JAL = 17,
  RV_CALL = 18,
  RV_CALL_PLT = 19,
  RV_SLOT_HI20 = 20,
  RV_PCREL_HI20 = 23,
  RV_PCREL_LO12_I = 24,
  RV_PCREL_LO12_S = 25,
  RV_ADD8 = 33,
  RV_ADD64 = 36,
  RV_SUB8 = 37,
  RV_SUB64 = 40,
  RV_ALIGN = 43,
  RV_RVC_BRANCH = 44,
  RV_RVC_JUMP = 45,
  RV_RELAX = 51,
  RV_32_PCREL = 57
};

Need relocation_need(uint32_t kind) {
  switch (kind) {
    case 0:
    case RV_ALIGN: /* the most that alignment can need is filled with instructions that do nothing */
    case RV_RELAX:
      return NEEDS_NOTHING;
    case RV_CALL:
    case RV_CALL_PLT:
      return NEEDS_CALL;
    case RV_SLOT_HI20:
      return NEEDS_SLOT;
    case RV_PCREL_LO12_I:
    case RV_PCREL_LO12_S:
      return NEEDS_PAIR;
    case RV_32:
    case RV_64:
    case RV_BRANCH:
    case RV_JAL:
    case RV_PCREL_HI20:
    case RV_RVC_BRANCH:
    case RV_RVC_JUMP:
    case RV_32_PCREL:
      return NEEDS_ADDRESS;
    default:
      return kind >= RV_ADD8 && kind <= RV_SUB64 ? NEEDS_ADDRESS : NOT_SUPPORTED;
  }
}

uint32_t relocation_width(uint32_t kind) {
  if (kind == RV_64 || kind == RV_CALL || kind == RV_CALL_PLT) return 8;
  if (kind >= RV_ADD8 && kind <= RV_ADD64) return 1u << (kind - RV_ADD8);
  if (kind >= RV_SUB8 && kind <= RV_SUB64) return 1u << (kind - RV_SUB8);
  return kind == RV_RVC_BRANCH || kind == RV_RVC_JUMP ? 2 : 4;
}

/* Adds to a number of 1 to 8 bytes. */
static void add_to(uint8_t* place, uint32_t width, uint64_t value) {
  uint64_t sum = 0;
  memcpy(&sum, place, width); /* little-endian */
  sum += value;
  memcpy(place, &sum, width);
}

/* The upper twenty bits of a distance, rounded so that the lower twelve are a signed number. */
static void set_upper(uint8_t* place, int64_t distance) {
  write32(place, (read32(place) & 0xfff) | (uint32_t)((uint64_t)(distance + 0x800) & 0xfffff000));
}

static void set_lower_of_load(uint8_t* place, int64_t distance) { write32(place, (read32(place) & 0xfffff) | (uint32_t)distance << 20); }

static uint32_t bits(int64_t value, int from, int count, int to) {
  return (uint32_t)((uint64_t)value >> from & ((1u << count) - 1)) << to;
}

bool relocation_apply(uint32_t kind, uint8_t* place, uintptr_t address, uintptr_t target) {
  int64_t distance = (int64_t)(target - address);
  uint32_t code;
  if (kind >= RV_ADD8 && kind <= RV_ADD64) {
    add_to(place, relocation_width(kind), target);
    return true;
  }
  if (kind >= RV_SUB8 && kind <= RV_SUB64) {
    add_to(place, relocation_width(kind), 0 - (uint64_t)target);
    return true;
  }
  switch (kind) {
    case RV_32:
      write32(place, (uint32_t)target);
      return target <= UINT32_MAX;
    case RV_64:
      write64(place, target);
      return true;
    case RV_32_PCREL:
      write32(place, (uint32_t)distance);
      return fits(distance, 32);
    case RV_CALL:
    case RV_CALL_PLT:
      set_upper(place, distance);
      set_lower_of_load(place + 4, distance);
      return fits(distance + 0x800, 32);
    case RV_PCREL_HI20:
    case RV_SLOT_HI20:
      set_upper(place, distance);
      return fits(distance + 0x800, 32);
    /* Of a pair, the target is the distance that its first half computed. */
    case RV_PCREL_LO12_I:
      set_lower_of_load(place, (int64_t)target);
      return true;
    case RV_PCREL_LO12_S:
      write32(place, (read32(place) & 0x1fff07f) | bits((int64_t)target, 5, 7, 25) | bits((int64_t)target, 0, 5, 7));
      return true;
    case RV_JAL:
      code = bits(distance, 20, 1, 31) | bits(distance, 1, 10, 21) | bits(distance, 11, 1, 20) | bits(distance, 12, 8, 12);
      write32(place, (read32(place) & 0xfff) | code);
      return fits(distance, 21);
    case RV_BRANCH:
      code = bits(distance, 12, 1, 31) | bits(distance, 5, 6, 25) | bits(distance, 1, 4, 8) | bits(distance, 11, 1, 7);
      write32(place, (read32(place) & 0x1fff07f) | code);
      return fits(distance, 13);
    case RV_RVC_JUMP:
      code = bits(distance, 11, 1, 12) | bits(distance, 4, 1, 11) | bits(distance, 8, 2, 9) | bits(distance, 10, 1, 8) |
             bits(distance, 6, 1, 7) | bits(distance, 7, 1, 6) | bits(distance, 1, 3, 3) | bits(distance, 5, 1, 2);
      place[0] = (uint8_t)((place[0] & 0x03) | (code & 0xfc));
      place[1] = (uint8_t)((place[1] & 0xe0) | (code >> 8 & 0x1f));
      return fits(distance, 12);
    case RV_RVC_BRANCH:
      code = bits(distance, 8, 1, 12) | bits(distance, 3, 2, 10) | bits(distance, 6, 2, 5) | bits(distance, 1, 2, 3) | bits(distance, 5, 1, 2);
      place[0] = (uint8_t)((place[0] & 0x83) | (code & 0x7c));
      place[1] = (uint8_t)((place[1] & 0xe3) | (code >> 8 & 0x1c));
      return fits(distance, 9);
    default:
      return false;
  }
}

void write_stub(uint8_t* place, uintptr_t target) {
  write32(place, 0x00000e17);      /* auipc t3, 0 */
  write32(place + 4, 0x010e3e03);  /* ld t3, 16(t3) */
  write32(place + 8, 0x000e0067);  /* jr t3 */
  write32(place + 12, 0x00000013); /* nop */
  write64(place + 16, target);
}

#else

Need relocation_need(uint32_t kind) {
  (void)kind;
  return NOT_SUPPORTED;
}

uint32_t relocation_width(uint32_t kind) {
  (void)kind;
  return 4;
}

bool relocation_apply(uint32_t kind, uint8_t* place, uintptr_t address, uintptr_t target) {
  (void)kind, (void)place, (void)address, (void)target;
  return false;
}

void write_stub(uint8_t* place, uintptr_t target) { (void)place, (void)target; }
#endif

#if !defined(__arm__)
int64_t relocation_addend(uint32_t kind, const uint8_t* place) {
  (void)kind, (void)place;
  return 0;
}
#endif
