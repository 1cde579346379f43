# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=... -DFILE=<text> -DOPTIONS="..." -P train.cmake: trains, then looks at what was printed and saved.
set(vectors "${FILE}.vectors.txt")
file(REMOVE "${vectors}")
execute_process(
  COMMAND "${PROGRAM}" "${FILE}" --epochs 4 --dim 9 --batch 1000 --subsample 1e-2 --held-out 0.2 --neighbors sail,nowhere --output
          "${vectors}" ${OPTIONS}
  RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
message("${out}${err}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "exit status ${status}")
endif()

if(NOT out MATCHES "epoch  0 +AUC 0\\.5000")
  message(FATAL_ERROR "before the first step the ranking must be a coin")
endif()
if(NOT out MATCHES "epoch  4 +loss [0-9.]+ +AUC ([0-9.]+)" OR CMAKE_MATCH_1 LESS 0.6)
  message(FATAL_ERROR "the AUC of the last epoch is missing or below 0.6")
endif()
# Batches do not depend on the number of threads that make them.
string(REGEX MATCHALL "loss [0-9.]+ +AUC [0-9.]+" learned "${out}")
list(LENGTH learned epochs)
execute_process(
  COMMAND "${PROGRAM}" "${FILE}" --epochs 4 --dim 9 --batch 1000 --subsample 1e-2 --held-out 0.2 --workers 3 ${OPTIONS}
  RESULT_VARIABLE status OUTPUT_VARIABLE again ERROR_VARIABLE err)
string(REGEX MATCHALL "loss [0-9.]+ +AUC [0-9.]+" learned_again "${again}")
if(NOT status EQUAL 0 OR NOT epochs EQUAL 4 OR NOT learned STREQUAL learned_again)
  message(FATAL_ERROR "with three workers: exit status ${status}, '${learned_again}' in place of '${learned}'\n${err}")
endif()

if(NOT out MATCHES "\n  sail  " OR NOT out MATCHES "nowhere +is not among")
  message(FATAL_ERROR "the neighbours are missing")
endif()

# word2vec's text format: "<words> <dim>", then a word and its values on each line.
file(STRINGS "${vectors}" lines ENCODING UTF-8)
list(POP_FRONT lines header)
list(LENGTH lines count)
if(NOT header STREQUAL "${count} 9")
  message(FATAL_ERROR "the header is '${header}', but ${count} lines follow")
endif()
set(number "-?[0-9]+(\\.[0-9]+)?(e[-+][0-9]+)?")
foreach(line IN LISTS lines)
  string(REGEX MATCHALL " ${number}" values "${line}")
  list(LENGTH values width)
  if(NOT width EQUAL 9 OR NOT line MATCHES "^[^ ]+( ${number})+$")
    message(FATAL_ERROR "not a word and 9 values: ${line}")
  endif()
endforeach()
if(NOT lines MATCHES "café ")
  message(FATAL_ERROR "multi-byte letters were not kept")
endif()
