#include "chacha20_poly1305.h"

#include <string.h>

#include "sha256.h"

static uint32_t load(const uint8_t* at) { return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24; }

static void store(uint8_t* at, uint32_t value) {
  for (int i = 0; i < 4; ++i) at[i] = (uint8_t)(value >> 8 * i);
}

/* ---- ChaCha20, four blocks side by side, which compilers turn into vectors ---- */

#define BLOCKS 4
typedef uint32_t Lanes[BLOCKS];

#define FOR_LANES for (int lane = 0; lane < BLOCKS; ++lane)

static void mix(Lanes a, const Lanes b, Lanes d, int by) {
  FOR_LANES {
    a[lane] += b[lane];
    uint32_t mixed = d[lane] ^ a[lane];
    d[lane] = mixed << by | mixed >> (32 - by);
  }
}

static void quarter_round(Lanes a, Lanes b, Lanes c, Lanes d) {
  mix(a, b, d, 16);
  mix(c, d, b, 12);
  mix(a, b, d, 8);
  mix(c, d, b, 7);
}

static void key_stream(const uint32_t input[16], uint8_t out[64 * BLOCKS]) {
  Lanes x[16];
  for (int i = 0; i < 16; ++i) FOR_LANES x[i][lane] = input[i] + (i == 12 ? (uint32_t)lane : 0);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 4; ++i) quarter_round(x[i], x[4 + i], x[8 + i], x[12 + i]);
    for (int i = 0; i < 4; ++i) quarter_round(x[i], x[4 + (i + 1) % 4], x[8 + (i + 2) % 4], x[12 + (i + 3) % 4]);
  }
  FOR_LANES {
    for (int i = 0; i < 16; ++i) store(out + 64 * lane + 4 * i, x[i][lane] + input[i] + (i == 12 ? (uint32_t)lane : 0));
  }
}

void chacha20_xor(const uint8_t key[CIPHER_KEY_BYTES], uint32_t counter, const uint8_t nonce[12], uint8_t* data, size_t size) {
  uint32_t input[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  uint8_t stream[64 * BLOCKS];
  for (int i = 0; i < 8; ++i) input[4 + i] = load(key + 4 * i);
  for (int i = 0; i < 3; ++i) input[13 + i] = load(nonce + 4 * i);
  input[12] = counter;
  while (size > 0) {
    size_t count = size < sizeof stream ? size : sizeof stream;
    key_stream(input, stream);
    for (size_t i = 0; i < count; ++i) data[i] ^= stream[i];
    data += count;
    size -= count;
    input[12] += BLOCKS;
  }
  wipe(input, sizeof input);
  wipe(stream, sizeof stream);
}

/* ---- Poly1305: numbers modulo 2^130 - 5 as five digits of 26 bits ---- */

#define DIGIT 0x3ffffffu

typedef struct {
  uint32_t r[5], h[5];
  uint8_t pad[16];
} Authenticator;

/* Five digits of 16 bytes, with a bit above them. */
static void add_digits(uint32_t h[5], const uint8_t block[16], uint32_t above) {
  h[0] += load(block) & DIGIT;
  h[1] += load(block + 3) >> 2 & DIGIT;
  h[2] += load(block + 6) >> 4 & DIGIT;
  h[3] += load(block + 9) >> 6 & DIGIT;
  h[4] += load(block + 12) >> 8 | above << 24;
}

static void begin(Authenticator* state, const uint8_t key[32]) {
  memset(state, 0, sizeof *state);
  state->r[0] = load(key) & 0x3ffffff;
  state->r[1] = load(key + 3) >> 2 & 0x3ffff03;
  state->r[2] = load(key + 6) >> 4 & 0x3ffc0ff;
  state->r[3] = load(key + 9) >> 6 & 0x3f03fff;
  state->r[4] = load(key + 12) >> 8 & 0x00fffff;
  memcpy(state->pad, key + 16, 16);
}

static void multiply(Authenticator* state) {
  const uint32_t* r = state->r;
  uint32_t* h = state->h;
  uint64_t sums[5];
  for (int i = 0; i < 5; ++i) {
    sums[i] = 0;
    for (int j = 0; j < 5; ++j) sums[i] += (uint64_t)h[j] * (j <= i ? r[i - j] : 5 * r[5 + i - j]);
  }
  uint64_t carry = 0;
  for (int i = 0; i < 5; ++i) {
    sums[i] += carry;
    h[i] = (uint32_t)sums[i] & DIGIT;
    carry = sums[i] >> 26;
  }
  uint64_t low = h[0] + carry * 5;
  h[0] = (uint32_t)low & DIGIT;
  h[1] += (uint32_t)(low >> 26);
}

/* Whole blocks, and the last one filled up with zeros if `is_padded`, as the cipher's parts are. */
static void absorb(Authenticator* state, const uint8_t* data, size_t size, int is_padded) {
  for (; size >= 16; data += 16, size -= 16) {
    add_digits(state->h, data, 1);
    multiply(state);
  }
  if (size > 0) {
    uint8_t block[16] = {0};
    memcpy(block, data, size);
    if (!is_padded) block[size] = 1;
    add_digits(state->h, block, is_padded ? 1 : 0);
    multiply(state);
  }
}

static void finish(Authenticator* state, uint8_t tag[CIPHER_TAG_BYTES]) {
  uint32_t* h = state->h;
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < 4; ++i) {
      h[i + 1] += h[i] >> 26;
      h[i] &= DIGIT;
    }
    h[0] += 5 * (h[4] >> 26);
    h[4] &= DIGIT;
  }
  /* h - p, which is the result unless it is negative */
  uint32_t reduced[5], carry = 5;
  for (int i = 0; i < 5; ++i) {
    carry += h[i];
    reduced[i] = carry & DIGIT;
    carry >>= 26;
  }
  uint32_t keep = carry - 1; /* all ones if h < p */
  for (int i = 0; i < 5; ++i) h[i] = (h[i] & keep) | (reduced[i] & ~keep);
  uint32_t words[4] = {h[0] | h[1] << 26, h[1] >> 6 | h[2] << 20, h[2] >> 12 | h[3] << 14, h[3] >> 18 | h[4] << 8};
  uint64_t sum = 0;
  for (int i = 0; i < 4; ++i) {
    sum += (uint64_t)words[i] + load(state->pad + 4 * i);
    store(tag + 4 * i, (uint32_t)sum);
    sum >>= 32;
  }
  wipe(state, sizeof *state);
}

void poly1305(const uint8_t key[32], const uint8_t* data, size_t size, uint8_t tag[CIPHER_TAG_BYTES]) {
  Authenticator state;
  begin(&state, key);
  absorb(&state, data, size, 0);
  finish(&state, tag);
}

/* ---- both ---- */

static void authenticate(const uint8_t key[CIPHER_KEY_BYTES], const uint8_t nonce[12], const uint8_t* associated, size_t associated_size,
                         const uint8_t* data, size_t size, uint8_t tag[CIPHER_TAG_BYTES]) {
  uint8_t one_time[64] = {0}, lengths[16];
  chacha20_xor(key, 0, nonce, one_time, sizeof one_time);
  Authenticator state;
  begin(&state, one_time);
  wipe(one_time, sizeof one_time);
  absorb(&state, associated, associated_size, 1);
  absorb(&state, data, size, 1);
  for (int i = 0; i < 8; ++i) {
    lengths[i] = (uint8_t)((uint64_t)associated_size >> 8 * i);
    lengths[8 + i] = (uint8_t)((uint64_t)size >> 8 * i);
  }
  absorb(&state, lengths, sizeof lengths, 1);
  finish(&state, tag);
}

void cipher_seal(const uint8_t key[CIPHER_KEY_BYTES], const uint8_t nonce[12], const uint8_t* associated, size_t associated_size,
                 uint8_t* data, size_t size, uint8_t tag[CIPHER_TAG_BYTES]) {
  chacha20_xor(key, 1, nonce, data, size);
  authenticate(key, nonce, associated, associated_size, data, size, tag);
}

int cipher_open(const uint8_t key[CIPHER_KEY_BYTES], const uint8_t nonce[12], const uint8_t* associated, size_t associated_size,
                uint8_t* data, size_t size, const uint8_t tag[CIPHER_TAG_BYTES]) {
  uint8_t expected[CIPHER_TAG_BYTES];
  authenticate(key, nonce, associated, associated_size, data, size, expected);
  if (!equal_in_constant_time(expected, tag, sizeof expected)) return 0;
  chacha20_xor(key, 1, nonce, data, size);
  return 1;
}
