# SPDX-License-Identifier: Apache-2.0
# The interface target.
include(FerryLanguage)
include(FerryInstances)
include(FerryNccl)

file(GLOB_RECURSE ferry_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/ferry/*.hpp")

add_library(ferry INTERFACE)
add_library(ferry::ferry ALIAS ferry)
target_sources(ferry INTERFACE FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${ferry_headers})
target_compile_features(ferry INTERFACE cxx_std_20)
target_link_libraries(ferry INTERFACE Kokkos::kokkos Boost::headers Threads::Threads)

# The exported target gets the CUDA standard from ferryConfig.cmake, because the language is the consumer's to enable.
if("cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
  target_compile_features(ferry INTERFACE $<BUILD_INTERFACE:cuda_std_20>)
endif()
