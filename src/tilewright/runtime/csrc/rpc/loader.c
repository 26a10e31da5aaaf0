#define _GNU_SOURCE
#include "loader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "relocations.h"

/* ---- the parts of an ELF object ---- */

#if ELF_CLASS == 2
typedef struct {
  uint8_t identity[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, program_headers, section_headers;
  uint32_t flags;
  uint16_t size, program_header_size, num_program_headers, section_header_size, num_sections, names;
} Header;

typedef struct {
  uint32_t name, type;
  uint64_t flags, address, offset, size;
  uint32_t link, info;
  uint64_t alignment, entry_size;
} SectionHeader;

typedef struct {
  uint32_t name;
  uint8_t info, other;
  uint16_t section;
  uint64_t value, size;
} Symbol;

typedef struct {
  uint64_t offset, info;
  int64_t addend;
} Relocation;
#define RELOCATION_SYMBOL(info) ((uint32_t)((info) >> 32))
#define RELOCATION_KIND(info) ((uint32_t)(info))
#else
typedef struct {
  uint8_t identity[16];
  uint16_t type, machine;
  uint32_t version, entry, program_headers, section_headers, flags;
  uint16_t size, program_header_size, num_program_headers, section_header_size, num_sections, names;
} Header;

typedef struct {
  uint32_t name, type, flags, address, offset, size, link, info, alignment, entry_size;
} SectionHeader;

typedef struct {
  uint32_t name, value, size;
  uint8_t info, other;
  uint16_t section;
} Symbol;

typedef struct {
  uint32_t offset, info;
  int32_t addend;
} Relocation;
#define RELOCATION_SYMBOL(info) ((info) >> 8)
#define RELOCATION_KIND(info) ((info)&0xff)
#endif

enum { SECTION_SYMBOLS = 2, SECTION_WITH_ADDENDS = 4, SECTION_ZEROS = 8, SECTION_WITHOUT_ADDENDS = 9, SECTION_ARM_UNWIND = 0x70000001 };
enum { FLAG_WRITTEN = 1, FLAG_LOADED = 2, FLAG_RUN = 4, FLAG_THREAD = 0x400 };
enum { FIRST_RESERVED_SECTION = 0xff00, BINDING_LOCAL = 0, BINDING_WEAK = 2 };

/* The parts of memory, each with its own protection. Stubs are with the code, slots with the data. */
enum { USE_CODE, USE_CONSTANT, USE_DATA, NUM_USES };

typedef struct {
  const char* name;
  uintptr_t address;
  bool is_weak;
} Defined;

/* A symbol that is called or read through something that the linker makes. */
typedef struct {
  uintptr_t target, place;
} Made;

struct LoadedObjects {
  Defined* symbols;
  size_t num_symbols;
  uint8_t* memory;
  char* names; /* of all symbols: the files are not kept */
};

typedef struct {
  const uint8_t* data;
  size_t size;
  const Header* header;
  const SectionHeader* sections;
  uint32_t num_sections;
  const Symbol* symbols;
  uint64_t num_symbols;
  const char* texts;
  uint64_t texts_size;
  size_t* places;   /* of each section in its part of memory */
  int8_t* uses;     /* of each section; -1: not loaded */
} Object;

typedef struct {
  Object* objects;
  int32_t count;
  size_t sizes[NUM_USES];
  uint8_t* bases[NUM_USES];
  Made *stubs, *slots;
  size_t num_stubs, num_slots, most_made;
  uint8_t *stub_memory, *slot_memory;
  LoadedObjects* loaded;
} Linking;

static int32_t bad(const char* why) { return tw_fail("ValueError", "the object code cannot be loaded: %s", why); }

static bool is_within(const Object* object, uint64_t offset, uint64_t size) {
  return offset <= object->size && size <= object->size - offset;
}

/* ---- reading ---- */

static const char* text_at(const char* texts, uint64_t size, uint64_t at) {
  return at < size && memchr(texts + at, 0, (size_t)(size - at)) != NULL ? texts + at : NULL;
}

static const char* symbol_name(const Object* object, const Symbol* symbol) {
  const char* name = text_at(object->texts, object->texts_size, symbol->name);
  return name != NULL ? name : "";
}

static bool is_skipped(const Object* object, const SectionHeader* section) {
  const SectionHeader* names = &object->sections[object->header->names];
  const char* name = text_at((const char*)object->data + names->offset, names->size, section->name);
  /* Tables for exceptions, of which there are none. */
  return !(section->flags & FLAG_LOADED) || section->type == SECTION_ARM_UNWIND || name == NULL || strncmp(name, ".eh_frame", 9) == 0 ||
         strncmp(name, ".ARM.", 5) == 0;
}

static int32_t read_object(Object* object, const ObjectFile* file) {
  object->data = file->data;
  object->size = file->size;
  object->header = (const Header*)(const void*)file->data;
  const Header* header = object->header;
  if (file->size < sizeof *header || memcmp(header->identity, "\177ELF", 4) != 0) return bad("it is not an ELF object");
  if (header->identity[4] != ELF_CLASS || header->identity[5] != 1 || header->machine != ELF_MACHINE) {
    return bad("it is code for another machine");
  }
  if (header->type != 1) return bad("it is not a relocatable object; export a .tar");
  object->num_sections = header->num_sections;
  if (header->section_header_size != sizeof(SectionHeader) || header->section_headers % sizeof(uintptr_t) != 0 || header->names >= header->num_sections ||
      !is_within(object, header->section_headers, (uint64_t)header->num_sections * sizeof(SectionHeader))) {
    return bad("its table of sections is damaged");
  }
  object->sections = (const SectionHeader*)(const void*)(file->data + header->section_headers);
  for (uint32_t i = 0; i < object->num_sections; ++i) {
    const SectionHeader* section = &object->sections[i];
    if (section->type != SECTION_ZEROS && !is_within(object, section->offset, section->size)) return bad("a section is damaged");
    if (section->alignment > 4096 || (section->alignment & (section->alignment - 1)) != 0) return bad("the alignment of a section is damaged");
  }
  if (object->sections[header->names].type == SECTION_ZEROS) return bad("its table of sections is damaged");
  for (uint32_t i = 0; i < object->num_sections; ++i) {
    const SectionHeader* section = &object->sections[i];
    if (section->type != SECTION_SYMBOLS) continue;
    if (object->symbols != NULL || section->offset % sizeof(uintptr_t) != 0 || section->link >= object->num_sections || section->entry_size != sizeof(Symbol)) {
      return bad("its table of symbols is damaged");
    }
    object->symbols = (const Symbol*)(const void*)(file->data + section->offset);
    object->num_symbols = section->size / sizeof(Symbol);
    object->texts = (const char*)file->data + object->sections[section->link].offset;
    object->texts_size = object->sections[section->link].type == SECTION_ZEROS ? 0 : object->sections[section->link].size;
  }
  object->places = calloc((size_t)object->num_sections + 1, sizeof *object->places);
  object->uses = calloc((size_t)object->num_sections + 1, sizeof *object->uses);
  return object->places != NULL && object->uses != NULL ? 0 : tw_fail("MemoryError", "no memory to load code");
}

/* ---- placing ---- */

#define MOST_MEMORY ((uint64_t)1 << 30)

static int32_t place_sections(Linking* linking) {
  for (int32_t i = 0; i < linking->count; ++i) {
    Object* object = &linking->objects[i];
    for (uint32_t j = 0; j < object->num_sections; ++j) {
      const SectionHeader* section = &object->sections[j];
      object->uses[j] = -1;
      if (is_skipped(object, section)) continue;
      if (section->flags & FLAG_THREAD || (section->type >= 14 && section->type <= 16)) return bad("it has variables of threads, or constructors");
      int use = section->flags & FLAG_RUN ? USE_CODE : section->flags & FLAG_WRITTEN ? USE_DATA : USE_CONSTANT;
      size_t alignment = section->alignment > 16 ? (size_t)section->alignment : 16;
      size_t at = (linking->sizes[use] + alignment - 1) & ~(alignment - 1);
      if (section->size > MOST_MEMORY || at + section->size > MOST_MEMORY) return bad("it is too large");
      object->uses[j] = (int8_t)use;
      object->places[j] = at;
      linking->sizes[use] = at + (size_t)section->size;
    }
  }
  return 0;
}

/* The most stubs and slots that the relocations can ask for. */
static int32_t count_made(Linking* linking) {
  for (int32_t i = 0; i < linking->count; ++i) linking->most_made += (size_t)linking->objects[i].num_symbols;
  linking->stubs = calloc(linking->most_made + 1, sizeof *linking->stubs);
  linking->slots = calloc(linking->most_made + 1, sizeof *linking->slots);
  return linking->stubs != NULL && linking->slots != NULL ? 0 : tw_fail("MemoryError", "no memory to load code");
}

static int32_t map_memory(Linking* linking) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), offsets[NUM_USES], total = 0;
  size_t stubs = (linking->sizes[USE_CODE] + 15) & ~(size_t)15, slots = (linking->sizes[USE_DATA] + 15) & ~(size_t)15;
  linking->sizes[USE_CODE] = stubs + linking->most_made * STUB_BYTES;
  linking->sizes[USE_DATA] = slots + linking->most_made * sizeof(uintptr_t);
  for (int use = 0; use < NUM_USES; ++use) {
    offsets[use] = total;
    linking->sizes[use] = (linking->sizes[use] + page - 1) / page * page;
    total += linking->sizes[use];
  }
  void* memory = mmap(NULL, total + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return tw_fail("MemoryError", "no memory to load code");
  linking->loaded->memory = memory;
  for (int use = 0; use < NUM_USES; ++use) linking->bases[use] = linking->loaded->memory + offsets[use];
  linking->stub_memory = linking->bases[USE_CODE] + stubs;
  linking->slot_memory = linking->bases[USE_DATA] + slots;
  for (int32_t i = 0; i < linking->count; ++i) {
    const Object* object = &linking->objects[i];
    for (uint32_t j = 0; j < object->num_sections; ++j) {
      const SectionHeader* section = &object->sections[j];
      if (object->uses[j] < 0 || section->type == SECTION_ZEROS || section->size == 0) continue;
      memcpy(linking->bases[object->uses[j]] + object->places[j], object->data + section->offset, (size_t)section->size);
    }
  }
  return 0;
}

/* ---- symbols ---- */

static bool is_defined(const Object* object, const Symbol* symbol) {
  return symbol->section != 0 && symbol->section < object->num_sections && object->uses[symbol->section] >= 0;
}

static uintptr_t address_in(const Linking* linking, const Object* object, const Symbol* symbol) {
  return (uintptr_t)(linking->bases[object->uses[symbol->section]] + object->places[symbol->section]) + (uintptr_t)symbol->value;
}

static int compare(const void* a, const void* b) {
  const Defined *left = a, *right = b;
  int order = strcmp(left->name, right->name);
  return order != 0 ? order : left->is_weak - right->is_weak; /* a strong one comes first, and is found */
}

static int32_t collect_symbols(Linking* linking) {
  LoadedObjects* loaded = linking->loaded;
  size_t bytes = 0, at = 0;
  for (int32_t i = 0; i < linking->count; ++i) bytes += (size_t)linking->objects[i].texts_size;
  loaded->symbols = calloc(linking->most_made + 1, sizeof *loaded->symbols);
  loaded->names = malloc(bytes + 1);
  if (loaded->symbols == NULL || loaded->names == NULL) return tw_fail("MemoryError", "no memory to load code");
  for (int32_t i = 0; i < linking->count; ++i) {
    const Object* object = &linking->objects[i];
    if (object->texts_size > 0) memcpy(loaded->names + at, object->texts, (size_t)object->texts_size);
    for (uint64_t j = 0; j < object->num_symbols; ++j) {
      const Symbol* symbol = &object->symbols[j];
      int binding = symbol->info >> 4;
      if (binding == BINDING_LOCAL || !is_defined(object, symbol)) continue;
      if (symbol->value > object->sections[symbol->section].size) return bad("a symbol is outside of its section");
      const char* name = text_at(object->texts, object->texts_size, symbol->name);
      if (name == NULL) return bad("a symbol has no name");
      loaded->symbols[loaded->num_symbols++] =
          (Defined){loaded->names + at + symbol->name, address_in(linking, object, symbol), binding == BINDING_WEAK};
    }
    at += (size_t)object->texts_size;
  }
  qsort(loaded->symbols, loaded->num_symbols, sizeof *loaded->symbols, compare);
  for (size_t i = 1; i < loaded->num_symbols; ++i) {
    const Defined *one = &loaded->symbols[i - 1], *next = &loaded->symbols[i];
    if (!one->is_weak && !next->is_weak && strcmp(one->name, next->name) == 0) {
      return tw_fail("ValueError", "the symbol %.200s is defined twice", one->name);
    }
  }
  return 0;
}

void* objects_symbol(const LoadedObjects* loaded, const char* name) {
  size_t low = 0, high = loaded->num_symbols;
  while (low < high) { /* the first one of the name */
    size_t middle = low + (high - low) / 2;
    if (strcmp(loaded->symbols[middle].name, name) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  bool is_there = low < loaded->num_symbols && strcmp(loaded->symbols[low].name, name) == 0;
  return is_there ? (void*)loaded->symbols[low].address : NULL;
}

/* The address of a symbol; `is_outside` for one of the server. */
static int32_t find_symbol(const Linking* linking, const Object* object, uint32_t index, uintptr_t* out, bool* is_outside) {
  if (index >= object->num_symbols) return bad("a relocation names no symbol");
  const Symbol* symbol = &object->symbols[index];
  *is_outside = false;
  if (index == 0) {
    *out = 0;
    return 0;
  }
  if (is_defined(object, symbol) && symbol->info >> 4 == BINDING_LOCAL) {
    if (symbol->value > object->sections[symbol->section].size) return bad("a symbol is outside of its section");
    *out = address_in(linking, object, symbol);
    return 0;
  }
  if (symbol->section >= FIRST_RESERVED_SECTION) return bad("a symbol is in no section");
  const char* name = symbol_name(object, symbol);
  void* address = objects_symbol(linking->loaded, name);
  if (address == NULL) {
    address = server_symbol(name);
    *is_outside = address != NULL;
  }
  *out = (uintptr_t)address;
  bool may_miss = symbol->info >> 4 == BINDING_WEAK;
  return address != NULL || may_miss ? 0 : tw_fail("OSError", "the code needs %.200s, which this server does not have", name);
}

/* A stub or a slot for a target: the same one for the same target. */
static uintptr_t made_for(Made* made, size_t* count, uint8_t* memory, size_t size, uintptr_t target) {
  for (size_t i = 0; i < *count; ++i) {
    if (made[i].target == target) return made[i].place;
  }
  uint8_t* place = memory + *count * size;
  if (size == sizeof(uintptr_t)) {
    memcpy(place, &target, sizeof target);
  } else {
    write_stub(place, target);
  }
  made[*count] = (Made){target, (uintptr_t)place};
  return made[(*count)++].place;
}

/* ---- relocating ---- */

typedef struct {
  const uint8_t* data;
  uint64_t count;
  size_t size; /* bytes of each */
} Relocations;

static Relocation relocation_at(const Relocations* table, uint64_t index) {
  Relocation found = {0};
  memcpy(&found, table->data + index * table->size, table->size);
  return found;
}

/* Where a relocation leads to, without its addend. */
static int32_t resolve(Linking* linking, const Object* object, const Relocation* relocation, uintptr_t* target) {
  bool is_outside;
  uint32_t kind = RELOCATION_KIND(relocation->info);
  if (find_symbol(linking, object, RELOCATION_SYMBOL(relocation->info), target, &is_outside) != 0) return -1;
  Need need = relocation_need(kind);
  bool needs_stub = need == NEEDS_CALL && is_outside;
  if ((needs_stub && linking->num_stubs == linking->most_made) || (need == NEEDS_SLOT && linking->num_slots == linking->most_made)) {
    return bad("it has more addresses than symbols");
  }
  if (needs_stub) *target = made_for(linking->stubs, &linking->num_stubs, linking->stub_memory, STUB_BYTES, *target);
  if (need == NEEDS_SLOT) *target = made_for(linking->slots, &linking->num_slots, linking->slot_memory, sizeof(uintptr_t), *target);
  return 0;
}

/* The distance that the first half of a pair computes: its relocation is at the address that the second half names. */
static int32_t resolve_pair(Linking* linking, const Object* object, const Relocations* table, uint64_t index, uint64_t offset, uintptr_t base,
                            uintptr_t* target) {
  for (uint64_t step = 1; step <= table->count; ++step) { /* it is most often just before */
    Relocation first = relocation_at(table, (index + table->count - step) % table->count);
    Need need = relocation_need(RELOCATION_KIND(first.info));
    if (first.offset != offset || need == NEEDS_NOTHING || need == NEEDS_PAIR) continue;
    if (resolve(linking, object, &first, target) != 0) return -1;
    *target += (uintptr_t)first.addend - (base + (uintptr_t)offset);
    return 0;
  }
  return bad("half of an address is missing");
}

static int32_t relocate_section(Linking* linking, const Object* object, const SectionHeader* table_header) {
  uint32_t section = table_header->info;
  if (section >= object->num_sections || object->uses[section] < 0 || object->sections[section].type == SECTION_ZEROS) return 0;
  bool has_addends = table_header->type == SECTION_WITH_ADDENDS;
  size_t size = has_addends ? sizeof(Relocation) : sizeof(Relocation) - sizeof(uintptr_t);
  Relocations table = {object->data + table_header->offset, table_header->size / size, size};
  uint8_t* base = linking->bases[object->uses[section]] + object->places[section];
  for (uint64_t i = 0; i < table.count; ++i) {
    Relocation relocation = relocation_at(&table, i);
    uint32_t kind = RELOCATION_KIND(relocation.info);
    Need need = relocation_need(kind);
    if (need == NEEDS_NOTHING) continue;
    if (need == NOT_SUPPORTED) return tw_fail("NotImplementedError", "the code needs relocation %u, which this server does not know", kind);
    uint64_t room = object->sections[section].size;
    if (relocation.offset > room || relocation_width(kind) > room - relocation.offset) return bad("a relocation is outside of its section");
    uint8_t* place = base + relocation.offset;
    uintptr_t target;
    if (need == NEEDS_PAIR) {
      uintptr_t symbol;
      bool is_outside;
      if (find_symbol(linking, object, RELOCATION_SYMBOL(relocation.info), &symbol, &is_outside) != 0) return -1;
      if (resolve_pair(linking, object, &table, i, symbol - (uintptr_t)base, (uintptr_t)base, &target) != 0) return -1;
    } else {
      if (resolve(linking, object, &relocation, &target) != 0) return -1;
      target += (uintptr_t)(has_addends ? (int64_t)relocation.addend : relocation_addend(kind, place));
    }
    if (!relocation_apply(kind, place, (uintptr_t)place, target)) return bad("an address is too far away");
  }
  return 0;
}

static int32_t relocate(Linking* linking) {
  for (int32_t i = 0; i < linking->count; ++i) {
    const Object* object = &linking->objects[i];
    for (uint32_t j = 0; j < object->num_sections; ++j) {
      const SectionHeader* section = &object->sections[j];
      bool is_table = section->type == SECTION_WITH_ADDENDS || section->type == SECTION_WITHOUT_ADDENDS;
      if (is_table && relocate_section(linking, object, section) != 0) return -1;
    }
  }
  return 0;
}

static int32_t protect(Linking* linking) {
  static const int protections[NUM_USES] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
  uint8_t* code = linking->bases[USE_CODE];
  __builtin___clear_cache((char*)code, (char*)code + linking->sizes[USE_CODE]);
  for (int use = 0; use < NUM_USES; ++use) {
    if (linking->sizes[use] > 0 && mprotect(linking->bases[use], linking->sizes[use], protections[use]) != 0) {
      return tw_fail("OSError", "the system does not allow code to be loaded");
    }
  }
  return 0;
}

LoadedObjects* objects_load(const ObjectFile* files, int32_t count) {
  Linking linking = {.count = count};
  linking.loaded = calloc(1, sizeof *linking.loaded);
  linking.objects = calloc((size_t)count + 1, sizeof *linking.objects);
  int32_t status = linking.loaded != NULL && linking.objects != NULL ? 0 : tw_fail("MemoryError", "no memory to load code");
  for (int32_t i = 0; status == 0 && i < count; ++i) status = read_object(&linking.objects[i], &files[i]);
  if (status == 0) status = place_sections(&linking);
  if (status == 0) status = count_made(&linking);
  if (status == 0) status = map_memory(&linking);
  if (status == 0) status = collect_symbols(&linking);
  if (status == 0) status = relocate(&linking);
  if (status == 0) status = protect(&linking);
  for (int32_t i = 0; linking.objects != NULL && i < count; ++i) {
    free(linking.objects[i].places);
    free(linking.objects[i].uses);
  }
  free(linking.objects);
  free(linking.stubs);
  free(linking.slots);
  if (status == 0) return linking.loaded;
  if (linking.loaded != NULL) {
    free(linking.loaded->symbols);
    free(linking.loaded->names);
  }
  free(linking.loaded);
  return NULL;
}
