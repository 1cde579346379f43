# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=... -DSENTENCE=<regex> -DARGUMENTS=... -P refuse.cmake: the program fails and says why on stderr.
execute_process(COMMAND "${PROGRAM}" ${ARGUMENTS} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
message("${out}${err}")
if(NOT status MATCHES "^[0-9]+$" OR status EQUAL 0)
  message(FATAL_ERROR "the program ended with '${status}'")
endif()
if(NOT err MATCHES "${SENTENCE}")
  message(FATAL_ERROR "stderr does not say: ${SENTENCE}")
endif()
