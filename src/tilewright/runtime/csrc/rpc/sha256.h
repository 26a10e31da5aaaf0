/* SHA-256 (FIPS 180-4), HMAC with it (RFC 2104), and Noise's HKDF over that. */
#ifndef TILEWRIGHT_RPC_SHA256_H_
#define TILEWRIGHT_RPC_SHA256_H_

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_BLOCK 64

typedef struct {
  uint32_t state[8];
  uint64_t length;
  uint8_t block[SHA256_BLOCK];
} Sha256;

void sha256_begin(Sha256* hash);
void sha256_add(Sha256* hash, const void* data, size_t size);
void sha256_end(Sha256* hash, uint8_t out[SHA256_BYTES]);

void hmac_sha256(const uint8_t* key, size_t key_size, const void* data, size_t size, uint8_t out[SHA256_BYTES]);

/* HKDF(chaining_key, material, count) of the Noise framework: `count` outputs, at most three, one after the other. */
void noise_hkdf(const uint8_t chaining_key[SHA256_BYTES], const uint8_t* material, size_t size, int count, uint8_t* out);

/* 1 if both are the same; the time it takes tells nothing about where they differ. */
int equal_in_constant_time(const uint8_t* a, const uint8_t* b, size_t size);

/* Zeros that the compiler does not leave out. */
void wipe(void* memory, size_t size);

#endif
