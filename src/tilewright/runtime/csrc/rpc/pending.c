#define _GNU_SOURCE
#include "pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "serve.h"

enum { STATUS_ACCEPTED, STATUS_OTHER_PROTOCOL, STATUS_KEY_REQUIRED, STATUS_NO_KEY, STATUS_TOO_MANY };

bool random_bytes(uint8_t* out, size_t size) {
  while (size > 0) {
    long count = syscall(SYS_getrandom, out, size, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    out += count;
    size -= (size_t)count;
  }
  return true;
}

static size_t arrived(const Channel* channel) { return channel->raw_end - channel->raw_at; }

static void take(Channel* channel, uint8_t* out, size_t size) {
  memcpy(out, channel->raw + channel->raw_at, size);
  channel->raw_at += size;
}

static bool answer_preamble(Pending* pending, uint8_t status) {
  uint8_t answer[8];
  memcpy(answer, "TWRPC\1", 6);
  answer[6] = pending->preamble[6];
  answer[7] = status;
  return channel_send_raw(&pending->channel, answer, sizeof answer) && status == STATUS_ACCEPTED;
}

static bool take_preamble(Pending* pending, const ServerRules* rules) {
  take(&pending->channel, pending->preamble, sizeof pending->preamble);
  uint8_t mode = pending->preamble[6];
  uint8_t status = STATUS_ACCEPTED;
  if (memcmp(pending->preamble, "TWRPC\1", 6) != 0 || mode > 1 || pending->preamble[7] != 0) {
    status = STATUS_OTHER_PROTOCOL;
  } else if (mode == 0 && rules->key != NULL) {
    status = STATUS_KEY_REQUIRED;
  } else if (mode == 1 && rules->key == NULL) {
    status = STATUS_NO_KEY;
  } else if (pending->is_full) {
    status = STATUS_TOO_MANY;
  }
  if (mode == 0 && !pending->is_local) return false;
  pending->stage = mode == 1 ? STAGE_HANDSHAKE : STAGE_OPEN;
  return answer_preamble(pending, status);
}

static bool take_handshake(Pending* pending, const ServerRules* rules) {
  uint8_t message[2 + NOISE_MESSAGE_BYTES], answer[2 + NOISE_MESSAGE_BYTES] = {0, NOISE_MESSAGE_BYTES}, ephemeral[X25519_BYTES];
  Channel* channel = &pending->channel;
  take(channel, message, sizeof message);
  if (message[0] != 0 || message[1] != NOISE_MESSAGE_BYTES || !random_bytes(ephemeral, sizeof ephemeral)) return false;
  bool is_good = noise_respond(rules->key, pending->preamble, sizeof pending->preamble, ephemeral, message + 2, answer + 2,
                               &channel->receives, &channel->sends);
  wipe(ephemeral, sizeof ephemeral);
  if (!is_good || !channel_send_raw(channel, answer, sizeof answer)) return false;
  channel->is_encrypted = true;
  pending->stage = STAGE_OPEN;
  return true;
}

/* Bytes that the first frame needs in all; 0 for one that is not valid. */
static size_t frame_needs(const Pending* pending) {
  if (pending->first_size < FRAME_HEADER) return FRAME_HEADER;
  Reader reader = {pending->first, pending->first + FRAME_HEADER, false};
  uint32_t type = read_u32(&reader), head = read_u32(&reader);
  uint64_t bulk = read_u64(&reader);
  return type == FRAME_OPEN && bulk == 0 && head <= sizeof pending->first - FRAME_HEADER ? FRAME_HEADER + head : 0;
}

static void send_opened(Pending* pending, const ServerRules* rules, uint32_t seconds) {
  Writer writer = {0};
  write_string(&writer, "tilewright C server");
  write_string(&writer, rules->label);
  write_number(&writer, MOST_HEAD, 8);
  write_number(&writer, rules->most_bulk, 8);
  write_number(&writer, seconds, 4);
  send_frame(&pending->channel, FRAME_OK, writer.data, writer.size);
  writer_free(&writer);
}

/* True for the match key under which the tracker lends the device now. */
static bool is_match(const char* match, const char* label) {
  size_t size = strlen(match);
  return size > 0 && strlen(label) == size && equal_in_constant_time((const uint8_t*)match, (const uint8_t*)label, size);
}

/* True if the session may begin; otherwise the client was told why. */
static bool open_session(Pending* pending, const ServerRules* rules, uint32_t* seconds) {
  Reader reader = {pending->first + FRAME_HEADER, pending->first + pending->first_size, false};
  uint32_t version = read_u32(&reader);
  char* label = read_string(&reader);
  if (label == NULL) {
    send_error(&pending->channel);
    return false;
  }
  *seconds = read_u32(&reader);
  int32_t status = read_end(&reader);
  if (status == 0 && version != 1) status = tw_fail("ProtocolError", "version %u of the protocol; this server has version 1", version);
  if (status == 0 && rules->match != NULL && !is_match(rules->match, label)) {
    status = tw_fail("PermissionError", "this server is lent by its tracker: ask that for the device");
  } else if (status == 0 && rules->match == NULL && label[0] != 0 && strcmp(label, rules->label) != 0) {
    status = tw_fail("PermissionError", "this server is %s, not %.200s", rules->label[0] != 0 ? rules->label : "without a label", label);
  }
  free(label);
  if (status != 0) {
    send_error(&pending->channel);
    return false;
  }
  if (rules->most_seconds != 0 && (*seconds == 0 || *seconds > rules->most_seconds)) *seconds = rules->most_seconds;
  send_opened(pending, rules, *seconds);
  return !pending->channel.is_broken;
}

/* Takes bytes of the first frame out of what has arrived: 1 once it is complete, 0 to wait, -1 to refuse. */
static int take_first(Pending* pending) {
  for (;;) {
    size_t needs = frame_needs(pending);
    if (needs == 0) return -1;
    if (pending->first_size == needs) return needs > FRAME_HEADER ? 1 : -1;
    int found = channel_fill(&pending->channel, pending->first, &pending->first_size, needs);
    if (found <= 0) return found;
  }
}

Progress pending_advance(Pending* pending, const ServerRules* rules, uint32_t* seconds) {
  Channel* channel = &pending->channel;
  if (pending->stage == STAGE_PREAMBLE) {
    if (arrived(channel) < sizeof pending->preamble) return PENDING_WAITS;
    if (!take_preamble(pending, rules)) return PENDING_REFUSED;
  }
  if (pending->stage == STAGE_HANDSHAKE) {
    if (arrived(channel) < 2 + NOISE_MESSAGE_BYTES) return PENDING_WAITS;
    if (!take_handshake(pending, rules)) return PENDING_REFUSED;
  }
  int found = take_first(pending);
  if (found == 0) return PENDING_WAITS;
  return found > 0 && open_session(pending, rules, seconds) ? PENDING_OPENED : PENDING_REFUSED;
}
