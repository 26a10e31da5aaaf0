#include "noise.h"

#include <string.h>

/* Noise's SymmetricState. */
typedef struct {
  uint8_t hash[SHA256_BYTES], chaining_key[SHA256_BYTES];
  NoiseCipher cipher;
} State;

static void nonce_of(uint64_t counter, uint8_t nonce[12]) {
  memset(nonce, 0, 4);
  for (int i = 0; i < 8; ++i) nonce[4 + i] = (uint8_t)(counter >> 8 * i);
}

bool noise_seal(NoiseCipher* cipher, const uint8_t* associated, size_t associated_size, uint8_t* data, size_t size,
                uint8_t tag[CIPHER_TAG_BYTES]) {
  uint8_t nonce[12];
  if (cipher->counter == UINT64_MAX) return false;
  nonce_of(cipher->counter++, nonce);
  cipher_seal(cipher->key, nonce, associated, associated_size, data, size, tag);
  return true;
}

bool noise_open(NoiseCipher* cipher, const uint8_t* associated, size_t associated_size, uint8_t* data, size_t size,
                const uint8_t tag[CIPHER_TAG_BYTES]) {
  uint8_t nonce[12];
  if (cipher->counter == UINT64_MAX) return false;
  nonce_of(cipher->counter++, nonce);
  return cipher_open(cipher->key, nonce, associated, associated_size, data, size, tag) != 0;
}

static void mix_hash(State* state, const uint8_t* data, size_t size) {
  Sha256 hash;
  sha256_begin(&hash);
  sha256_add(&hash, state->hash, sizeof state->hash);
  sha256_add(&hash, data, size);
  sha256_end(&hash, state->hash);
}

static void set_key(State* state, const uint8_t key[CIPHER_KEY_BYTES]) {
  memcpy(state->cipher.key, key, CIPHER_KEY_BYTES);
  state->cipher.counter = 0;
}

static void mix_key(State* state, const uint8_t* material, size_t size) {
  uint8_t made[2 * SHA256_BYTES];
  noise_hkdf(state->chaining_key, material, size, 2, made);
  memcpy(state->chaining_key, made, SHA256_BYTES);
  set_key(state, made + SHA256_BYTES);
  wipe(made, sizeof made);
}

static void mix_key_and_hash(State* state, const uint8_t* material, size_t size) {
  uint8_t made[3 * SHA256_BYTES];
  noise_hkdf(state->chaining_key, material, size, 3, made);
  memcpy(state->chaining_key, made, SHA256_BYTES);
  mix_hash(state, made + SHA256_BYTES, SHA256_BYTES);
  set_key(state, made + 2 * SHA256_BYTES);
  wipe(made, sizeof made);
}

/* The token e, in a pattern with a pre-shared key. */
static void mix_public(State* state, const uint8_t key[X25519_BYTES]) {
  mix_hash(state, key, X25519_BYTES);
  mix_key(state, key, X25519_BYTES);
}

static void begin(State* state, const uint8_t* prologue, size_t size) {
  static const char name[] = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
  Sha256 hash;
  memset(state, 0, sizeof *state);
  sha256_begin(&hash);
  sha256_add(&hash, name, sizeof name - 1); /* longer than a hash, so it is hashed */
  sha256_end(&hash, state->hash);
  memcpy(state->chaining_key, state->hash, SHA256_BYTES);
  mix_hash(state, prologue, size);
}

/* The token ee; false if the result is all zero. */
static bool mix_shared(State* state, const uint8_t ephemeral[X25519_BYTES], const uint8_t* other) {
  static const uint8_t zeros[X25519_BYTES] = {0};
  uint8_t shared[X25519_BYTES];
  x25519(shared, ephemeral, other);
  bool is_usable = !equal_in_constant_time(shared, zeros, sizeof shared);
  mix_key(state, shared, sizeof shared);
  wipe(shared, sizeof shared);
  return is_usable;
}

/* The empty payload of a message: its tag, made or checked. */
static bool seal_nothing(State* state, uint8_t tag[CIPHER_TAG_BYTES]) {
  if (!noise_seal(&state->cipher, state->hash, SHA256_BYTES, NULL, 0, tag)) return false;
  mix_hash(state, tag, CIPHER_TAG_BYTES);
  return true;
}

static bool open_nothing(State* state, const uint8_t tag[CIPHER_TAG_BYTES]) {
  if (!noise_open(&state->cipher, state->hash, SHA256_BYTES, NULL, 0, tag)) return false;
  mix_hash(state, tag, CIPHER_TAG_BYTES);
  return true;
}

/* Split(): the first cipher is for what the initiator sends. */
static void split(const State* state, NoiseCipher* of_initiator, NoiseCipher* of_responder) {
  uint8_t made[2 * SHA256_BYTES];
  noise_hkdf(state->chaining_key, NULL, 0, 2, made);
  memcpy(of_initiator->key, made, CIPHER_KEY_BYTES);
  memcpy(of_responder->key, made + SHA256_BYTES, CIPHER_KEY_BYTES);
  of_initiator->counter = of_responder->counter = 0;
  wipe(made, sizeof made);
}

/* <- e, ee */
static bool answer_message(State* state, const uint8_t ephemeral[X25519_BYTES], const uint8_t* other, uint8_t* answer) {
  x25519_public(answer, ephemeral);
  mix_public(state, answer);
  return mix_shared(state, ephemeral, other) && seal_nothing(state, answer + X25519_BYTES);
}

bool noise_respond(const uint8_t key[NOISE_KEY_BYTES], const uint8_t* prologue, size_t prologue_size,
                   const uint8_t ephemeral[X25519_BYTES], const uint8_t message[NOISE_MESSAGE_BYTES],
                   uint8_t answer[NOISE_MESSAGE_BYTES], NoiseCipher* receives, NoiseCipher* sends) {
  State state;
  begin(&state, prologue, prologue_size);
  mix_key_and_hash(&state, key, NOISE_KEY_BYTES);
  mix_public(&state, message);
  bool is_good = open_nothing(&state, message + X25519_BYTES) && answer_message(&state, ephemeral, message, answer);
  if (is_good) split(&state, receives, sends);
  wipe(&state, sizeof state);
  return is_good;
}

bool noise_initiate(NoiseInitiator* initiator, const uint8_t key[NOISE_KEY_BYTES], const uint8_t* prologue, size_t prologue_size,
                    const uint8_t ephemeral[X25519_BYTES], uint8_t message[NOISE_MESSAGE_BYTES]) {
  State state;
  begin(&state, prologue, prologue_size);
  mix_key_and_hash(&state, key, NOISE_KEY_BYTES);
  x25519_public(message, ephemeral);
  mix_public(&state, message);
  bool is_good = seal_nothing(&state, message + X25519_BYTES);
  memcpy(initiator->hash, state.hash, SHA256_BYTES);
  memcpy(initiator->chaining_key, state.chaining_key, SHA256_BYTES);
  memcpy(initiator->ephemeral, ephemeral, X25519_BYTES);
  wipe(&state, sizeof state);
  return is_good;
}

bool noise_finish(NoiseInitiator* initiator, const uint8_t answer[NOISE_MESSAGE_BYTES], NoiseCipher* sends, NoiseCipher* receives) {
  State state = {{0}, {0}, {{0}, 0}};
  memcpy(state.hash, initiator->hash, SHA256_BYTES);
  memcpy(state.chaining_key, initiator->chaining_key, SHA256_BYTES);
  mix_public(&state, answer);
  bool is_good = mix_shared(&state, initiator->ephemeral, answer) && open_nothing(&state, answer + X25519_BYTES);
  if (is_good) split(&state, sends, receives);
  wipe(&state, sizeof state);
  wipe(initiator, sizeof *initiator);
  return is_good;
}
