# SPDX-License-Identifier: Apache-2.0
# What the libraries need. ferryConfig.cmake.in has the same list as find_dependency calls.

# Imported targets end with the directory that finds them; a project that adds ferry as a subdirectory needs them as well.
if(NOT PROJECT_IS_TOP_LEVEL)
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
endif()

find_package(Threads REQUIRED)

# Boost::headers comes from Boost's own package config; CMake's FindBoost module is gone from CMake 3.30 on.
find_package(Boost 1.70 CONFIG REQUIRED)

# Checksums and digests of checkpoints, and JSON in files; the sources of ferry::io alone see them. ferry-info prints JSON.
if("io" IN_LIST ferry_components OR FERRY_BUILD_TOOLS)
  find_package(nlohmann_json 3.9 CONFIG REQUIRED)
endif()
if("io" IN_LIST ferry_components)
  find_package(ISAL MODULE REQUIRED)
  if(NOT ISAL_INCLUDE_DIR)
    message(FATAL_ERROR "${ISAL_LIBRARY} has no header isa-l/crc.h (Debian: libisal-dev)")
  endif()
  find_path(XXHASH_INCLUDE_DIR xxhash.h)
  mark_as_advanced(XXHASH_INCLUDE_DIR)
  if(NOT XXHASH_INCLUDE_DIR)
    message(FATAL_ERROR "There is no header xxhash.h (Debian and Ubuntu: libxxhash-dev)")
  endif()
endif()

# Kokkos may install itself into lib64, where CMake does not look on Debian.
find_package(Kokkos 4.6...<6 CONFIG REQUIRED PATH_SUFFIXES lib64/cmake/Kokkos)
if(FERRY_REQUIRE_CUDA AND NOT Kokkos_ENABLE_CUDA)
  message(FATAL_ERROR "The Kokkos in ${Kokkos_DIR} was built without CUDA (devices: ${Kokkos_DEVICES}). "
                      "Point Kokkos_ROOT at one that has it.")
endif()
if(Kokkos_ENABLE_CUDA)
  find_package(CUDAToolkit REQUIRED)
endif()
# A device of any kind: its compiler takes minutes for the common verbs. Without a backend of its own it has that of Kokkos alone.
set(ferry_has_device OFF)
foreach(device IN ITEMS CUDA HIP SYCL OPENMPTARGET OPENACC)
  if(Kokkos_ENABLE_${device})
    set(ferry_has_device ON)
  endif()
endforeach()
if(FERRY_BACKEND)
  set(ferry_backend "${FERRY_BACKEND}")
elseif(Kokkos_ENABLE_CUDA)
  set(ferry_backend cuda)
elseif(ferry_has_device)
  set(ferry_backend kokkos)
else()
  set(ferry_backend host)
endif()
