/* Numbers modulo 2^255 - 19 are sixteen signed digits of 16 bits, in 64-bit integers that leave room for sums of products:
 * the same code for 32-bit and 64-bit machines, without a wider type. */
#include "x25519.h"

#include <string.h>

#include "sha256.h"

#define DIGITS 16
typedef int64_t Number[DIGITS];

/* Brings digits back to 16 bits; what leaves the top counts 38 = 2 * 19 at the bottom. */
static void carry(Number a) {
  for (int i = 0; i < DIGITS; ++i) {
    int64_t over = a[i] >> 16;
    a[i] -= over * 65536;
    a[(i + 1) % DIGITS] += i == DIGITS - 1 ? 38 * over : over;
  }
}

static void add(Number out, const Number a, const Number b) {
  for (int i = 0; i < DIGITS; ++i) out[i] = a[i] + b[i];
}

static void subtract(Number out, const Number a, const Number b) {
  for (int i = 0; i < DIGITS; ++i) out[i] = a[i] - b[i];
}

static void multiply(Number out, const Number a, const Number b) {
  int64_t product[2 * DIGITS] = {0};
  for (int i = 0; i < DIGITS; ++i) {
    for (int j = 0; j < DIGITS; ++j) product[i + j] += a[i] * b[j];
  }
  for (int i = 0; i < DIGITS; ++i) out[i] = product[i] + 38 * product[i + DIGITS];
  carry(out);
  carry(out);
}

/* Exchanges the numbers if `bit` is 1, without a branch. */
static void exchange(Number a, Number b, int64_t bit) {
  int64_t mask = -bit;
  for (int i = 0; i < DIGITS; ++i) {
    int64_t different = mask & (a[i] ^ b[i]);
    a[i] ^= different;
    b[i] ^= different;
  }
}

static void unpack(Number out, const uint8_t bytes[X25519_BYTES]) {
  for (int i = 0; i < DIGITS; ++i) out[i] = bytes[2 * i] | (int64_t)bytes[2 * i + 1] << 8;
  out[DIGITS - 1] &= 0x7fff;
}

static void pack(uint8_t bytes[X25519_BYTES], const Number number) {
  Number value, reduced;
  memcpy(value, number, sizeof value);
  for (int i = 0; i < 3; ++i) carry(value);
  for (int pass = 0; pass < 2; ++pass) { /* value - p, unless that is negative */
    reduced[0] = value[0] - 0xffed;
    for (int i = 1; i < DIGITS; ++i) {
      reduced[i] = value[i] - (i == DIGITS - 1 ? 0x7fff : 0xffff) - ((reduced[i - 1] >> 16) & 1);
      reduced[i - 1] &= 0xffff;
    }
    int64_t is_negative = (reduced[DIGITS - 1] >> 16) & 1;
    reduced[DIGITS - 1] &= 0xffff;
    exchange(value, reduced, 1 - is_negative);
  }
  for (int i = 0; i < DIGITS; ++i) {
    bytes[2 * i] = (uint8_t)value[i];
    bytes[2 * i + 1] = (uint8_t)(value[i] >> 8);
  }
}

/* a^(p - 2) */
static void invert(Number out, const Number a) {
  Number power;
  memcpy(power, a, sizeof power);
  for (int bit = 253; bit >= 0; --bit) {
    multiply(power, power, power);
    if (bit != 2 && bit != 4) multiply(power, power, a); /* the exponent's bits, which are no secret */
  }
  memcpy(out, power, sizeof power);
}

void x25519(uint8_t out[X25519_BYTES], const uint8_t scalar[X25519_BYTES], const uint8_t point[X25519_BYTES]) {
  static const Number a24 = {0xdb41, 1}; /* 121665 */
  uint8_t key[X25519_BYTES];
  Number x1, x2 = {1}, z2 = {0}, x3, z3 = {1}, a, b, c, d, e;
  memcpy(key, scalar, sizeof key);
  key[0] &= 248;
  key[31] = (key[31] & 127) | 64;
  unpack(x1, point);
  memcpy(x3, x1, sizeof x3);
  for (int bit = 254; bit >= 0; --bit) {
    int64_t chosen = key[bit / 8] >> bit % 8 & 1;
    exchange(x2, x3, chosen);
    exchange(z2, z3, chosen);
    add(a, x2, z2);
    subtract(b, x2, z2);
    add(c, x3, z3);
    subtract(d, x3, z3);
    multiply(d, d, a);
    multiply(c, c, b);
    add(e, d, c);
    subtract(z3, d, c);
    multiply(x3, e, e);
    multiply(z3, z3, z3);
    multiply(z3, z3, x1);
    multiply(a, a, a);
    multiply(b, b, b);
    multiply(x2, a, b);
    subtract(e, a, b);
    multiply(z2, e, a24);
    add(z2, z2, a);
    multiply(z2, z2, e);
    exchange(x2, x3, chosen);
    exchange(z2, z3, chosen);
  }
  invert(z2, z2);
  multiply(x2, x2, z2);
  pack(out, x2);
  wipe(key, sizeof key);
  wipe(x2, sizeof x2);
  wipe(z2, sizeof z2);
}

void x25519_public(uint8_t out[X25519_BYTES], const uint8_t scalar[X25519_BYTES]) {
  static const uint8_t base[X25519_BYTES] = {9};
  x25519(out, scalar, base);
}
