/* Heads of frames: numbers, strings and values. See docs/rpc-protocol.md, 2. */
#ifndef TILEWRIGHT_RPC_VALUES_H_
#define TILEWRIGHT_RPC_VALUES_H_

#include "../internal.h"
#include "objects.h"

#define MOST_HEAD (1u << 20)
#define MOST_VALUES 4096
#define MOST_DEPTH 8
#define MOST_ARRAY_DIMENSIONS 32

/* The head of a request while it is read. After anything that is not there, `is_bad` is set and all reads give zeros. */
typedef struct {
  const uint8_t* at;
  const uint8_t* end;
  bool is_bad;
} Reader;

uint64_t read_number(Reader* reader, int bytes);
static inline uint8_t read_u8(Reader* reader) { return (uint8_t)read_number(reader, 1); }
static inline uint32_t read_u32(Reader* reader) { return (uint32_t)read_number(reader, 4); }
static inline int32_t read_i32(Reader* reader) { return (int32_t)read_u32(reader); }
static inline uint64_t read_u64(Reader* reader) { return read_number(reader, 8); }

/* A string, with a zero byte behind it, that the caller frees; NULL with an error set if it is cut short, not UTF-8, has a
 * zero byte in it, or there is no memory. */
char* read_string(Reader* reader);

/* 0 if everything was read and nothing was missing; otherwise the thread's error is set (ProtocolError). */
int32_t read_end(const Reader* reader);

/* The element type, the device and the shape of an array; 0, or -1 with an error. */
int32_t read_array_form(Reader* reader, DLDataType* dtype, DLDevice* device, int32_t* ndim, int64_t* shape);

/* The arguments of a call. Strings, byte strings and lists are owned by it. */
typedef struct {
  TVMFFIAny* values;
  int32_t count;
} Arguments;

/* `bulk` has the contents of byte strings, and outlives the arguments. */
int32_t read_arguments(Reader* reader, Objects* objects, const uint8_t* bulk, uint64_t bulk_size, Arguments* out);
void free_arguments(Arguments* arguments);

/* What is sent: a head that grows, and byte strings that follow it. */
typedef struct {
  uint8_t* data;
  size_t size, room;
  const TVMFFIAny* bytes[64]; /* values whose contents are the bulk, in order */
  int num_bytes;
  bool is_bad; /* out of memory, or too large */
} Writer;

void write_bytes(Writer* writer, const void* data, size_t size);
void write_number(Writer* writer, uint64_t value, int bytes);
void write_string(Writer* writer, const char* text);
void writer_free(Writer* writer);

/* A value, with a new handle for an object; -1 with an error for one that has no encoding. The value outlives the writer. */
int32_t write_value(Writer* writer, Objects* objects, const TVMFFIAny* value);

#endif
