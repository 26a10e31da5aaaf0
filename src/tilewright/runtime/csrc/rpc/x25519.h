/* Diffie-Hellman on Curve25519 (RFC 7748), in constant time. */
#ifndef TILEWRIGHT_RPC_X25519_H_
#define TILEWRIGHT_RPC_X25519_H_

#include <stdint.h>

#define X25519_BYTES 32

/* The shared secret of a private key and another side's public key. */
void x25519(uint8_t out[X25519_BYTES], const uint8_t scalar[X25519_BYTES], const uint8_t point[X25519_BYTES]);

/* The public key of a private one. */
void x25519_public(uint8_t out[X25519_BYTES], const uint8_t scalar[X25519_BYTES]);

#endif
