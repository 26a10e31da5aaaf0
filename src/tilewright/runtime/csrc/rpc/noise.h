/* Both sides of Noise_NNpsk0_25519_ChaChaPoly_SHA256, revision 34 of the Noise framework. */
#ifndef TILEWRIGHT_RPC_NOISE_H_
#define TILEWRIGHT_RPC_NOISE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chacha20_poly1305.h"
#include "sha256.h"
#include "x25519.h"

#define NOISE_MESSAGE_BYTES (X25519_BYTES + CIPHER_TAG_BYTES)
#define NOISE_KEY_BYTES 32

/* A key and the counter that is its nonce. */
typedef struct {
  uint8_t key[CIPHER_KEY_BYTES];
  uint64_t counter;
} NoiseCipher;

/* Both change `data` in place. False once the counter is used up or, for the second, for anything but what the other side
 * sealed next. */
bool noise_seal(NoiseCipher* cipher, const uint8_t* associated, size_t associated_size, uint8_t* data, size_t size,
                uint8_t tag[CIPHER_TAG_BYTES]);
bool noise_open(NoiseCipher* cipher, const uint8_t* associated, size_t associated_size, uint8_t* data, size_t size,
                const uint8_t tag[CIPHER_TAG_BYTES]);

/* Reads the initiator's message and makes the answer; false, before any Diffie-Hellman operation, if the initiator has
 * another key. `ephemeral` is the private key of this one handshake. */
bool noise_respond(const uint8_t key[NOISE_KEY_BYTES], const uint8_t* prologue, size_t prologue_size,
                   const uint8_t ephemeral[X25519_BYTES], const uint8_t message[NOISE_MESSAGE_BYTES],
                   uint8_t answer[NOISE_MESSAGE_BYTES], NoiseCipher* receives, NoiseCipher* sends);

/* The initiator's side: what is kept between its message and the answer. */
typedef struct {
  uint8_t hash[SHA256_BYTES], chaining_key[SHA256_BYTES], ephemeral[X25519_BYTES];
} NoiseInitiator;

/* Makes the first message. `ephemeral` is the private key of this one handshake. */
bool noise_initiate(NoiseInitiator* initiator, const uint8_t key[NOISE_KEY_BYTES], const uint8_t* prologue, size_t prologue_size,
                    const uint8_t ephemeral[X25519_BYTES], uint8_t message[NOISE_MESSAGE_BYTES]);

/* Reads the answer, which proves that the responder has the key; false if it has not. Wipes the initiator. */
bool noise_finish(NoiseInitiator* initiator, const uint8_t answer[NOISE_MESSAGE_BYTES], NoiseCipher* sends, NoiseCipher* receives);

#endif
