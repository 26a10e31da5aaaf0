/* What the bindings of cuBLAS, cuBLASLt and cuDNN call, computed naively in the host's memory: arguments in the wrong order
   or of the wrong size give wrong results. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int live = 0; /* descriptors that were made and not destroyed */
int stand_in_live(void) { return live; }

/* ---- cuBLAS ---- */
int cublasCreate_v2(void** handle) { *handle = &live; return 0; }

static float at(const float* matrix, int64_t stride, int transposed, int64_t row, int64_t column) {
  return transposed ? matrix[column + row * stride] : matrix[row + column * stride];
}

static void gemm(int ta, int tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                 int64_t ldb, float* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += at(a, lda, ta, i, l) * at(b, ldb, tb, l, j);
      c[i + j * ldc] = sum;
    }
}

int cublasGemmStridedBatchedEx(void* handle, int ta, int tb, int m, int n, int k, const float* alpha, const float* a,
                               int atype, int lda, long long astep, const float* b, int btype, int ldb,
                               long long bstep, const float* beta, float* c, int ctype, int ldc, long long cstep,
                               int count, int compute, int algorithm) {
  if (handle != &live || *alpha != 1 || *beta != 0 || atype || btype || ctype || compute != 68 || algorithm != -1)
    return 7;
  for (int i = 0; i < count; ++i) gemm(ta, tb, m, n, k, a + i * astep, lda, b + i * bstep, ldb, c + i * cstep, ldc);
  return 0;
}

/* ---- cuBLASLt ---- */
typedef struct { int compute, scale, ta, tb; } product;
typedef struct { int type, order; uint64_t rows, columns; int64_t stride; } matrix;

int cublasLtCreate(void** handle) { *handle = &live; return 0; }
int cublasLtMatmulDescCreate(product** made, int compute, int scale) {
  *made = calloc(1, sizeof(product)); (*made)->compute = compute; (*made)->scale = scale; ++live; return 0;
}
int cublasLtMatmulDescSetAttribute(product* one, int attribute, const int32_t* value, size_t size) {
  if (size != 4 || (attribute != 3 && attribute != 4)) return 7;
  *(attribute == 3 ? &one->ta : &one->tb) = *value; return 0;
}
int cublasLtMatmulDescDestroy(product* one) { free(one); --live; return 0; }
int cublasLtMatrixLayoutCreate(matrix** made, int type, uint64_t rows, uint64_t columns, int64_t stride) {
  matrix one = {type, 0, rows, columns, stride};
  *made = malloc(sizeof one); **made = one; ++live; return 0;
}
int cublasLtMatrixLayoutSetAttribute(matrix* one, int attribute, const int32_t* value, size_t size) {
  if (size != 4 || attribute != 1) return 7;
  one->order = *value; return 0;
}
int cublasLtMatrixLayoutDestroy(matrix* one) { free(one); --live; return 0; }

/* Where the element of a matrix is. COL32: blocks of 32 columns, in which rows of 32 follow one another. COL4_4R2_8C: such
   blocks, of groups of eight rows; a group has the even rows before the odd ones, eight columns after the other, and in
   them four columns of four rows before the other four. */
static int64_t place(const matrix* m, int64_t row, int64_t column) {
  int64_t block = (column / 32) * m->stride, inside = column % 32;
  if (m->order == 2) return block + row * 32 + inside;
  int64_t eighth = row / 8 * 8 + row % 2 * 4 + inside / 8;
  return block + eighth * 32 + (inside % 8 / 4 * 4 + row % 8 / 2) * 4 + inside % 4;
}

int cublasLtMatmul(void* handle, const product* p, const void* alpha, const void* a, const matrix* al, const void* b,
                   const matrix* bl, const void* beta, const void* c, const matrix* cl, void* d, const matrix* dl,
                   const void* algorithm, void* workspace, size_t size, void* stream) {
  if (handle != &live || c != d || cl != dl || algorithm || workspace || size || stream) return 7;
  if (p->compute == 72) {
    if (p->scale != 10 || *(const int32_t*)alpha != 1 || *(const int32_t*)beta || al->type != 3 || bl->type != 3 ||
        dl->type != 10 || p->ta || !p->tb || al->order != 2 || bl->order != 3 || dl->order != 2) return 7;
    for (int64_t i = 0; i < (int64_t)dl->rows; ++i)
      for (int64_t j = 0; j < (int64_t)dl->columns; ++j) {
        int32_t sum = 0;
        for (int64_t k = 0; k < (int64_t)al->columns; ++k)
          sum += ((const int8_t*)a)[place(al, i, k)] * ((const int8_t*)b)[place(bl, j, k)];
        ((int32_t*)d)[place(dl, i, j)] = sum;
      }
    return 0;
  }
  if (p->compute != 68 || p->scale || *(const float*)alpha != 1 || *(const float*)beta || al->type || al->order) return 7;
  gemm(p->ta, p->tb, dl->rows, dl->columns, p->ta ? al->rows : al->columns, a, al->stride, b, bl->stride, d, dl->stride);
  return 0;
}

/* ---- cuDNN ---- */
typedef struct { int type, format, rank, sizes[5], steps[5]; } tensor;
typedef struct { int rank, pad[3], stride[3], dilation[3], mode, type, groups, math; } convolution;
typedef struct { int algorithm, status; float time; size_t memory; int determinism, math, reserved[3]; } performance;

size_t cudnnGetVersion(void) { return 99999; }
int cudnnCreate(void** handle) { *handle = &live; return 0; }
int cudnnCreateTensorDescriptor(tensor** made) { *made = calloc(1, sizeof(tensor)); ++live; return 0; }
int cudnnCreateFilterDescriptor(tensor** made) { return cudnnCreateTensorDescriptor(made); }
int cudnnCreateConvolutionDescriptor(convolution** made) { *made = calloc(1, sizeof(convolution)); ++live; return 0; }
int cudnnDestroyTensorDescriptor(tensor* one) { free(one); --live; return 0; }
int cudnnDestroyFilterDescriptor(tensor* one) { return cudnnDestroyTensorDescriptor(one); }
int cudnnDestroyConvolutionDescriptor(convolution* one) { free(one); --live; return 0; }

int cudnnSetTensor4dDescriptor(tensor* one, int format, int type, int n, int c, int h, int w) {
  one->format = format; one->type = type; one->rank = 4;
  int sizes[4] = {n, c, h, w}; memcpy(one->sizes, sizes, sizeof sizes); return 0;
}
int cudnnSetTensorNdDescriptor(tensor* one, int type, int rank, const int* sizes, const int* steps) {
  one->type = type; one->rank = rank;
  memcpy(one->sizes, sizes, rank * 4); memcpy(one->steps, steps, rank * 4); return 0;
}
int cudnnSetFilterNdDescriptor(tensor* one, int type, int format, int rank, const int* sizes) {
  int order[5] = {0, 1, 2, 3, 4}, step = 1;
  if (format == 1) for (int i = 1; i < rank; ++i) order[i] = i + 1 < rank ? i + 1 : 1;
  one->type = type; one->rank = rank; one->format = format; memcpy(one->sizes, sizes, rank * 4);
  for (int i = rank - 1; i >= 0; --i) { one->steps[order[i]] = step; step *= sizes[order[i]]; }
  return 0;
}
int cudnnSetConvolutionNdDescriptor(convolution* one, int rank, const int* pad, const int* stride, const int* dilation,
                                    int mode, int type) {
  one->rank = rank; one->mode = mode; one->type = type;
  memcpy(one->pad, pad, rank * 4); memcpy(one->stride, stride, rank * 4); memcpy(one->dilation, dilation, rank * 4);
  return 0;
}
int cudnnSetConvolutionGroupCount(convolution* one, int groups) { one->groups = groups; return 0; }
int cudnnSetConvolutionMathType(convolution* one, int math) { one->math = math; return math == 3 ? 0 : 9; }

int cudnnGetConvolutionNdForwardOutputDim(const convolution* c, const tensor* x, const tensor* w, int rank, int* sizes) {
  sizes[0] = x->sizes[0]; sizes[1] = w->sizes[0];
  for (int i = 2; i < rank; ++i)
    sizes[i] = (x->sizes[i] + 2 * c->pad[i - 2] - c->dilation[i - 2] * (w->sizes[i] - 1) - 1) / c->stride[i - 2] + 1;
  return 0;
}

static int propose(int room, int* count, performance* found) {
  if (room < 2) return 7;
  memset(found, 0, room * sizeof *found);
  found[0].status = 9; found[0].algorithm = 5; found[1].algorithm = 1; found[1].reserved[2] = 1; *count = 2; return 0;
}

/* Every product of a convolution: x[n, c, i] and w[k, c', j] belong to y[n, k, o]. */
static int each(int direction, void* handle, const float* alpha, const convolution* c, int algorithm, void* workspace,
                size_t size, const float* beta, const tensor* xt, float* x, const tensor* wt, float* w,
                const tensor* yt, float* y) {
  if (handle != &live || *alpha != 1 || *beta != 0 || algorithm != 1 || c->type || xt->type || wt->type || yt->type ||
      c->mode != 1 || size != 0 || workspace) return 7;
  int rank = xt->rank, inner = wt->sizes[1], units = wt->sizes[0] / c->groups;
  const tensor* rt = direction == 0 ? yt : direction == 1 ? xt : wt;
  float* result = direction == 0 ? y : direction == 1 ? x : w;
  int total = 1;
  for (int i = 0; i < rank; ++i) total *= rt->sizes[i];
  memset(result, 0, total * sizeof(float));
  int limits[9] = {yt->sizes[0], yt->sizes[1], inner}; /* then the place in y, and that in the window */
  for (int i = 2; i < rank; ++i) { limits[1 + i] = yt->sizes[i]; limits[1 + i + rank - 2] = wt->sizes[i]; }
  int loops = 3 + 2 * (rank - 2), counter[9] = {0};
  for (;;) {
    int channel = counter[1] / units * inner + counter[2], inside = 1;
    int64_t px = counter[0] * xt->steps[0] + channel * xt->steps[1];
    int64_t pw = counter[1] * wt->steps[0] + counter[2] * wt->steps[1];
    int64_t py = counter[0] * yt->steps[0] + counter[1] * yt->steps[1];
    for (int i = 0; i < rank - 2; ++i) {
      int o = counter[3 + i], j = counter[3 + rank - 2 + i];
      int from = o * c->stride[i] + j * c->dilation[i] - c->pad[i];
      inside &= from >= 0 && from < xt->sizes[2 + i];
      px += (int64_t)from * xt->steps[2 + i]; pw += j * wt->steps[2 + i]; py += o * yt->steps[2 + i];
    }
    if (inside) {
      if (direction == 0) y[py] += x[px] * w[pw];
      else if (direction == 1) x[px] += w[pw] * y[py];
      else w[pw] += x[px] * y[py];
    }
    int at = loops - 1;
    while (at >= 0 && ++counter[at] == limits[at]) counter[at--] = 0;
    if (at < 0) return 0;
  }
}

#define CONVOLUTION(NAME, DIRECTION, X, W, Y)                                                                            \
  int cudnnGetConvolution##NAME##Algorithm_v7(void* handle, tensor* a, tensor* b, convolution* c, tensor* r, int room,   \
                                              int* count, performance* found) {                                          \
    return handle == &live && a->rank && b->rank && c->rank && r->rank ? propose(room, count, found) : 7;                \
  }                                                                                                                      \
  int cudnnGetConvolution##NAME##WorkspaceSize(void* handle, tensor* a, tensor* b, convolution* c, tensor* r,            \
                                               int algorithm, size_t* size) {                                            \
    *size = 0; return handle == &live && a->rank && b->rank && c->rank && r->rank && algorithm == 1 ? 0 : 7;             \
  }                                                                                                                      \
  int cudnnConvolution##NAME(void* handle, const float* alpha, tensor* at, float* a, tensor* bt, float* b,               \
                             convolution* c, int algorithm, void* workspace, size_t size, const float* beta,             \
                             tensor* rt, float* r) {                                                                     \
    return each(DIRECTION, handle, alpha, c, algorithm, workspace, size, beta, X##t, X, W##t, W, Y##t, Y);               \
  }
CONVOLUTION(Forward, 0, a, b, r)
CONVOLUTION(BackwardData, 1, r, a, b)
CONVOLUTION(BackwardFilter, 2, a, r, b)

int cudnnSoftmaxForward(void* handle, int algorithm, int mode, const float* alpha, const tensor* xt, const float* x,
                        const float* beta, const tensor* yt, float* y) {
  if (handle != &live || (algorithm != 1 && algorithm != 2) || mode != 1 || *alpha != 1 || *beta || xt != yt) return 7;
  int outer = xt->sizes[0], size = xt->sizes[1], inner = xt->sizes[2] * xt->sizes[3];
  for (int o = 0; o < outer; ++o)
    for (int i = 0; i < inner; ++i) {
      const float* from = x + (int64_t)o * size * inner + i;
      float* to = y + (int64_t)o * size * inner + i;
      float most = from[0], sum = 0;
      for (int k = 1; k < size; ++k) if (from[k * inner] > most) most = from[k * inner];
      for (int k = 0; k < size; ++k) sum += expf(from[k * inner] - most);
      for (int k = 0; k < size; ++k) {
        float value = from[k * inner] - most;
        to[k * inner] = algorithm == 2 ? value - logf(sum) : expf(value) / sum;
      }
    }
  return 0;
}
