// See hipblas/hipblas.h. Plain loops: what is tested are the kernels around them.

#include <cstring>
#include <vector>

#include "hipblas/hipblas.h"

struct hipblasContext {
  hipStream_t stream = nullptr;
};

namespace {

using Half = _Float16;
using Matrix = std::vector<float>;

float element(const void* data, hipblasDatatype_t type, long long at) {
  if (type == HIPBLAS_R_32F) return static_cast<const float*>(data)[at];
  if (type == HIPBLAS_R_16F) return static_cast<const Half*>(data)[at];
  const std::uint32_t bits = static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(data)[at]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::uint16_t bfloat_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

void set_element(void* data, hipblasDatatype_t type, long long at, float value) {
  if (type == HIPBLAS_R_32F) {
    static_cast<float*>(data)[at] = value;
  } else if (type == HIPBLAS_R_16F) {
    static_cast<Half*>(data)[at] = static_cast<Half>(value);
  } else {
    static_cast<std::uint16_t*>(data)[at] = bfloat_of(value);
  }
}

std::size_t bytes_of(hipblasDatatype_t type) {
  return type == HIPBLAS_R_32F ? 4 : 2;
}

struct Operand {
  const void* data;
  hipblasDatatype_t type;
  int leading;
};

// Rows of op(A), or columns of op(B), each with its k elements side by side.
Matrix packed(const Operand& from, int count, int k, bool k_contiguous) {
  Matrix out(static_cast<std::size_t>(count) * k);
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < k; ++j) {
      const long long major = k_contiguous ? i : j, minor = k_contiguous ? j : i;
      out[static_cast<std::size_t>(i) * k + j] = element(from.data, from.type, major * from.leading + minor);
    }
  return out;
}

struct Product {
  hipblasOperation_t op_a, op_b;
  int m, n, k;
  float alpha, beta;
};

void multiply(const Product& p, const Operand& a, const Operand& b, void* c, hipblasDatatype_t type_c, int ldc) {
  const Matrix rows = packed(a, p.m, p.k, p.op_a == HIPBLAS_OP_T),
               columns = packed(b, p.n, p.k, p.op_b == HIPBLAS_OP_N);
  for (int column = 0; column < p.n; ++column)
    for (int row = 0; row < p.m; ++row) {
      const float *x = &rows[static_cast<std::size_t>(row) * p.k],
                  *y = &columns[static_cast<std::size_t>(column) * p.k];
      float sum = 0;
      for (int i = 0; i < p.k; ++i) sum += x[i] * y[i];
      const long long at = static_cast<long long>(column) * ldc + row;
      const float old = p.beta == 0 ? 0 : p.beta * element(c, type_c, at);
      set_element(c, type_c, at, p.alpha * sum + old);
    }
}

const void* moved(const void* data, hipblasDatatype_t type, long long elements) {
  return static_cast<const char*>(data) + elements * static_cast<long long>(bytes_of(type));
}

hipblasStatus_t wait_for(hipblasHandle_t handle) {
  return hipStreamSynchronize(handle->stream) == hipSuccess ? HIPBLAS_STATUS_SUCCESS : HIPBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

hipblasStatus_t hipblasCreate(hipblasHandle_t* handle) {
  *handle = new hipblasContext;
  return HIPBLAS_STATUS_SUCCESS;
}

hipblasStatus_t hipblasDestroy(hipblasHandle_t handle) {
  delete handle;
  return HIPBLAS_STATUS_SUCCESS;
}

hipblasStatus_t hipblasSetStream(hipblasHandle_t handle, hipStream_t stream) {
  handle->stream = stream;
  return HIPBLAS_STATUS_SUCCESS;
}

hipblasStatus_t hipblasGemmStridedBatchedEx(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b,
                                            int m, int n, int k, const void* alpha, const void* a,
                                            hipblasDatatype_t type_a, int lda, long long stride_a, const void* b,
                                            hipblasDatatype_t type_b, int ldb, long long stride_b, const void* beta,
                                            void* c, hipblasDatatype_t type_c, int ldc, long long stride_c, int count,
                                            hipblasDatatype_t compute, hipblasGemmAlgo_t) {
  if (const auto status = wait_for(handle); status != HIPBLAS_STATUS_SUCCESS) return status;
  const Product product{op_a, op_b, m, n, k, element(alpha, compute, 0), element(beta, compute, 0)};
  for (int i = 0; i < count; ++i)
    multiply(product, {moved(a, type_a, i * stride_a), type_a, lda}, {moved(b, type_b, i * stride_b), type_b, ldb},
             const_cast<void*>(moved(c, type_c, i * stride_c)), type_c, ldc);
  return HIPBLAS_STATUS_SUCCESS;
}

hipblasStatus_t hipblasGemmEx(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b, int m, int n,
                              int k, const void* alpha, const void* a, hipblasDatatype_t type_a, int lda, const void* b,
                              hipblasDatatype_t type_b, int ldb, const void* beta, void* c, hipblasDatatype_t type_c,
                              int ldc, hipblasDatatype_t compute, hipblasGemmAlgo_t algorithm) {
  return hipblasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c,
                                     type_c, ldc, 0, 1, compute, algorithm);
}

hipblasStatus_t hipblasGemmBatchedEx(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b, int m,
                                     int n, int k, const void* alpha, const void* a[], hipblasDatatype_t type_a,
                                     int lda, const void* b[], hipblasDatatype_t type_b, int ldb, const void* beta,
                                     void* c[], hipblasDatatype_t type_c, int ldc, int count, hipblasDatatype_t compute,
                                     hipblasGemmAlgo_t) {
  if (const auto status = wait_for(handle); status != HIPBLAS_STATUS_SUCCESS) return status;
  const Product product{op_a, op_b, m, n, k, element(alpha, compute, 0), element(beta, compute, 0)};
  for (int i = 0; i < count; ++i) multiply(product, {a[i], type_a, lda}, {b[i], type_b, ldb}, c[i], type_c, ldc);
  return HIPBLAS_STATUS_SUCCESS;
}

hipblasStatus_t hipblasSgemm(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b, int m, int n,
                             int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                             const float* beta, float* c, int ldc) {
  return hipblasSgemmStridedBatched(handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);
}

hipblasStatus_t hipblasSgemmStridedBatched(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b,
                                           int m, int n, int k, const float* alpha, const float* a, int lda,
                                           long long stride_a, const float* b, int ldb, long long stride_b,
                                           const float* beta, float* c, int ldc, long long stride_c, int count) {
  return hipblasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, HIPBLAS_R_32F, lda, stride_a, b,
                                     HIPBLAS_R_32F, ldb, stride_b, beta, c, HIPBLAS_R_32F, ldc, stride_c, count,
                                     HIPBLAS_R_32F, HIPBLAS_GEMM_DEFAULT);
}

hipblasStatus_t hipblasSgemmBatched(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b, int m,
                                    int n, int k, const float* alpha, const float* const a[], int lda,
                                    const float* const b[], int ldb, const float* beta, float* const c[], int ldc,
                                    int count) {
  if (const auto status = wait_for(handle); status != HIPBLAS_STATUS_SUCCESS) return status;
  for (int i = 0; i < count; ++i)
    multiply({op_a, op_b, m, n, k, *alpha, *beta}, {a[i], HIPBLAS_R_32F, lda}, {b[i], HIPBLAS_R_32F, ldb}, c[i],
             HIPBLAS_R_32F, ldc);
  return HIPBLAS_STATUS_SUCCESS;
}

hipblasStatus_t hipblasStrsmBatched(hipblasHandle_t handle, hipblasSideMode_t side, hipblasFillMode_t fill,
                                    hipblasOperation_t op, hipblasDiagType_t diagonal, int m, int n, const float* alpha,
                                    const float* const a[], int lda, float* const x[], int ldx, int count) {
  if (side != HIPBLAS_SIDE_RIGHT || fill != HIPBLAS_FILL_MODE_UPPER || op != HIPBLAS_OP_N ||
      diagonal != HIPBLAS_DIAG_NON_UNIT)
    return HIPBLAS_STATUS_NOT_SUPPORTED;
  if (const auto status = wait_for(handle); status != HIPBLAS_STATUS_SUCCESS) return status;
  for (int i = 0; i < count; ++i)
    for (int row = 0; row < m; ++row)
      for (int column = 0; column < n; ++column) {
        float value = *alpha * x[i][column * ldx + row];
        for (int j = 0; j < column; ++j) value -= x[i][j * ldx + row] * a[i][column * lda + j];
        x[i][column * ldx + row] = value / a[i][column * lda + column];
      }
  return HIPBLAS_STATUS_SUCCESS;
}
