/* One macro for the C tests: a failed check says where and ends the program with a failure. */
#ifndef CHECK_H_
#define CHECK_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      fprintf(stderr, "%s:%d: this does not hold: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)

#define CHECK_TEXT(actual, expected)                                                                    \
  do {                                                                                                  \
    const char* actual_text = (actual);                                                                 \
    if (actual_text == NULL || strcmp(actual_text, (expected)) != 0) {                                  \
      fprintf(stderr, "%s:%d: got \"%s\", expected \"%s\"\n", __FILE__, __LINE__,                       \
              actual_text == NULL ? "(null)" : actual_text, (expected));                                \
      exit(1);                                                                                          \
    }                                                                                                   \
  } while (0)

#endif
