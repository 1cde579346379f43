# SPDX-License-Identifier: Apache-2.0
# The libraries ferry::ferry, ferry::io and ferry::distributed: what is no template, compiled once for the Kokkos that was found.
include(FerryLanguage)
include(FerryInstances)
include(FerryNccl)

if("${Kokkos_COMPILE_LANGUAGE}" STREQUAL "CUDA")
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND Kokkos_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES ${Kokkos_CUDA_ARCHITECTURES})
  endif()
  enable_language(CUDA)
endif()
include(FerryKokkosWorkarounds)

# Sources for builds without CMake include the others.
file(GLOB_RECURSE ferry_files RELATIVE "${PROJECT_SOURCE_DIR}" CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/include/ferry/*.hpp" "${PROJECT_SOURCE_DIR}/src/*.cpp" "${PROJECT_SOURCE_DIR}/backends/host/*.cpp")
list(FILTER ferry_files EXCLUDE REGEX "^src/ferry[a-z_]*\\.cpp$")
if(NOT ferry_backend STREQUAL "host")
  file(GLOB_RECURSE device_sources RELATIVE "${PROJECT_SOURCE_DIR}" CONFIGURE_DEPENDS
       "${PROJECT_SOURCE_DIR}/backends/${ferry_backend}/*.cpp")
  list(APPEND ferry_files ${device_sources})
endif()
if(ferry_has_device)
  # nvcc takes minutes for the common verbs: they are the component instances.
  list(FILTER ferry_files EXCLUDE REGEX "^src/instances/")
endif()

# Most of a source's time are the headers it includes, so few batches of sources are compiled as one each. A program over the
# static library gets whole objects: what every verb needs, optimizers and other kinds of tables, loaders, and the verbs that the
# library holds lie in objects of their own. Of these a program keeps what it calls when it is linked with --gc-sections.
foreach(source IN LISTS ferry_files)
  if(source MATCHES "^src/instances/")
    set(group verbs)
  elseif(FERRY_TEST_UNITY GREATER 1 OR FERRY_TEST_SAMPLE STREQUAL "nvcc")
    set(group whole)
  elseif(source MATCHES "^src/(bags|cache|interop|loader|optim|quantized)/")
    set(group upper)
  else()
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

# ferry_add_library(<target> <component>): takes its files out of ferry_files.
function(ferry_add_library library component)
  set(sources "${ferry_files}")
  if(DEFINED ferry_folders_${component})
    list(FILTER sources INCLUDE REGEX "^(src|include/ferry)/(${ferry_folders_${component}})[/.]")
  endif()
  list(REMOVE_ITEM ferry_files ${sources})
  set(ferry_files "${ferry_files}" PARENT_SCOPE)
  set(headers "${sources}")
  list(FILTER headers INCLUDE REGEX "\\.hpp$")
  list(REMOVE_ITEM sources ${headers})

  add_library(${library} ${sources})
  target_sources(${library} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})
  target_compile_features(${library} PUBLIC cxx_std_20)
  target_link_libraries(${library} PRIVATE $<BUILD_INTERFACE:ferry_kokkos_workarounds>)
  # Loops of the host's kernels for AVX2 as well, which processors that have it take. Without the optimiser both copies are equal.
  target_compile_definitions(${library} PRIVATE "$<$<NOT:$<CONFIG:Debug>>:FERRY_DISPATCH_AVX2>")
  ferry_target_language(${library})
  # The exported target gets the CUDA standard from ferryConfig.cmake, because the language is the consumer's to enable.
  if("cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    target_compile_features(${library} INTERFACE $<BUILD_INTERFACE:cuda_std_20>)
  endif()
  target_compile_options(${library} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>:-ffunction-sections;-fdata-sections>")
  # A project around ferry without a build type does not mean a library without optimiser.
  if(NOT ferry_has_configurations AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CXX_FLAGS MATCHES "-O")
    foreach(language IN ITEMS CXX CUDA)
      separate_arguments(release UNIX_COMMAND "${CMAKE_${language}_FLAGS_RELEASE}")
      target_compile_options(${library} PRIVATE "$<$<COMPILE_LANGUAGE:${language}>:${release}>")
    endforeach()
  endif()
  # For targets of a project around ferry its headers are those of a system: their warnings are not that project's.
  if(NOT PROJECT_IS_TOP_LEVEL)
    set_target_properties(${library} PROPERTIES SYSTEM ON)
  endif()
  set_target_properties(
    ${library}
    PROPERTIES EXPORT_NAME "${component}"
               POSITION_INDEPENDENT_CODE ON
               VERSION "${PROJECT_VERSION}"
               SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}"
               INSTALL_RPATH_USE_LINK_PATH ON # of the libraries it was linked with
               UNITY_BUILD ON
               UNITY_BUILD_MODE GROUP)
  ferry_set_visibility(${library})
endfunction()

set(ferry_libraries ferry)
foreach(component IN ITEMS distributed io)
  if(component IN_LIST ferry_components)
    ferry_add_library(ferry_${component} ${component})
    list(APPEND ferry_libraries ferry_${component})
    add_library(ferry::${component} ALIAS ferry_${component})
    set_target_properties(ferry_${component} PROPERTIES INSTALL_RPATH "$ORIGIN")  # of the libraries beside it
  else()
    list(FILTER ferry_files EXCLUDE REGEX "^(src|include/ferry)/(${ferry_folders_${component}})[/.]")
  endif()
endforeach()
ferry_add_library(ferry ferry)
target_link_libraries(ferry PUBLIC Kokkos::kokkos Boost::headers Threads::Threads)
# Programs and the library agree on the backend.
if(FERRY_BACKEND STREQUAL "kokkos")
  target_compile_definitions(ferry PUBLIC FERRY_BACKEND_KOKKOS)
endif()
# Clang would fuse multiplications and additions of a device, so that the last bits of results differ from hosts'.
if(ferry_has_device)
  target_compile_options(ferry PUBLIC "$<$<COMPILE_LANG_AND_ID:CXX,Clang,IntelLLVM>:-ffp-contract=off>")
endif()
if(TARGET ferry_io)
  target_include_directories(ferry_io SYSTEM PRIVATE "${XXHASH_INCLUDE_DIR}")
  target_link_libraries(ferry_io PUBLIC ferry PRIVATE ISAL::isal $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
endif()
if(TARGET ferry_distributed)
  target_link_libraries(ferry_distributed PUBLIC ferry_io)
endif()
# Who names components gets these; who names none gets all by ferry::ferry, as ferryConfig.cmake does.
if(FERRY_COMPONENTS)
  add_library(ferry::ferry ALIAS ferry)
else()
  add_library(ferry::ferry ALIAS ferry_distributed)
endif()
get_target_property(ferry_type ferry TYPE)
