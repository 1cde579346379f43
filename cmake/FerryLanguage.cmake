# SPDX-License-Identifier: Apache-2.0
# ferry_target_language(<target>)
#
# Compiles the target's C++ sources in the language that the found Kokkos asks for: CUDA where Kokkos was built as a CMake
# CUDA language, C++ everywhere else (nvcc_wrapper included). Call it after the last target_sources().
set_property(GLOBAL PROPERTY FERRY_LANGUAGE "${Kokkos_COMPILE_LANGUAGE}")

function(ferry_target_language target)
  # A variable of find_package(Kokkos) would stay in ferry's own scope where ferry is a subdirectory.
  get_property(language GLOBAL PROPERTY FERRY_LANGUAGE)
  if(NOT "${language}" STREQUAL "CUDA")
    return()
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "Kokkos was built as a CUDA language: call enable_language(CUDA) before "
                        "ferry_target_language(${target}).")
  endif()
  if(NOT "cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    message(FATAL_ERROR "CMake ${CMAKE_VERSION} cannot ask ${CMAKE_CUDA_COMPILER} for C++20; CMake 3.25.2 or later can.")
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.(cpp|cc|cxx)$")
  if(sources)
    set_source_files_properties(${sources} PROPERTIES LANGUAGE CUDA)
  endif()
  target_compile_features(${target} PRIVATE cuda_std_20)
endfunction()
