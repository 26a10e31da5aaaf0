/* JSON into a tree. Every byte is checked against the end of the text; depth and memory are bounded. */
#include "json.h"

#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_DEPTH 64
#define BLOCK_BYTES 65536

typedef struct TwJsonBlock {
  struct TwJsonBlock* next;
  size_t used, size;
  _Alignas(16) char content[];
} Block;

typedef struct {
  const char* at;
  const char* end;
  const char* start;
  TwJsonDocument* document;
  const char* problem; /* what was wrong, once something was */
  bool out_of_memory;
} Reader;

static void* allocate(Reader* reader, size_t size) {
  size = (size + 15) / 16 * 16;
  Block* block = reader->document->blocks;
  if (block == NULL || block->size - block->used < size) {
    size_t wanted = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    block = malloc(sizeof *block + wanted);
    if (block == NULL) {
      reader->out_of_memory = true;
      return NULL;
    }
    *block = (Block){.next = reader->document->blocks, .used = 0, .size = wanted};
    reader->document->blocks = block;
  }
  void* found = block->content + block->used;
  block->used += size;
  return found;
}

static void skip_space(Reader* reader) {
  while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) != NULL && *reader->at != 0) ++reader->at;
}

static bool expect(Reader* reader, char character, const char* problem) {
  skip_space(reader);
  if (reader->at < reader->end && *reader->at == character) {
    ++reader->at;
    return true;
  }
  if (reader->problem == NULL) reader->problem = problem;
  return false;
}

static int hexadecimal(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  if (character >= 'A' && character <= 'F') return character - 'A' + 10;
  return -1;
}

/* Four hexadecimal digits after \u; -1 when they are not there. */
static int32_t code_unit(Reader* reader) {
  if (reader->end - reader->at < 4) return -1;
  int32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    int digit = hexadecimal(reader->at[i]);
    if (digit < 0) return -1;
    code = code * 16 + digit;
  }
  reader->at += 4;
  return code;
}

static char* write_utf8(char* out, int32_t code) {
  if (code < 0x80) {
    *out++ = (char)code;
  } else if (code < 0x800) {
    *out++ = (char)(0xc0 | code >> 6);
    *out++ = (char)(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    *out++ = (char)(0xe0 | code >> 12);
    *out++ = (char)(0x80 | (code >> 6 & 0x3f));
    *out++ = (char)(0x80 | (code & 0x3f));
  } else {
    *out++ = (char)(0xf0 | code >> 18);
    *out++ = (char)(0x80 | (code >> 12 & 0x3f));
    *out++ = (char)(0x80 | (code >> 6 & 0x3f));
    *out++ = (char)(0x80 | (code & 0x3f));
  }
  return out;
}

/* The character after a backslash, resolved; NULL for one that JSON does not have. */
static char* read_escape(Reader* reader, char* out) {
  static const char marks[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  if (reader->at == reader->end) return NULL;
  char mark = *reader->at++;
  const char* found = mark == 0 ? NULL : strchr(marks, mark);
  if (found != NULL) {
    *out++ = values[found - marks];
    return out;
  }
  if (mark != 'u') return NULL;
  int32_t code = code_unit(reader);
  if (code >= 0xd800 && code < 0xdc00 && reader->end - reader->at >= 2 && reader->at[0] == '\\' && reader->at[1] == 'u') {
    reader->at += 2;
    int32_t low = code_unit(reader);
    if (low < 0xdc00 || low > 0xdfff) return NULL;
    code = 0x10000 + (code - 0xd800) * 1024 + (low - 0xdc00);
  }
  return code <= 0 ? NULL : write_utf8(out, code); /* a zero would end the string early */
}

static const char* read_string(Reader* reader) {
  if (!expect(reader, '"', "a string was expected")) return NULL;
  const char* end = reader->at;
  while (end < reader->end && *end != '"') end += *end == '\\' ? 2 : 1;
  if (end >= reader->end) {
    reader->problem = "a string does not end";
    return NULL;
  }
  char* text = allocate(reader, (size_t)(end - reader->at) + 1); /* no escape is longer than what it stands for */
  if (text == NULL) return NULL;
  char* out = text;
  while (reader->at < end) {
    char character = *reader->at++;
    if (character == 0) {
      reader->problem = "a string has a zero byte";
      return NULL;
    }
    if (character != '\\') {
      *out++ = character;
      continue;
    }
    out = read_escape(reader, out);
    if (out == NULL) {
      reader->problem = "a string has an escape that JSON does not have";
      return NULL;
    }
  }
  *out = 0;
  reader->at = end + 1;
  return text;
}

static bool read_number(Reader* reader, TwJson* value) {
  char digits[64];
  size_t length = 0;
  while (reader->at < reader->end && length + 1 < sizeof digits && *reader->at != 0 &&
         strchr("+-.0123456789eE", *reader->at) != NULL) {
    digits[length++] = *reader->at++;
  }
  digits[length] = 0;
  char* end;
  value->kind = JSON_NUMBER;
  value->number = strtod(digits, &end);
  if (length > 0 && *end == 0) return true;
  reader->problem = "a value was expected";
  return false;
}

static bool read_word(Reader* reader, const char* word) {
  size_t length = strlen(word);
  if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0) return false;
  reader->at += length;
  return true;
}

static TwJson* read_value(Reader* reader, int depth);

static bool read_members(Reader* reader, TwJson* parent, int depth) {
  char closing = parent->kind == JSON_OBJECT ? '}' : ']';
  ++reader->at;
  skip_space(reader);
  if (reader->at < reader->end && *reader->at == closing) {
    ++reader->at;
    return true;
  }
  TwJson** last = &parent->first;
  for (;;) {
    const char* name = NULL;
    if (parent->kind == JSON_OBJECT) {
      name = read_string(reader);
      if (name == NULL || !expect(reader, ':', "a colon was expected")) return false;
    }
    TwJson* member = read_value(reader, depth + 1);
    if (member == NULL) return false;
    member->name = name;
    *last = member;
    last = &member->next;
    parent->count += 1;
    skip_space(reader);
    if (reader->at < reader->end && *reader->at == ',') {
      ++reader->at;
      continue;
    }
    return expect(reader, closing, "a comma or the end of a list was expected");
  }
}

static TwJson* read_value(Reader* reader, int depth) {
  if (depth > MOST_DEPTH) {
    reader->problem = "it is nested too deeply";
    return NULL;
  }
  skip_space(reader);
  TwJson* value = allocate(reader, sizeof *value);
  if (value == NULL) return NULL;
  *value = (TwJson){0};
  char first = reader->at < reader->end ? *reader->at : 0;
  if (first == '{' || first == '[') {
    value->kind = first == '{' ? JSON_OBJECT : JSON_ARRAY;
    return read_members(reader, value, depth) ? value : NULL;
  }
  if (first == '"') {
    value->kind = JSON_STRING;
    value->text = read_string(reader);
    return value->text != NULL ? value : NULL;
  }
  if (read_word(reader, "null")) return value;
  value->kind = JSON_BOOL;
  if (read_word(reader, "false")) return value;
  value->number = 1;
  if (read_word(reader, "true")) return value;
  return read_number(reader, value) ? value : NULL;
}

bool tw_json_parse(const char* text, size_t size, TwJsonDocument* out) {
  *out = (TwJsonDocument){0};
  Reader reader = {text, text + size, text, out, NULL, false};
  out->root = read_value(&reader, 0);
  skip_space(&reader);
  if (out->root != NULL && reader.at == reader.end) return true;
  if (reader.problem == NULL) reader.problem = "there is more after its end";
  if (reader.out_of_memory) {
    tw_fail("MemoryError", "no memory to read a text of %zu bytes", size);
  } else {
    tw_fail("ValueError", "the text is not JSON: %s, at byte %zu", reader.problem, (size_t)(reader.at - reader.start));
  }
  tw_json_free(out);
  return false;
}

void tw_json_free(TwJsonDocument* document) {
  while (document->blocks != NULL) {
    Block* block = document->blocks;
    document->blocks = block->next;
    free(block);
  }
  document->root = NULL;
}

const TwJson* tw_json_member(const TwJson* object, const char* name) {
  if (object == NULL || object->kind != JSON_OBJECT) return NULL;
  for (const TwJson* member = object->first; member != NULL; member = member->next) {
    if (strcmp(member->name, name) == 0) return member;
  }
  return NULL;
}

bool tw_json_integer(const TwJson* value, int64_t most, int64_t* out) {
  if (value == NULL || value->kind != JSON_NUMBER) return false;
  if (!(value->number >= 0 && value->number <= (double)most && value->number <= 9007199254740992.0)) return false;
  *out = (int64_t)value->number;
  return (double)*out == value->number;
}
