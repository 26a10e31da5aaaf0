/* The cipher ChaCha20 with the authenticator Poly1305 (RFC 8439). */
#ifndef TILEWRIGHT_RPC_CHACHA20_POLY1305_H_
#define TILEWRIGHT_RPC_CHACHA20_POLY1305_H_

#include <stddef.h>
#include <stdint.h>

#define CIPHER_KEY_BYTES 32
#define CIPHER_TAG_BYTES 16

/* Encrypts `size` bytes in place and writes their tag. `nonce` is RFC 8439's, 12 bytes. */
void cipher_seal(const uint8_t key[CIPHER_KEY_BYTES], const uint8_t nonce[12], const uint8_t* associated, size_t associated_size,
                 uint8_t* data, size_t size, uint8_t tag[CIPHER_TAG_BYTES]);

/* The reverse; 0, with the data as it was, if the tag is not that of these bytes. */
int cipher_open(const uint8_t key[CIPHER_KEY_BYTES], const uint8_t nonce[12], const uint8_t* associated, size_t associated_size,
                uint8_t* data, size_t size, const uint8_t tag[CIPHER_TAG_BYTES]);

/* The parts, for tests. */
void chacha20_xor(const uint8_t key[CIPHER_KEY_BYTES], uint32_t counter, const uint8_t nonce[12], uint8_t* data, size_t size);
void poly1305(const uint8_t key[32], const uint8_t* data, size_t size, uint8_t tag[CIPHER_TAG_BYTES]);

#endif
