# Included by the top directory, whose targets link these languages.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real)
endif()
# Only 90a has the instructions of sm_90's own tensor cores.
list(TRANSFORM CMAKE_CUDA_ARCHITECTURES REPLACE "^90(-real)?$" "90a-real")
enable_language(CUDA)
