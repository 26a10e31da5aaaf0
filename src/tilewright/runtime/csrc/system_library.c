/* The system library: compiled functions linked into the program itself. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

typedef struct Symbol {
  struct Symbol* next;
  const char* name;
  void* address;
} Symbol;

static TwMutex lock = TW_MUTEX_INIT;
static Symbol* symbols;

int32_t tilewright_register_system_symbol(const char* name, void* address) {
  Symbol* symbol = malloc(sizeof *symbol);
  if (symbol == NULL) return tw_fail("MemoryError", "no memory to register the symbol %s", name);
  tw_mutex_lock(&lock);
  *symbol = (Symbol){symbols, name, address};
  symbols = symbol;
  tw_mutex_unlock(&lock);
  return 0;
}

void* tilewright_system_symbol(const char* name) {
  void* address = NULL;
  tw_mutex_lock(&lock);
  for (const Symbol* symbol = symbols; symbol != NULL && address == NULL; symbol = symbol->next) {
    if (strcmp(symbol->name, name) == 0) address = symbol->address;
  }
  tw_mutex_unlock(&lock);
  return address;
}
