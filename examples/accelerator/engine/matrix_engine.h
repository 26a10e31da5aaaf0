/* A simulated int8 matrix engine: its memory, its commands, and the one function that runs a command stream.
 *
 * The engine sees host memory only through its DMA unit, as numbered buffers. It computes in a scratchpad of its own and
 * in a block of 16 x 16 accumulators. Whatever a command does outside of a buffer, of the scratchpad or of the
 * accumulators is a fault: the stream ends there, and the report says at which command.
 */
#ifndef MATRIX_ENGINE_H_
#define MATRIX_ENGINE_H_

#include <stdint.h>

#define MATRIX_ENGINE_SCRATCHPAD 32768 /* bytes */
#define MATRIX_ENGINE_SIDE 16          /* rows and columns of accumulators */
#define MATRIX_ENGINE_WORDS 12         /* of a command: the opcode, then its operands */
#define MATRIX_ENGINE_COMMANDS 65536   /* that its command memory holds */

/* The operands of each command, in order. Addresses are bytes of the scratchpad; strides are bytes from row to row. */
enum {
  MATRIX_ENGINE_END = 0,
  MATRIX_ENGINE_LOAD = 1,       /* buffer, offset, buffer stride, address, stride, rows, bytes a row */
  MATRIX_ENGINE_STORE = 2,      /* buffer, offset, buffer stride, address, stride, rows, bytes a row */
  MATRIX_ENGINE_FILL = 3,       /* value, address, stride, rows, bytes a row */
  MATRIX_ENGINE_START = 4,      /* address of one int32 a column that the accumulators start from, columns */
  MATRIX_ENGINE_MULTIPLY = 5,   /* address of A, stride, address of B, stride, rows, columns, depth, zero of A, zero of B */
  MATRIX_ENGINE_REQUANTIZE = 6  /* address of multipliers, of shifts, to, stride, rows, columns, zero, least, most, halves away */
};

enum {
  MATRIX_ENGINE_OK = 0,
  MATRIX_ENGINE_BAD_COMMAND = 1,
  MATRIX_ENGINE_BAD_BUFFER = 2,
  MATRIX_ENGINE_BAD_ADDRESS = 3,
  MATRIX_ENGINE_BAD_SIZE = 4,
  MATRIX_ENGINE_NO_END = 5
};

typedef struct {
  void* data;
  int64_t size;      /* bytes */
  int32_t is_output; /* the only ones that may be written */
} matrix_engine_buffer;

typedef struct {
  int32_t fault;   /* MATRIX_ENGINE_OK, or what was wrong */
  int32_t command; /* the number of the command that was run last */
  int64_t cycles;
} matrix_engine_report;

/* Runs a stream; returns the report's fault. `report` may be NULL. */
int32_t matrix_engine_run(const int32_t* commands, int32_t num_commands, const matrix_engine_buffer* buffers, int32_t num_buffers,
                          matrix_engine_report* report);

#endif
