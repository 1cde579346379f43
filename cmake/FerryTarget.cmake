# SPDX-License-Identifier: Apache-2.0
# The library behind ferry::ferry: what is no template, compiled once for the Kokkos that was found.
include(FerryLanguage)
include(FerryInstances)
include(FerryNccl)

file(GLOB_RECURSE ferry_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/ferry/*.hpp")
file(GLOB_RECURSE ferry_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*.cpp" "${PROJECT_SOURCE_DIR}/backends/host/*.cpp")
if(Kokkos_ENABLE_CUDA)
  file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/backends/cuda/*.cpp")
  list(APPEND ferry_sources ${cuda_sources})
endif()
if(Kokkos_ENABLE_CUDA)
  # nvcc takes minutes for the common verbs: they are the component instances.
  list(FILTER ferry_sources EXCLUDE REGEX "/src/instances/")
endif()
# That one is for builds without CMake: it includes the others.
list(REMOVE_ITEM ferry_sources "${PROJECT_SOURCE_DIR}/src/ferry.cpp")

if("${Kokkos_COMPILE_LANGUAGE}" STREQUAL "CUDA")
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND Kokkos_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES ${Kokkos_CUDA_ARCHITECTURES})
  endif()
  enable_language(CUDA)
endif()
include(FerryKokkosWorkarounds)

add_library(ferry ${ferry_sources})
add_library(ferry::ferry ALIAS ferry)
target_sources(ferry PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${ferry_headers})
target_compile_features(ferry PUBLIC cxx_std_20)
target_link_libraries(ferry PUBLIC Kokkos::kokkos Boost::headers Threads::Threads
                            PRIVATE ISAL::isal $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>
                                    $<BUILD_INTERFACE:ferry_kokkos_workarounds>)
target_include_directories(ferry SYSTEM PRIVATE "${XXHASH_INCLUDE_DIR}")
# Loops of the host's kernels for AVX2 as well, which processors that have it take. Without the optimiser both copies are equal.
target_compile_definitions(ferry PRIVATE "$<$<NOT:$<CONFIG:Debug>>:FERRY_DISPATCH_AVX2>")
ferry_target_language(ferry)

# The exported target gets the CUDA standard from ferryConfig.cmake, because the language is the consumer's to enable.
if("cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
  target_compile_features(ferry INTERFACE $<BUILD_INTERFACE:cuda_std_20>)
endif()

# Batches of at most eight sources of one folder are compiled as one. A program over the static library gets whole objects, so none
# holds what other folders need next to what they don't. Of these it keeps what it calls when it is linked with --gc-sections.
# Most of a batch's time are the headers it includes: halves take less than half of the time, for builds that check the library.
option(FERRY_LIBRARY_HALVES "Compile the library in two halves: in fewer seconds, to larger objects" OFF)
mark_as_advanced(FERRY_LIBRARY_HALVES)
set(ferry_in_halves OFF)
if(NOT Kokkos_ENABLE_CUDA AND (FERRY_LIBRARY_HALVES OR FERRY_TEST_UNITY GREATER 1))
  set(ferry_in_halves ON)
endif()
# Of nvcc's 15 seconds for a batch of eight sources 14 are the headers. A build that compiles a sample of the tests takes one source.
set(ferry_as_one OFF)
if(Kokkos_ENABLE_CUDA AND FERRY_TEST_SAMPLE STREQUAL "nvcc")
  set(ferry_as_one ON)
endif()
target_compile_options(ferry PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>:-ffunction-sections;-fdata-sections>")
# A project around ferry without a build type does not mean a library without optimiser.
if(NOT ferry_has_configurations AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CXX_FLAGS MATCHES "-O")
  foreach(language IN ITEMS CXX CUDA)
    separate_arguments(release UNIX_COMMAND "${CMAKE_${language}_FLAGS_RELEASE}")
    target_compile_options(ferry PRIVATE "$<$<COMPILE_LANGUAGE:${language}>:${release}>")
  endforeach()
endif()
set(folder_of_batch "")
foreach(source IN LISTS ferry_sources)
  cmake_path(GET source PARENT_PATH folder)
  if(NOT folder STREQUAL folder_of_batch)
    set(folder_of_batch "${folder}")
    set(sources_of_folder 0)
  endif()
  math(EXPR batch "${sources_of_folder} / 8")
  math(EXPR sources_of_folder "${sources_of_folder} + 1")
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
  string(REPLACE "/" "_" folder "${folder}")
  set(group "${folder}_${batch}")
  if(folder STREQUAL "src_instances" AND FERRY_LIBRARY_HALVES)
    # Without the optimiser five sixths of the time of these sources are the headers they include.
    set(group lower)
  elseif(folder STREQUAL "src_instances" AND ferry_in_halves)
    set(group instances)
  elseif(folder STREQUAL "src_instances")
    # A program that steps by one rule gets the objects of that rule.
    cmake_path(GET source STEM batch)
    string(REGEX REPLACE "_[a-z]+$" "" batch "${batch}")
    set(group "${folder}_${batch}")
  elseif(ferry_as_one)
    set(group whole)
  elseif(ferry_in_halves AND folder MATCHES "^src_(distributed|io|loader)")
    set(group upper)
  elseif(ferry_in_halves)
    set(group lower)
  endif()
  set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}")
endforeach()

# ferry_set_visibility(<library>): which symbols programs and libraries over ferry show to each other. A static library may become
# part of a shared one, whose interface it must not enter: its symbols are hidden. The shared library shows the names of namespace
# ferry alone. In both, what a process has once is found by one symbol (src/memory/process_wide.cpp), which a program does not
# export by itself. Its objects belong to the library that made them first, so no library is unloaded.
function(ferry_set_visibility library)
  target_link_options(${library} INTERFACE "LINKER:--export-dynamic-symbol=ferry_objects_of_process" "LINKER:-z,nodelete")
  get_target_property(type ${library} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    target_link_options(${library} PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/ferry.map")
    set_target_properties(${library} PROPERTIES LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/ferry.map")
  else()
    set_target_properties(${library} PROPERTIES CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
                                                VISIBILITY_INLINES_HIDDEN ON)
  endif()
endfunction()

# For targets of a project around ferry its headers are those of a system: their warnings are not that project's.
if(NOT PROJECT_IS_TOP_LEVEL)
  set_target_properties(ferry PROPERTIES SYSTEM ON)
endif()

set_target_properties(
  ferry
  PROPERTIES POSITION_INDEPENDENT_CODE ON
             VERSION "${PROJECT_VERSION}"
             SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}"
             INSTALL_RPATH_USE_LINK_PATH ON # of the libraries it was linked with
             UNITY_BUILD ON
             UNITY_BUILD_MODE GROUP)
ferry_set_visibility(ferry)
get_target_property(ferry_type ferry TYPE)
