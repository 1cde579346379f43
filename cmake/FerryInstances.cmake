# SPDX-License-Identifier: Apache-2.0
# ferry_add_instances()
#
# Makes the target ferry::instances, which is linked in place of ferry::ferry: the verbs that programs call most often, compiled
# once. On hosts ferry::ferry holds them, and the target is another name for it. With CUDA it is a static library that the build
# that asks for it compiles, with its flags and its Kokkos; sources then compile no kernel of these verbs.
# find_package(ferry COMPONENTS instances) calls this. Where Kokkos is a CUDA language, enable it first.
include("${CMAKE_CURRENT_LIST_DIR}/FerryLanguage.cmake")

function(ferry_add_instances)
  if(TARGET ferry::instances)
    return()
  endif()
  if(NOT Kokkos_ENABLE_CUDA AND NOT Kokkos_ENABLE_HIP AND NOT Kokkos_ENABLE_SYCL)
    add_library(ferry_instances INTERFACE)
    add_library(ferry::instances ALIAS ferry_instances)
    target_link_libraries(ferry_instances INTERFACE ferry::ferry)
    return()
  endif()
  # The sources lie next to this file where ferry is installed, in src/ in the source tree.
  set(folder "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/instances")
  if(NOT EXISTS "${folder}")
    cmake_path(GET CMAKE_CURRENT_FUNCTION_LIST_DIR PARENT_PATH folder)
    string(APPEND folder "/src/instances")
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  add_library(ferry_instances STATIC EXCLUDE_FROM_ALL ${sources})
  add_library(ferry::instances ALIAS ferry_instances)
  target_link_libraries(ferry_instances PUBLIC ferry::ferry)
  target_compile_definitions(ferry_instances PUBLIC FERRY_USE_INSTANCES)
  set_target_properties(ferry_instances PROPERTIES POSITION_INDEPENDENT_CODE ON)
  ferry_target_language(ferry_instances)
endfunction()
