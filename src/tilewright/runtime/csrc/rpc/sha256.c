#include "sha256.h"

#include <string.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t value, int by) { return value >> by | value << (32 - by); }

static uint32_t load_big(const uint8_t* at) { return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]; }

static void store_big(uint8_t* at, uint32_t value) {
  for (int i = 0; i < 4; ++i) at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void add_block(uint32_t state[8], const uint8_t* block) {
  uint32_t schedule[64], v[8];
  for (int i = 0; i < 16; ++i) schedule[i] = load_big(block + 4 * i);
  for (int i = 16; i < 64; ++i) {
    uint32_t early = schedule[i - 15], late = schedule[i - 2];
    uint32_t s0 = rotate(early, 7) ^ rotate(early, 18) ^ early >> 3;
    uint32_t s1 = rotate(late, 17) ^ rotate(late, 19) ^ late >> 10;
    schedule[i] = schedule[i - 16] + s0 + schedule[i - 7] + s1;
  }
  memcpy(v, state, sizeof v);
  for (int i = 0; i < 64; ++i) {
    uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
    uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
    uint32_t first = v[7] + s1 + choice + constants[i] + schedule[i];
    uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
    uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    memmove(v + 1, v, 7 * sizeof v[0]);
    v[4] += first;
    v[0] = first + s0 + majority;
  }
  for (int i = 0; i < 8; ++i) state[i] += v[i];
}

void sha256_begin(Sha256* hash) {
  static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, start, sizeof start);
  hash->length = 0;
}

void sha256_add(Sha256* hash, const void* data, size_t size) {
  const uint8_t* at = data;
  while (size > 0) {
    size_t used = hash->length % SHA256_BLOCK, room = SHA256_BLOCK - used, count = size < room ? size : room;
    memcpy(hash->block + used, at, count);
    hash->length += count;
    at += count;
    size -= count;
    if (count == room) add_block(hash->state, hash->block);
  }
}

void sha256_end(Sha256* hash, uint8_t out[SHA256_BYTES]) {
  static const uint8_t padding[SHA256_BLOCK] = {0x80};
  uint64_t bits = hash->length * 8;
  sha256_add(hash, padding, 1 + (SHA256_BLOCK + 55 - hash->length % SHA256_BLOCK) % SHA256_BLOCK);
  uint8_t length[8];
  store_big(length, (uint32_t)(bits >> 32));
  store_big(length + 4, (uint32_t)bits);
  sha256_add(hash, length, sizeof length);
  for (int i = 0; i < 8; ++i) store_big(out + 4 * i, hash->state[i]);
  wipe(hash, sizeof *hash);
}

void hmac_sha256(const uint8_t* key, size_t key_size, const void* data, size_t size, uint8_t out[SHA256_BYTES]) {
  uint8_t block[SHA256_BLOCK] = {0};
  Sha256 hash;
  if (key_size > SHA256_BLOCK) {
    sha256_begin(&hash);
    sha256_add(&hash, key, key_size);
    sha256_end(&hash, block);
  } else {
    memcpy(block, key, key_size);
  }
  for (int i = 0; i < SHA256_BLOCK; ++i) block[i] ^= 0x36;
  sha256_begin(&hash);
  sha256_add(&hash, block, sizeof block);
  sha256_add(&hash, data, size);
  sha256_end(&hash, out);
  for (int i = 0; i < SHA256_BLOCK; ++i) block[i] ^= 0x36 ^ 0x5c;
  sha256_begin(&hash);
  sha256_add(&hash, block, sizeof block);
  sha256_add(&hash, out, SHA256_BYTES);
  sha256_end(&hash, out);
  wipe(block, sizeof block);
}

void noise_hkdf(const uint8_t chaining_key[SHA256_BYTES], const uint8_t* material, size_t size, int count, uint8_t* out) {
  uint8_t secret[SHA256_BYTES], last[SHA256_BYTES + 1];
  hmac_sha256(chaining_key, SHA256_BYTES, material, size, secret);
  for (int i = 0; i < count; ++i) {
    size_t before = i == 0 ? 0 : SHA256_BYTES;
    if (i > 0) memcpy(last, out + (i - 1) * SHA256_BYTES, SHA256_BYTES);
    last[before] = (uint8_t)(i + 1);
    hmac_sha256(secret, SHA256_BYTES, last, before + 1, out + i * SHA256_BYTES);
  }
  wipe(secret, sizeof secret);
  wipe(last, sizeof last);
}

int equal_in_constant_time(const uint8_t* a, const uint8_t* b, size_t size) {
  uint32_t difference = 0;
  for (size_t i = 0; i < size; ++i) difference |= (uint32_t)(a[i] ^ b[i]);
  return (int)((difference - 1) >> 31);
}

void wipe(void* memory, size_t size) {
  volatile uint8_t* at = memory;
  while (size-- > 0) *at++ = 0;
}
