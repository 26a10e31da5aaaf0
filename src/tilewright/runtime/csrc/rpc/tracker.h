/* How a server keeps itself known to a tracker, without waiting for anything: docs/rpc-protocol.md, 4. */
#ifndef TILEWRIGHT_RPC_TRACKER_H_
#define TILEWRIGHT_RPC_TRACKER_H_

#include "channel.h"

#define MOST_LABEL 200
#define MATCH_BYTES (MOST_LABEL + 1 + 32 + 1)

typedef enum { TRACKER_LOST, TRACKER_CONNECTS, TRACKER_PREAMBLE, TRACKER_HANDSHAKE, TRACKER_OPEN } TrackerStage;

typedef struct {
  char host[256];
  const char *port, *label;
  const char* own_host; /* where clients find this server; empty: wherever the tracker sees it */
  uint32_t own_port;
  const uint8_t* key; /* NULL: none */
  char match[MATCH_BYTES]; /* empty: the device is in use */
  /* the rest is its own */
  TrackerStage stage;
  Channel* channel;
  NoiseInitiator initiator;
  uint64_t next;        /* when to connect again, or to ask whether the device was given away */
  uint64_t given_since; /* 0: it was not */
  uint32_t pause;       /* seconds before the next try to connect */
  bool has_asked, is_outdated; /* WAITING is not answered; it is about an earlier match key */
  uint8_t frame[2048];
  size_t frame_size;
} Tracker;

/* Reads HOST:PORT; -1 with a message on the error stream. */
int tracker_parse(Tracker* tracker, const char* address);

/* Offers the device under a new match key. */
void tracker_offer(Tracker* tracker);

/* The device is in use. */
void tracker_withdraw(Tracker* tracker);

/* What to wait for: a descriptor, or -1, and events of poll. */
int tracker_descriptor(const Tracker* tracker);
short tracker_events(const Tracker* tracker);

/* Goes on: `is_ready` if there were events. To be called at `next` at the latest. */
void tracker_advance(Tracker* tracker, bool is_ready);

#endif
