#include "channel.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void channel_begin(Channel* channel, int reads, int writes) {
  memset(channel, 0, sizeof *channel);
  channel->reads = reads;
  channel->writes = writes;
}

static bool broken(Channel* channel) {
  channel->is_broken = true;
  return false;
}

/* Makes room at the end of what has arrived. */
static void move_to_front(Channel* channel) {
  size_t left = channel->raw_end - channel->raw_at;
  memmove(channel->raw, channel->raw + channel->raw_at, left);
  channel->raw_at = 0;
  channel->raw_end = left;
}

bool channel_receive(Channel* channel) {
  if (channel->plain_left == 0 && channel->raw_at > 0) move_to_front(channel);
  if (channel->raw_end == sizeof channel->raw) return true;
  ssize_t count;
  do {
    count = read(channel->reads, channel->raw + channel->raw_end, sizeof channel->raw - channel->raw_end);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
  if (count <= 0) return broken(channel);
  channel->raw_end += (size_t)count;
  return true;
}

int channel_next_record(Channel* channel) {
  size_t have = channel->raw_end - channel->raw_at;
  if (!channel->is_encrypted) {
    channel->plain = channel->raw + channel->raw_at;
    channel->plain_left = have;
    channel->raw_at = channel->raw_end;
    return have > 0;
  }
  if (have < 2) return 0;
  uint8_t* record = channel->raw + channel->raw_at + 2;
  size_t size = (size_t)record[-2] << 8 | record[-1];
  if (size <= CIPHER_TAG_BYTES) return -1;
  if (have < 2 + size) return 0;
  size -= CIPHER_TAG_BYTES;
  if (!noise_open(&channel->receives, NULL, 0, record, size, record + size)) return -1;
  channel->plain = record;
  channel->plain_left = size;
  channel->raw_at += 2 + size + CIPHER_TAG_BYTES;
  return 1;
}

int channel_fill(Channel* channel, uint8_t* to, size_t* size, size_t needs) {
  while (*size < needs) {
    if (channel->plain_left == 0) {
      int found = channel_next_record(channel);
      if (found <= 0) return found;
    }
    size_t missing = needs - *size, count = missing < channel->plain_left ? missing : channel->plain_left;
    memcpy(to + *size, channel->plain, count);
    *size += count;
    channel->plain += count;
    channel->plain_left -= count;
  }
  return 1;
}

bool channel_read(Channel* channel, void* to, uint64_t size) {
  uint8_t* target = to;
  while (size > 0) {
    if (channel->is_broken) return false;
    if (channel->plain_left == 0) {
      int found = channel_next_record(channel);
      if (found < 0) return broken(channel);
      if (found == 0 && !channel_receive(channel)) return false;
      continue;
    }
    size_t count = size < channel->plain_left ? (size_t)size : channel->plain_left;
    if (target != NULL) {
      memcpy(target, channel->plain, count);
      target += count;
    }
    channel->plain += count;
    channel->plain_left -= count;
    size -= count;
  }
  return true;
}

bool channel_send_raw(Channel* channel, const void* from, size_t size) {
  const uint8_t* at = from;
  while (size > 0) {
    ssize_t count = write(channel->writes, at, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return broken(channel);
    at += count;
    size -= (size_t)count;
  }
  return true;
}

bool channel_flush(Channel* channel) {
  if (channel->is_broken) return false;
  size_t size = channel->out_size;
  if (size == 0) return true;
  channel->out_size = 0;
  if (!channel->is_encrypted) return channel_send_raw(channel, channel->out + 2, size);
  if (!noise_seal(&channel->sends, NULL, 0, channel->out + 2, size, channel->out + 2 + size)) return broken(channel);
  size += CIPHER_TAG_BYTES;
  channel->out[0] = (uint8_t)(size >> 8);
  channel->out[1] = (uint8_t)size;
  return channel_send_raw(channel, channel->out, 2 + size);
}

bool channel_write(Channel* channel, const void* from, uint64_t size) {
  const uint8_t* at = from;
  while (size > 0) {
    size_t room = MOST_PLAINTEXT - channel->out_size, count = size < room ? (size_t)size : room;
    memcpy(channel->out + 2 + channel->out_size, at, count);
    channel->out_size += count;
    at += count;
    size -= count;
    if (channel->out_size == MOST_PLAINTEXT && !channel_flush(channel)) return false;
  }
  return !channel->is_broken;
}
