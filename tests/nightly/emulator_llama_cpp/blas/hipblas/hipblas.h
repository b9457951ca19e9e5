// The few functions of hipBLAS that llama.cpp calls, as a stand-in computed on the CPU: device memory is host memory
// under the emulator.

#pragma once

#include <hip/hip_runtime_api.h>

#include <cstdint>

typedef struct hipblasContext* hipblasHandle_t;

enum hipblasStatus_t {
  HIPBLAS_STATUS_SUCCESS = 0,
  HIPBLAS_STATUS_NOT_INITIALIZED = 1,
  HIPBLAS_STATUS_ALLOC_FAILED = 2,
  HIPBLAS_STATUS_INVALID_VALUE = 3,
  HIPBLAS_STATUS_MAPPING_ERROR = 4,
  HIPBLAS_STATUS_EXECUTION_FAILED = 5,
  HIPBLAS_STATUS_INTERNAL_ERROR = 6,
  HIPBLAS_STATUS_NOT_SUPPORTED = 7,
  HIPBLAS_STATUS_ARCH_MISMATCH = 8,
};
enum hipblasOperation_t { HIPBLAS_OP_N = 111, HIPBLAS_OP_T = 112 };
enum hipblasSideMode_t { HIPBLAS_SIDE_LEFT = 141, HIPBLAS_SIDE_RIGHT = 142 };
enum hipblasFillMode_t { HIPBLAS_FILL_MODE_UPPER = 121, HIPBLAS_FILL_MODE_LOWER = 122 };
enum hipblasDiagType_t { HIPBLAS_DIAG_NON_UNIT = 131, HIPBLAS_DIAG_UNIT = 132 };
enum hipblasDatatype_t { HIPBLAS_R_16F = 150, HIPBLAS_R_32F = 151, HIPBLAS_R_16B = 168 };
enum hipblasGemmAlgo_t { HIPBLAS_GEMM_DEFAULT = 160 };

hipblasStatus_t hipblasCreate(hipblasHandle_t* handle);
hipblasStatus_t hipblasDestroy(hipblasHandle_t handle);
hipblasStatus_t hipblasSetStream(hipblasHandle_t handle, hipStream_t stream);

// All matrices are column after column; C (m, n) = alpha * op(A) (m, k) * op(B) (k, n) + beta * C.
hipblasStatus_t hipblasSgemm(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b, int m, int n,
                             int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                             const float* beta, float* c, int ldc);
hipblasStatus_t hipblasSgemmBatched(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b, int m,
                                    int n, int k, const float* alpha, const float* const a[], int lda,
                                    const float* const b[], int ldb, const float* beta, float* const c[], int ldc,
                                    int count);
hipblasStatus_t hipblasSgemmStridedBatched(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b,
                                           int m, int n, int k, const float* alpha, const float* a, int lda,
                                           long long stride_a, const float* b, int ldb, long long stride_b,
                                           const float* beta, float* c, int ldc, long long stride_c, int count);

// `alpha` and `beta` have the type of the computation.
hipblasStatus_t hipblasGemmEx(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b, int m, int n,
                              int k, const void* alpha, const void* a, hipblasDatatype_t type_a, int lda, const void* b,
                              hipblasDatatype_t type_b, int ldb, const void* beta, void* c, hipblasDatatype_t type_c,
                              int ldc, hipblasDatatype_t compute, hipblasGemmAlgo_t algorithm);
hipblasStatus_t hipblasGemmBatchedEx(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b, int m,
                                     int n, int k, const void* alpha, const void* a[], hipblasDatatype_t type_a,
                                     int lda, const void* b[], hipblasDatatype_t type_b, int ldb, const void* beta,
                                     void* c[], hipblasDatatype_t type_c, int ldc, int count, hipblasDatatype_t compute,
                                     hipblasGemmAlgo_t algorithm);
hipblasStatus_t hipblasGemmStridedBatchedEx(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b,
                                            int m, int n, int k, const void* alpha, const void* a,
                                            hipblasDatatype_t type_a, int lda, long long stride_a, const void* b,
                                            hipblasDatatype_t type_b, int ldb, long long stride_b, const void* beta,
                                            void* c, hipblasDatatype_t type_c, int ldc, long long stride_c, int count,
                                            hipblasDatatype_t compute, hipblasGemmAlgo_t algorithm);

// X (m, n) of X * A = alpha * X, where A (n, n) is upper triangular; the other forms are refused.
hipblasStatus_t hipblasStrsmBatched(hipblasHandle_t handle, hipblasSideMode_t side, hipblasFillMode_t fill,
                                    hipblasOperation_t op, hipblasDiagType_t diagonal, int m, int n, const float* alpha,
                                    const float* const a[], int lda, float* const x[], int ldx, int count);
