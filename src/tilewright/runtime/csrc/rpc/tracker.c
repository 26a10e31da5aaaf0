#define _GNU_SOURCE
#include "tracker.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "addresses.h"
#include "pending.h"
#include "serve.h"

#define SECOND ((uint64_t)1000000000)
#define CHECK_SECONDS 2
#define UNCLAIMED_SECONDS 10
#define CONNECT_SECONDS 10
#define LONGEST_PAUSE 30

enum { FRAME_REGISTER = 0x20, FRAME_WAITING = 0x21, VALUE_BOOL = 0x03 };

static const uint8_t plain_preamble[] = {'T', 'W', 'R', 'P', 'C', 1, 0, 0};
static const uint8_t encrypted_preamble[] = {'T', 'W', 'R', 'P', 'C', 1, 1, 0};

int tracker_parse(Tracker* tracker, const char* address) {
  const char* colon = strrchr(address, ':');
  const char* start = address;
  size_t size = colon != NULL ? (size_t)(colon - address) : 0;
  if (size >= 2 && start[0] == '[' && start[size - 1] == ']') {
    ++start;
    size -= 2;
  }
  if (size == 0 || size >= sizeof tracker->host || colon[1] == 0 || colon[1 + strspn(colon + 1, "0123456789")] != 0) {
    fprintf(stderr, "tw-rpc-server: --tracker %s is not of the form HOST:PORT\n", address);
    return -1;
  }
  memcpy(tracker->host, start, size);
  tracker->host[size] = 0;
  tracker->port = colon + 1;
  return 0;
}

int tracker_descriptor(const Tracker* tracker) { return tracker->stage == TRACKER_LOST ? -1 : tracker->channel->reads; }

short tracker_events(const Tracker* tracker) { return tracker->stage == TRACKER_CONNECTS ? POLLOUT : POLLIN; }

/* ---- the connection ---- */

static void lost(Tracker* tracker, const char* why) {
  if (tracker->pause == 0) tracker->pause = 1;
  fprintf(stderr, "tw-rpc-server: no connection to the tracker %s port %s: %s; next try in %u s\n", tracker->host, tracker->port, why, tracker->pause);
  if (tracker->channel != NULL) {
    if (tracker->channel->reads >= 0) close(tracker->channel->reads);
    wipe(tracker->channel, sizeof *tracker->channel);
    free(tracker->channel);
    tracker->channel = NULL;
  }
  tracker->stage = TRACKER_LOST;
  tracker->next = tw_now_nanoseconds() + tracker->pause * SECOND;
  tracker->pause = tracker->pause * 2 < LONGEST_PAUSE ? tracker->pause * 2 : LONGEST_PAUSE;
}

static void connect_to(Tracker* tracker) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
  if (getaddrinfo(tracker->host, tracker->port, &hints, &found) != 0) {
    lost(tracker, "there is no such host");
    return;
  }
  const char* why = NULL;
  int descriptor = -1, on = 1;
  if (tracker->key == NULL && !is_loopback(found->ai_addr)) {
    why = "it is on another machine, which needs a key: --key-file";
  } else {
    descriptor = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool connects = descriptor >= 0 && (connect(descriptor, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS);
    if (!connects) why = strerror(errno);
  }
  freeaddrinfo(found);
  if (why == NULL && (tracker->channel = malloc(sizeof *tracker->channel)) == NULL) why = "no memory";
  if (why != NULL) {
    if (descriptor >= 0) close(descriptor);
    lost(tracker, why);
    return;
  }
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  channel_begin(tracker->channel, descriptor, descriptor);
  tracker->stage = TRACKER_CONNECTS;
  tracker->next = tw_now_nanoseconds() + CONNECT_SECONDS * SECOND;
  tracker->frame_size = 0;
  tracker->has_asked = tracker->is_outdated = false;
}

/* Sends the preamble and, with a key, the first message of the handshake. */
static bool begin_channel(Tracker* tracker) {
  if (tracker->key == NULL) return channel_send_raw(tracker->channel, plain_preamble, sizeof plain_preamble);
  uint8_t first[8 + 2 + NOISE_MESSAGE_BYTES] = {0}, ephemeral[X25519_BYTES];
  memcpy(first, encrypted_preamble, 8);
  first[9] = NOISE_MESSAGE_BYTES;
  bool is_good = random_bytes(ephemeral, sizeof ephemeral) &&
                 noise_initiate(&tracker->initiator, tracker->key, encrypted_preamble, 8, ephemeral, first + 10);
  wipe(ephemeral, sizeof ephemeral);
  return is_good && channel_send_raw(tracker->channel, first, sizeof first);
}

/* ---- the offer ---- */

static bool send_request(Tracker* tracker, uint8_t type, Writer* head) {
  bool is_sent = !head->is_bad && send_frame(tracker->channel, type, head->data, head->size);
  writer_free(head);
  return is_sent;
}

static bool send_offer(Tracker* tracker) {
  if (tracker->match[0] == 0) return true;
  Writer head = {0};
  write_string(&head, tracker->label);
  write_string(&head, tracker->match);
  write_string(&head, tracker->own_host);
  write_number(&head, tracker->own_port, 4);
  return send_request(tracker, FRAME_REGISTER, &head);
}

void tracker_offer(Tracker* tracker) {
  static const char digits[] = "0123456789abcdef";
  uint8_t random[16];
  tracker_withdraw(tracker);
  if (!random_bytes(random, sizeof random)) return; /* without them there is no key that nobody guesses */
  int size = snprintf(tracker->match, sizeof tracker->match, "%s:", tracker->label);
  for (int i = 0; i < 16; ++i) {
    tracker->match[size++] = digits[random[i] >> 4];
    tracker->match[size++] = digits[random[i] & 15];
  }
  tracker->match[size] = 0;
  if (tracker->stage == TRACKER_OPEN && !send_offer(tracker)) lost(tracker, "it does not read");
}

void tracker_withdraw(Tracker* tracker) {
  tracker->match[0] = 0;
  tracker->given_since = 0;
  tracker->is_outdated = tracker->has_asked;
}

/* Asks whether the device was given to a client; of one that never comes the device is taken back. */
static bool check(Tracker* tracker) {
  tracker->next = tw_now_nanoseconds() + CHECK_SECONDS * SECOND;
  if (tracker->match[0] == 0 || tracker->has_asked) return true;
  Writer head = {0};
  write_string(&head, tracker->match);
  tracker->has_asked = true;
  tracker->is_outdated = false;
  return send_request(tracker, FRAME_WAITING, &head);
}

/* ---- what it says ---- */

static void told(Tracker* tracker, const uint8_t* head, size_t size) {
  if (size != 2 || head[0] != VALUE_BOOL) return; /* that it has the offer */
  bool concerns_this = !tracker->is_outdated;
  tracker->has_asked = tracker->is_outdated = false;
  if (!concerns_this) return;
  uint64_t now = tw_now_nanoseconds();
  if (head[1] != 0) {
    tracker->given_since = 0;
  } else if (tracker->given_since == 0) {
    tracker->given_since = now;
  } else if (now - tracker->given_since >= UNCLAIMED_SECONDS * SECOND) {
    tracker_offer(tracker);
  }
}

/* Handles each answer that has arrived; NULL, or why the connection ends. */
static const char* take_answers(Tracker* tracker) {
  for (;;) {
    int found = channel_fill(tracker->channel, tracker->frame, &tracker->frame_size, FRAME_HEADER);
    if (found > 0) {
      Reader reader = {tracker->frame + 4, tracker->frame + FRAME_HEADER, false};
      uint32_t head = read_u32(&reader);
      if (head > sizeof tracker->frame - FRAME_HEADER || read_u64(&reader) != 0) return "it sent what is not part of the protocol";
      found = channel_fill(tracker->channel, tracker->frame, &tracker->frame_size, FRAME_HEADER + head);
    }
    if (found == 0) return NULL;
    if (found < 0) return "data was changed on its way";
    if (tracker->frame[0] != FRAME_OK) return "it refuses this server";
    size_t size = tracker->frame_size - FRAME_HEADER;
    tracker->frame_size = 0;
    told(tracker, tracker->frame + FRAME_HEADER, size);
    if (tracker->stage != TRACKER_OPEN) return NULL; /* an offer could not be sent */
  }
}

/* The tracker's preamble and its part of the handshake; NULL, or why the connection ends. */
static const char* take_greeting(Tracker* tracker) {
  static const char* const refusals[] = {NULL, "it speaks another version of the protocol", "it requires a key: --key-file",
                                         "it has no key and cannot prove who it is", "it has too many connections"};
  Channel* channel = tracker->channel;
  const uint8_t* raw = channel->raw + channel->raw_at;
  if (tracker->stage == TRACKER_PREAMBLE) {
    if (channel->raw_end - channel->raw_at < 8) return NULL;
    if (memcmp(raw, plain_preamble, 6) != 0) return "what answers there is not a tracker";
    if (raw[7] != 0) return raw[7] < 5 ? refusals[raw[7]] : "it refuses the connection";
    channel->raw_at += 8;
    raw += 8;
    tracker->stage = tracker->key != NULL ? TRACKER_HANDSHAKE : TRACKER_OPEN;
  }
  if (tracker->stage == TRACKER_HANDSHAKE) {
    if (channel->raw_end - channel->raw_at < 2 + NOISE_MESSAGE_BYTES) return NULL;
    if (raw[0] != 0 || raw[1] != NOISE_MESSAGE_BYTES ||
        !noise_finish(&tracker->initiator, raw + 2, &channel->sends, &channel->receives)) {
      return "it has another key";
    }
    channel->raw_at += 2 + NOISE_MESSAGE_BYTES;
    channel->is_encrypted = true;
    tracker->stage = TRACKER_OPEN;
  }
  tracker->pause = 1;
  tracker->next = tw_now_nanoseconds() + CHECK_SECONDS * SECOND;
  return send_offer(tracker) ? NULL : "it does not read";
}

static const char* connected(Tracker* tracker) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(tracker->channel->reads, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return strerror(error);
  tracker->stage = TRACKER_PREAMBLE;
  return begin_channel(tracker) ? NULL : "the connection is lost";
}

static const char* receive(Tracker* tracker) {
  if (!channel_receive(tracker->channel)) {
    return tracker->stage == TRACKER_OPEN ? "it has closed the connection" : "it closed the connection: it has another key, or is ending";
  }
  if (tracker->stage != TRACKER_OPEN) {
    const char* why = take_greeting(tracker);
    if (why != NULL || tracker->stage != TRACKER_OPEN) return why;
  }
  return take_answers(tracker);
}

void tracker_advance(Tracker* tracker, bool is_ready) {
  const char* why = NULL;
  if (tracker->stage == TRACKER_CONNECTS && is_ready) {
    why = connected(tracker);
  } else if (tracker->stage != TRACKER_LOST && is_ready) {
    why = receive(tracker);
  }
  if (why == NULL && tw_now_nanoseconds() >= tracker->next) {
    if (tracker->stage == TRACKER_LOST) {
      connect_to(tracker);
    } else if (tracker->stage != TRACKER_OPEN) {
      why = "it does not answer";
    } else if (!check(tracker)) {
      why = "it does not read";
    }
  }
  if (why != NULL && tracker->stage != TRACKER_LOST) lost(tracker, why);
}
