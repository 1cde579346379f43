# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=... -DRANKS_PROGRAM=... [-DMPI_PROGRAM=... -DLAUNCH="mpiexec ... -n"] -DFILE=<text> -P ranks.cmake: trains with
# ordinary tables, then with tables over ranks, and compares all digits that were learned and every byte of the saved vectors.
separate_arguments(launch UNIX_COMMAND "${LAUNCH}")

# train(<name> <command>...): sets `learned` to what the epochs printed.
function(train name)
  set(vectors "${FILE}.${name}.txt")
  file(REMOVE "${vectors}")
  execute_process(
    COMMAND ${ARGN} "${FILE}" --epochs 3 --dim 9 --batch 1000 --subsample 1e-2 --held-out 0.2 --optimizer adam --lr 0.05
            --output "${vectors}" ${more}
    RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
  string(REGEX MATCHALL "(loss [0-9.]+ +)?AUC [0-9.]+" found "${out}")
  list(LENGTH found lines)
  if(NOT status EQUAL 0 OR NOT lines EQUAL 4)
    message(FATAL_ERROR "${name}: exit status ${status}\n${out}${err}")
  endif()
  message("${name}: ${found}")
  set(learned "${found}" PARENT_SCOPE)
endfunction()

function(compare name)
  train(${name} ${ARGN})
  if(NOT learned STREQUAL expected)
    message(FATAL_ERROR "${name} learned '${learned}' in place of '${expected}'")
  endif()
  execute_process(COMMAND "${CMAKE_COMMAND}" -E compare_files "${FILE}.alone.txt" "${FILE}.${name}.txt" RESULT_VARIABLE differ)
  if(differ)
    message(FATAL_ERROR "the vectors of ${name} differ from those of ordinary tables")
  endif()
endfunction()

train(alone "${PROGRAM}")
set(expected "${learned}")
foreach(ranks IN ITEMS 1 2 4)
  set(more --ranks ${ranks})
  compare(threads${ranks} "${RANKS_PROGRAM}")
  set(more "")
  if(MPI_PROGRAM)
    compare(processes${ranks} ${launch} ${ranks} "${MPI_PROGRAM}")
  endif()
endforeach()
