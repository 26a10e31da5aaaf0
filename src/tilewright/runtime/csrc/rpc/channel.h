/* A connection as a stream of bytes in both directions, encrypted unless it is within one machine. */
#ifndef TILEWRIGHT_RPC_CHANNEL_H_
#define TILEWRIGHT_RPC_CHANNEL_H_

#include "noise.h"

#define MOST_RECORD 65535
#define MOST_PLAINTEXT (MOST_RECORD - CIPHER_TAG_BYTES)

typedef struct {
  int reads, writes; /* file descriptors, the same one for a socket */
  bool is_encrypted;
  bool is_broken; /* the other side is gone, or sent what it must not */
  NoiseCipher receives, sends;
  /* What has arrived: bytes [raw_at, raw_end) as they came, and of the record before them what is not read yet. */
  uint8_t raw[2 + MOST_RECORD];
  size_t raw_at, raw_end;
  uint8_t* plain;
  size_t plain_left;
  /* What is to be sent, behind room for the length of a record. */
  uint8_t out[2 + MOST_RECORD];
  size_t out_size;
} Channel;

void channel_begin(Channel* channel, int reads, int writes);

/* Exactly so many bytes; false once the channel is broken. NULL reads and drops them. */
bool channel_read(Channel* channel, void* to, uint64_t size);

/* Puts bytes into what is to be sent, and sends it as it fills up. False once the channel is broken. */
bool channel_write(Channel* channel, const void* from, uint64_t size);
bool channel_flush(Channel* channel);

/* Sends bytes as they are, before there are records. */
bool channel_send_raw(Channel* channel, const void* from, size_t size);

/* Takes the next record out of what has arrived, without waiting: 1 where there is one, 0 where more has to arrive, -1 for
 * one that is not valid. */
int channel_next_record(Channel* channel);

/* Adds what has arrived to a buffer until that has `needs` bytes, without waiting: 1 once it has, 0 where more has to arrive,
 * -1 for a record that is not valid. */
int channel_fill(Channel* channel, uint8_t* to, size_t* size, size_t needs);

/* Reads what is there without waiting; false at the end of the stream or for an error. */
bool channel_receive(Channel* channel);

#endif
