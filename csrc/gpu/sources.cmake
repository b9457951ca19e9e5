# The files that every GPU backend compiles: device code in its vendor's language, the rest as C++.
set(GPU_DEVICE_SOURCES
  attention.cu
  elementwise.cu
  embedding.cu
  gemv.cu
  logits_processors.cu
  logprobs.cu
  mirror.cu
  probe.cu
  rms_norm.cu
  rope.cu
  sample.cu
  tile_matmul.cu)
set(GPU_HOST_SOURCES
  matmul.cpp
  platform.cpp
  repack.cpp
  weights.cpp)
list(TRANSFORM GPU_DEVICE_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM GPU_HOST_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
