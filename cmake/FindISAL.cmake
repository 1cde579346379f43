# SPDX-License-Identifier: Apache-2.0
# Intel's ISA-L, whose packages bring no CMake files: the target ISAL::isal. A program that links ferry needs the library alone.
include(FindPackageHandleStandardArgs)

find_path(ISAL_INCLUDE_DIR isa-l/crc.h)
find_library(ISAL_LIBRARY isal)
mark_as_advanced(ISAL_INCLUDE_DIR ISAL_LIBRARY)
find_package_handle_standard_args(ISAL REQUIRED_VARS ISAL_LIBRARY
                                  REASON_FAILURE_MESSAGE "Debian and Ubuntu have it in libisal-dev")

if(ISAL_FOUND AND NOT TARGET ISAL::isal)
  add_library(ISAL::isal UNKNOWN IMPORTED)
  set_target_properties(ISAL::isal PROPERTIES IMPORTED_LOCATION "${ISAL_LIBRARY}")
  if(ISAL_INCLUDE_DIR)
    set_target_properties(ISAL::isal PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${ISAL_INCLUDE_DIR}")
  endif()
  if(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
    set_target_properties(ISAL::isal PROPERTIES IMPORTED_GLOBAL ON)
  endif()
endif()
