# SPDX-License-Identifier: Apache-2.0
# CUDA 13 changed the signatures of two functions that Kokkos before 4.7.1 calls. Some installations are mended already.
add_library(ferry_kokkos_workarounds INTERFACE)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13 AND Kokkos_VERSION VERSION_LESS 4.7.1)
  include(CheckSourceCompiles)
  set(CMAKE_REQUIRED_LIBRARIES Kokkos::kokkos)
  set(CMAKE_REQUIRED_FLAGS -std=c++20)
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  check_source_compiles(CUDA "#include <Kokkos_Core.hpp>\nint compiles = 1;" FERRY_KOKKOS_KNOWS_CUDA_13)
  unset(CMAKE_REQUIRED_LIBRARIES)
  unset(CMAKE_REQUIRED_FLAGS)
  unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
  if(NOT FERRY_KOKKOS_KNOWS_CUDA_13)
    message(STATUS "Kokkos ${Kokkos_VERSION} predates CUDA 13: every CUDA source includes kokkos_before_cuda13.hpp first")
    target_compile_options(
      ferry_kokkos_workarounds
      INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-include ${PROJECT_SOURCE_DIR}/cmake/kokkos_before_cuda13.hpp>")
  endif()
endif()
