/* A connection before its session: preamble, handshake and first frame, without waiting for any of it. */
#ifndef TILEWRIGHT_RPC_PENDING_H_
#define TILEWRIGHT_RPC_PENDING_H_

#include "channel.h"

typedef struct {
  const uint8_t* key; /* NULL: none */
  const char* label;
  const char* match; /* what the tracker gives to clients, empty while the device is in use; NULL: there is no tracker */
  uint32_t most_seconds; /* of a session; 0: any number */
  uint64_t most_bulk;
} ServerRules;

typedef enum { STAGE_PREAMBLE, STAGE_HANDSHAKE, STAGE_OPEN } Stage;

typedef struct {
  Channel channel;
  Stage stage;
  uint64_t deadline; /* nanoseconds of the monotonic clock */
  bool is_local;     /* from this machine */
  bool is_full;      /* there is no room for another session */
  uint8_t preamble[8];
  uint8_t first[1536]; /* the first frame, as far as it has arrived */
  size_t first_size;
} Pending;

typedef enum { PENDING_WAITS, PENDING_REFUSED, PENDING_OPENED } Progress;

/* Goes on with what has arrived. When it is opened, `*seconds` is the limit of the session, 0 for none, and the answer was
 * sent. */
Progress pending_advance(Pending* pending, const ServerRules* rules, uint32_t* seconds);

/* Bytes that nobody can guess, from the system; false if it has none. */
bool random_bytes(uint8_t* out, size_t size);

#endif
