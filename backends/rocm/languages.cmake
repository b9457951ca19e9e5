# Included by the top directory, whose targets link these languages.
if(NOT DEFINED CMAKE_HIP_ARCHITECTURES)
  set(CMAKE_HIP_ARCHITECTURES gfx90a gfx942 gfx1030 gfx1100 gfx1151 gfx1201)
endif()
enable_language(HIP)
