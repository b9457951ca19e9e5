// Names of cuBLAS that llama.cpp's ggml uses, so that a compiler can read it where cuBLAS is not installed.
#pragma once
#include <cuda_runtime.h>
#include <library_types.h>
#define CUBLAS_VER_MAJOR 12
#define CUBLAS_VER_MINOR 8
struct cublasContext;
typedef cublasContext* cublasHandle_t;
enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_ALLOC_FAILED, CUBLAS_STATUS_INVALID_VALUE,
  CUBLAS_STATUS_ARCH_MISMATCH, CUBLAS_STATUS_MAPPING_ERROR, CUBLAS_STATUS_EXECUTION_FAILED,
  CUBLAS_STATUS_INTERNAL_ERROR, CUBLAS_STATUS_NOT_SUPPORTED
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT };
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER };
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT };
enum cublasMath_t { CUBLAS_DEFAULT_MATH, CUBLAS_TENSOR_OP_MATH, CUBLAS_TF32_TENSOR_OP_MATH };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };
enum cublasComputeType_t { CUBLAS_COMPUTE_16F, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_16F, CUBLAS_COMPUTE_32F_FAST_TF32 };
cublasStatus_t cublasCreate(cublasHandle_t*);
cublasStatus_t cublasDestroy(cublasHandle_t);
cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t);
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t);
cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, size_t);
const char* cublasGetStatusString(cublasStatus_t);
template <class... Args> cublasStatus_t cublasSgemm(cublasHandle_t, Args...);
template <class... Args> cublasStatus_t cublasSgemmBatched(cublasHandle_t, Args...);
template <class... Args> cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t, Args...);
template <class... Args> cublasStatus_t cublasStrsmBatched(cublasHandle_t, Args...);
template <class... Args> cublasStatus_t cublasGemmEx(cublasHandle_t, Args...);
template <class... Args> cublasStatus_t cublasGemmBatchedEx(cublasHandle_t, Args...);
template <class... Args> cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, Args...);
