/* A reader of JSON for graphs: the whole text into a tree, once. Internal to the runtime. */
#ifndef TILEWRIGHT_JSON_H_
#define TILEWRIGHT_JSON_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } TwJsonKind;

typedef struct TwJson {
  TwJsonKind kind;
  const char* name;       /* the key, for a member of an object */
  const char* text;       /* a string's characters, zero-terminated, escapes resolved */
  double number;          /* a number's or boolean's value */
  struct TwJson* first;   /* an array's or object's members, in order */
  struct TwJson* next;    /* the next member of the same parent */
  int64_t count;          /* the number of members */
} TwJson;

typedef struct {
  TwJson* root;
  struct TwJsonBlock* blocks; /* all memory of the tree */
} TwJsonDocument;

/* False with the thread's error set for text that is not JSON, is nested too deeply or needs too much memory. */
bool tw_json_parse(const char* text, size_t size, TwJsonDocument* out);
void tw_json_free(TwJsonDocument* document);

/* A member of an object, or NULL; NULL for a value that is not an object. */
const TwJson* tw_json_member(const TwJson* object, const char* name);

/* True for a number without fraction in [0, most]. */
bool tw_json_integer(const TwJson* value, int64_t most, int64_t* out);

#endif
