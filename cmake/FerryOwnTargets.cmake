# SPDX-License-Identifier: Apache-2.0
# Helpers for ferry's own programs: tests, benchmarks and examples. Nothing here reaches a consumer.

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_UNITY_BUILD OFF)
# Test programs share a precompiled header, which position independent code for a library would not fit.
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)

find_program(FERRY_CCACHE ccache)
mark_as_advanced(FERRY_CCACHE)
foreach(language IN ITEMS CXX CUDA)
  if(FERRY_CCACHE AND NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER "${FERRY_CCACHE}")
    set_target_properties(${ferry_libraries} PROPERTIES ${language}_COMPILER_LAUNCHER "${FERRY_CCACHE}")
  endif()
endforeach()

# A tenth of a test's compile time is GCC looking for memory to give back; it is looked for from a gigabyte on.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # nvcc's host compiler then is, too
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=--param=ggc-min-heapsize=1000000>")
endif()

# The library of a sample holds no verbs: its tests compile those that they call, which are few. So do the programs of a build that
# calls none of them.
option(FERRY_LIBRARY_VERBS "The library on a host holds the verbs of src/instances" ON)
mark_as_advanced(FERRY_LIBRARY_VERBS)
if((FERRY_TEST_SAMPLE OR NOT FERRY_LIBRARY_VERBS) AND NOT ferry_has_device)
  file(GLOB instances CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/instances/*.cpp")
  set_source_files_properties(${instances} PROPERTIES HEADER_FILE_ONLY ON)
  target_compile_definitions(ferry PUBLIC $<BUILD_INTERFACE:FERRY_WITHOUT_INSTANCES>)
endif()
# A library that will not be run need not be fast: nvcc passes this level to its host compiler only.
if(FERRY_TEST_SAMPLE STREQUAL "nvcc")
  set(CMAKE_CUDA_FLAGS_RELEASE "-O0 -DNDEBUG")
endif()

foreach(library IN LISTS ferry_libraries)
  # Tests that let each allocation of a library without optimiser fail take a minute longer than its optimiser, which keeps the
  # checks of the sanitizers.
  if(FERRY_TEST_SAMPLE STREQUAL "sanitizers" AND CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_CXX_FLAGS_DEBUG MATCHES "-O0")
    target_compile_options(${library} PRIVATE -Og)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT Kokkos_ENABLE_CUDA)
    target_compile_options(${library} PRIVATE --param=ggc-min-heapsize=1000000)
  endif()
endforeach()

# Warnings are errors here and only here, and not for those who build ferry-info alone: their compilers may know warnings that
# ours does not.
add_library(ferry_warnings INTERFACE)
if(FERRY_BUILD_TESTS)
  set(ferry_errors ";-Werror")
  set(ferry_nvcc_errors ",-Werror;-Werror=all-warnings")
endif()
set(ferry_host_warnings -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
list(JOIN ferry_host_warnings "," ferry_host_warnings_joined)
# nvcc hands generated code to the host compiler; -Wconversion and -Wpedantic complain about that code, not about ours. The
# same holds where nvcc poses as the C++ compiler (nvcc_wrapper, Kokkos' launch compiler).
set(ferry_cxx_warnings ${ferry_host_warnings})
if(NOT Kokkos_ENABLE_CUDA)
  list(APPEND ferry_cxx_warnings -Wconversion -Wpedantic)
endif()
target_compile_options(
  ferry_warnings
  INTERFACE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:${ferry_cxx_warnings}${ferry_errors}>"
    "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=${ferry_host_warnings_joined}${ferry_nvcc_errors}>")

target_link_libraries(ferry_warnings INTERFACE ferry_kokkos_workarounds)

# ferry_add_executable(<name> <source>...): a program over ferry::ferry, in the language that Kokkos asks for.
function(ferry_add_executable name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE ferry::ferry ferry_warnings)
  ferry_target_language(${name})
endfunction()

# ferry_add_benchmark(<name> <source>...): as above, and part of the target ferry_benchmarks.
add_custom_target(ferry_benchmarks)
function(ferry_add_benchmark name)
  ferry_add_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/benchmarks")
  add_dependencies(ferry_benchmarks ${name})
endfunction()

# ferry_test_options(<target>): nine tenths of a test's compile time at -Og are the optimiser, whose inliner works for what must be
# inlined at -O0 as well. Without either it is half. The verbs that the library holds, four benchmarks and the programs below flags/
# check what is computed at full optimization. (For CUDA see tests/CMakeLists.txt: nvcc does not take a second level.)
function(ferry_test_options target)
  target_compile_options(${target} PRIVATE "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O0>")
  if(NOT Kokkos_ENABLE_CUDA AND CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    # An attribute may be written as a macro; code of another instruction set is not compiled here.
    target_compile_definitions(${target} PRIVATE always_inline=unused)
  endif()
  # A twentieth of a test's functions are std::move, std::forward and their like.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-ffold-simple-inlines>")
  endif()
endfunction()

# ferry_test_precompiled(<target>): the tests' precompiled header, for a target with their flags.
function(ferry_test_precompiled target)
  if(FERRY_TEST_PCH AND TARGET ferry_test_support)
    target_precompile_headers(${target} REUSE_FROM ferry_test_support)
  endif()
endfunction()

# ferry_check_only(<target>): the same for a benchmark or an example, where the build is to check it and not to time it, and with
# the tests' precompiled header.
function(ferry_check_only target)
  if(FERRY_CHECK_ONLY)
    ferry_test_options(${target})
    ferry_test_precompiled(${target})
  endif()
endfunction()

# ferry_add_test(<name> [ONE_RUN] [OWN_OPTIONS] <source>...): a Catch2 program. On a host backend it runs once for each number of
# OpenMP threads; ONE_RUN, with two threads: the code under test shares its work among threads as that of other programs,
# which run with each number. With OWN_OPTIONS the caller chooses how it is compiled.
set(FERRY_TEST_THREADS 1 5 CACHE STRING "Numbers of OpenMP threads with which each test program runs")
# Programs that take long begin first, so that no processor waits for one in the end.
set(FERRY_LONG_TESTS ferry_tests_heap ferry_tests_rows ferry_tests_quantized ferry_tests_distributed ferry_tests_io ferry_tests_cache)
set(FERRY_TEST_UNITY 1 CACHE STRING "Number of a test program's sources that are compiled as one")
function(ferry_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "ONE_RUN;OWN_OPTIONS" "" "")
  set(test_sources ${test_UNPARSED_ARGUMENTS})
  ferry_add_executable(${name} ${test_sources})
  # Sources of one program instantiate the same templates: batches of them compile in a third of the time. Of even size.
  list(LENGTH test_sources sources)
  if(FERRY_TEST_UNITY GREATER 1 AND sources GREATER 1)
    math(EXPR batches "(${sources} + ${FERRY_TEST_UNITY} - 1) / ${FERRY_TEST_UNITY}")
    math(EXPR batch "(${sources} + ${batches} - 1) / ${batches}")
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
  target_link_libraries(${name} PRIVATE ferry_test_support)
  if(NOT test_OWN_OPTIONS)
    ferry_test_options(${name})
    ferry_test_precompiled(${name})
  endif()
  if(Kokkos_ENABLE_CUDA)
    add_test(NAME ${name} COMMAND ${name})
    # One GPU, and some tests fill it. OpenMP's threads wait passively: where one processor is busy, those that spin lose a time
    # slice in each kernel of the host.
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "OMP_PROC_BIND=false;OMP_WAIT_POLICY=passive" LABELS unit RUN_SERIAL ON)
    return()
  endif()
  # Threads that wait leave their processor to other tests: each program counts as one. Long tests to which the number of OpenMP
  # threads makes no difference have the tag [once].
  set(numbers ${FERRY_TEST_THREADS})
  list(LENGTH numbers runs)
  if(test_ONE_RUN AND runs GREATER 1)
    set(numbers 2)
  endif()
  list(GET numbers -1 last)
  foreach(threads IN LISTS numbers)
    set(without)
    set(cost 0)
    if(NOT threads EQUAL last)
      set(without "~[once]")
    elseif(name IN_LIST FERRY_LONG_TESTS)
      set(cost 50)
    endif()
    add_test(NAME ${name}.threads${threads} COMMAND ${name} ${without})
    set_tests_properties(
      ${name}.threads${threads}
      PROPERTIES ENVIRONMENT "OMP_NUM_THREADS=${threads};OMP_PROC_BIND=false;OMP_WAIT_POLICY=passive" LABELS unit COST "${cost}")
  endforeach()
endfunction()
