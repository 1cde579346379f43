# SPDX-License-Identifier: Apache-2.0
# Reads the version from the header, so that the number is in one place.
function(ferry_read_version header result)
  file(STRINGS "${header}" lines REGEX "^#define FERRY_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
  foreach(part IN ITEMS MAJOR MINOR PATCH)
    if(NOT "${lines}" MATCHES "FERRY_VERSION_${part} +([0-9]+)")
      message(FATAL_ERROR "${header} does not define FERRY_VERSION_${part}")
    endif()
    list(APPEND version ${CMAKE_MATCH_1})
  endforeach()
  list(JOIN version "." version)
  set(${result} ${version} PARENT_SCOPE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
endfunction()
