# SPDX-License-Identifier: Apache-2.0
# ferry_add_nccl()
#
# Makes the target ferry::nccl where NCCL is found: ferry::distributed with NCCL's header and library, for
# ferry/distributed/nccl.hpp. Searches NCCL_ROOT, the CUDA toolkit, then the system. The wheels of Python have the library by its
# full name only. find_package(ferry COMPONENTS nccl) calls this.
function(ferry_add_nccl)
  if(TARGET ferry::nccl OR NOT TARGET ferry::distributed)
    return()
  endif()
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${NCCL_ROOT} $ENV{NCCL_ROOT} ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
  find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${NCCL_ROOT} $ENV{NCCL_ROOT} ${CUDAToolkit_LIBRARY_DIR}
               PATH_SUFFIXES lib lib64)
  mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
  if(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
    return()
  endif()
  add_library(ferry_nccl INTERFACE)
  add_library(ferry::nccl ALIAS ferry_nccl)
  target_include_directories(ferry_nccl SYSTEM INTERFACE "${NCCL_INCLUDE_DIR}")
  target_link_libraries(ferry_nccl INTERFACE ferry::distributed "${NCCL_LIBRARY}")
endfunction()
