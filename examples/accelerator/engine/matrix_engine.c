/* The simulator of the matrix engine. On the chip, matrix_engine_run writes the stream's address to a register and waits. */
#include "matrix_engine.h"

#include <string.h>

typedef struct {
  int8_t scratchpad[MATRIX_ENGINE_SCRATCHPAD];
  int32_t accumulators[MATRIX_ENGINE_SIDE][MATRIX_ENGINE_SIDE];
  const matrix_engine_buffer* buffers;
  int32_t num_buffers;
  int64_t cycles;
} matrix_engine;

/* True if rows of so many bytes lie within memory of `size` bytes, and are not more than the scratchpad holds: rows may
 * overlap, and nothing else would bound the time that a command takes. */
static int matrix_engine_fits(int64_t start, int64_t stride, int64_t rows, int64_t bytes, int64_t size) {
  if (start < 0 || stride < 0 || rows < 1 || bytes < 1 || rows * bytes > MATRIX_ENGINE_SCRATCHPAD) return 0;
  return start + (rows - 1) * stride + bytes <= size;
}

static int32_t matrix_engine_int32(const matrix_engine* engine, int32_t address) {
  int32_t value;
  memcpy(&value, engine->scratchpad + address, sizeof value);
  return value;
}

/* Eight bytes a cycle, and eight cycles to set up. */
static int32_t matrix_engine_move(matrix_engine* engine, const int32_t* of, int is_store) {
  if (of[0] < 0 || of[0] >= engine->num_buffers) return MATRIX_ENGINE_BAD_BUFFER;
  const matrix_engine_buffer* buffer = &engine->buffers[of[0]];
  if (is_store && !buffer->is_output) return MATRIX_ENGINE_BAD_BUFFER;
  if (!matrix_engine_fits(of[1], of[2], of[5], of[6], buffer->size)) return MATRIX_ENGINE_BAD_BUFFER;
  if (!matrix_engine_fits(of[3], of[4], of[5], of[6], MATRIX_ENGINE_SCRATCHPAD)) return MATRIX_ENGINE_BAD_ADDRESS;
  for (int32_t row = 0; row < of[5]; ++row) {
    int8_t* outside = (int8_t*)buffer->data + of[1] + (int64_t)row * of[2];
    int8_t* inside = engine->scratchpad + of[3] + (int64_t)row * of[4];
    memcpy(is_store ? outside : inside, is_store ? inside : outside, (size_t)of[6]);
  }
  engine->cycles += 8 + (int64_t)of[5] * ((of[6] + 7) / 8);
  return MATRIX_ENGINE_OK;
}

static int32_t matrix_engine_fill(matrix_engine* engine, const int32_t* of) {
  if (!matrix_engine_fits(of[1], of[2], of[3], of[4], MATRIX_ENGINE_SCRATCHPAD)) return MATRIX_ENGINE_BAD_ADDRESS;
  for (int32_t row = 0; row < of[3]; ++row) memset(engine->scratchpad + of[1] + (int64_t)row * of[2], of[0], (size_t)of[4]);
  engine->cycles += 1 + (int64_t)of[3] * ((of[4] + 15) / 16);
  return MATRIX_ENGINE_OK;
}

static int32_t matrix_engine_start(matrix_engine* engine, const int32_t* of) {
  if (of[1] < 1 || of[1] > MATRIX_ENGINE_SIDE) return MATRIX_ENGINE_BAD_SIZE;
  if (!matrix_engine_fits(of[0], 0, 1, 4 * (int64_t)of[1], MATRIX_ENGINE_SCRATCHPAD)) return MATRIX_ENGINE_BAD_ADDRESS;
  for (int32_t row = 0; row < MATRIX_ENGINE_SIDE; ++row) {
    for (int32_t column = 0; column < of[1]; ++column) {
      engine->accumulators[row][column] = matrix_engine_int32(engine, of[0] + 4 * column);
    }
  }
  engine->cycles += MATRIX_ENGINE_SIDE;
  return MATRIX_ENGINE_OK;
}

/* One column of A and one of B a cycle, 256 products. Sums wrap around, as int32 sums on the host do. */
static int32_t matrix_engine_multiply(matrix_engine* engine, const int32_t* of) {
  int32_t rows = of[4], columns = of[5], depth = of[6];
  if (rows < 1 || rows > MATRIX_ENGINE_SIDE || columns < 1 || columns > MATRIX_ENGINE_SIDE || depth < 1) return MATRIX_ENGINE_BAD_SIZE;
  if (!matrix_engine_fits(of[0], of[1], rows, depth, MATRIX_ENGINE_SCRATCHPAD)) return MATRIX_ENGINE_BAD_ADDRESS;
  if (!matrix_engine_fits(of[2], of[3], columns, depth, MATRIX_ENGINE_SCRATCHPAD)) return MATRIX_ENGINE_BAD_ADDRESS;
  for (int32_t row = 0; row < rows; ++row) {
    const int8_t* a = engine->scratchpad + of[0] + (int64_t)row * of[1];
    for (int32_t column = 0; column < columns; ++column) {
      const int8_t* b = engine->scratchpad + of[2] + (int64_t)column * of[3];
      uint32_t sum = (uint32_t)engine->accumulators[row][column];
      for (int32_t k = 0; k < depth; ++k) sum += ((uint32_t)a[k] - (uint32_t)of[7]) * ((uint32_t)b[k] - (uint32_t)of[8]);
      engine->accumulators[row][column] = (int32_t)sum;
    }
  }
  engine->cycles += MATRIX_ENGINE_SIDE + depth;
  return MATRIX_ENGINE_OK;
}

/* value * multiplier * 2**(shift - 31), rounded to the nearest; halves go up or, if asked, away from zero. A multiplier of 0
 * leaves the value as it is. */
static int64_t matrix_engine_scaled(int32_t value, int32_t multiplier, int32_t shift, int32_t away) {
  if (multiplier == 0) return value;
  int64_t product = (int64_t)(((uint64_t)(int64_t)value << (shift > 0 ? shift : 0)) * (uint64_t)(int64_t)multiplier);
  int32_t down = 31 - (shift < 0 ? shift : 0);
  int64_t half = (int64_t)1 << (down - 1);
  if (away && product < 0) half -= 1;
  return (int64_t)((uint64_t)product + (uint64_t)half) >> down;
}

static int32_t matrix_engine_requantize(matrix_engine* engine, const int32_t* of) {
  int32_t rows = of[4], columns = of[5];
  if (rows < 1 || rows > MATRIX_ENGINE_SIDE || columns < 1 || columns > MATRIX_ENGINE_SIDE) return MATRIX_ENGINE_BAD_SIZE;
  if (!matrix_engine_fits(of[0], 0, 1, 4 * (int64_t)columns, MATRIX_ENGINE_SCRATCHPAD)) return MATRIX_ENGINE_BAD_ADDRESS;
  if (!matrix_engine_fits(of[1], 0, 1, 4 * (int64_t)columns, MATRIX_ENGINE_SCRATCHPAD)) return MATRIX_ENGINE_BAD_ADDRESS;
  if (!matrix_engine_fits(of[2], of[3], rows, columns, MATRIX_ENGINE_SCRATCHPAD)) return MATRIX_ENGINE_BAD_ADDRESS;
  int32_t multipliers[MATRIX_ENGINE_SIDE], shifts[MATRIX_ENGINE_SIDE];
  for (int32_t column = 0; column < columns; ++column) { /* before anything is written: the result may lie over the tables */
    multipliers[column] = matrix_engine_int32(engine, of[0] + 4 * column);
    shifts[column] = matrix_engine_int32(engine, of[1] + 4 * column);
    if (shifts[column] < -30 || shifts[column] > 30) return MATRIX_ENGINE_BAD_SIZE;
  }
  for (int32_t row = 0; row < rows; ++row) {
    for (int32_t column = 0; column < columns; ++column) {
      int64_t value = matrix_engine_scaled(engine->accumulators[row][column], multipliers[column], shifts[column], of[9]) + of[6];
      if (value < of[7]) value = of[7];
      if (value > of[8]) value = of[8];
      engine->scratchpad[of[2] + (int64_t)row * of[3] + column] = (int8_t)value;
    }
  }
  engine->cycles += 2 * (int64_t)rows;
  return MATRIX_ENGINE_OK;
}

static int32_t matrix_engine_step(matrix_engine* engine, const int32_t* command) {
  switch (command[0]) {
    case MATRIX_ENGINE_LOAD: return matrix_engine_move(engine, command + 1, 0);
    case MATRIX_ENGINE_STORE: return matrix_engine_move(engine, command + 1, 1);
    case MATRIX_ENGINE_FILL: return matrix_engine_fill(engine, command + 1);
    case MATRIX_ENGINE_START: return matrix_engine_start(engine, command + 1);
    case MATRIX_ENGINE_MULTIPLY: return matrix_engine_multiply(engine, command + 1);
    case MATRIX_ENGINE_REQUANTIZE: return matrix_engine_requantize(engine, command + 1);
    default: return MATRIX_ENGINE_BAD_COMMAND;
  }
}

int32_t matrix_engine_run(const int32_t* commands, int32_t num_commands, const matrix_engine_buffer* buffers, int32_t num_buffers,
                          matrix_engine_report* report) {
  matrix_engine engine; /* a run has an engine of its own, so that threads do not meet */
  matrix_engine_report done = {MATRIX_ENGINE_NO_END, -1, 0};
  memset(&engine, 0, sizeof engine);
  engine.buffers = buffers;
  engine.num_buffers = num_buffers;
  if (num_commands > MATRIX_ENGINE_COMMANDS) {
    done.fault = MATRIX_ENGINE_BAD_SIZE;
    num_commands = 0;
  }
  for (int32_t i = 0; i < num_commands; ++i) {
    const int32_t* command = commands + (int64_t)i * MATRIX_ENGINE_WORDS;
    done.command = i;
    done.fault = command[0] == MATRIX_ENGINE_END ? MATRIX_ENGINE_OK : matrix_engine_step(&engine, command);
    if (done.fault != MATRIX_ENGINE_OK || command[0] == MATRIX_ENGINE_END) break;
    done.fault = MATRIX_ENGINE_NO_END;
  }
  done.cycles = engine.cycles;
  if (report != 0) *report = done;
  return done.fault;
}
