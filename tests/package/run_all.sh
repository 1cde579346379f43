#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Consumes ferry as a user would, with the program next to this script:
#   find_package      from an installation into a prefix
#   add_subdirectory  from the sources
#   conan             from the package that `conan create` makes (only where a Conan profile is given)
#
# usage: run_all.sh BUILD_FOLDER [CONAN_PROFILE]
# BUILD_FOLDER is a configured build of ferry; its Kokkos and its CUDA architectures are used here too.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  sed -n '3,9s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
build=$(cd "$1" && pwd)
profile=${2:-}
work=$build/package

from_cache() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

kokkos=$(from_cache Kokkos_DIR)
settings=(-G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_MAKE_PROGRAM=$(from_cache CMAKE_MAKE_PROGRAM)")
cuda=0
if grep -q '^set(Kokkos_DEVICES .*CUDA' "$kokkos/KokkosConfigCommon.cmake"; then
  cuda=1
  architectures=$(sed -n 's/^ *set(Kokkos_CUDA_ARCHITECTURES \(.*\))/\1/p' "$kokkos/KokkosConfigCommon.cmake")
  settings+=("-DCMAKE_CUDA_ARCHITECTURES=${architectures:-native}")
  # A user of such a Kokkos does the same.
  if grep -q '^FERRY_KOKKOS_KNOWS_CUDA_13:INTERNAL=$' "$build/CMakeCache.txt"; then
    settings+=("-DCMAKE_CUDA_FLAGS=-include $root/cmake/kokkos_before_cuda13.hpp")
  fi
fi
export OMP_PROC_BIND=${OMP_PROC_BIND:-false}
# Other programs compile next to these.
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-2}

run_program() {
  if [ "$cuda" = 1 ] && ! { nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }; then
    printf '%s: compiled and linked; no GPU to run it\n' "$2"
    return
  fi
  printf '%s: ' "$2"
  "$1/gather_rows"
}

rm -rf "$work"

# Every CMake on this machine that can do it: the one on PATH and the distribution's.
cmakes=("$(command -v cmake)")
if [ -x /usr/bin/cmake ] && [ "${cmakes[0]}" != /usr/bin/cmake ] && [ "$cuda" = 0 ]; then
  version=$(/usr/bin/cmake --version | sed -n '1s/.* //p')
  if [ "$(printf '%s\n' 3.25.0 "$version" | sort -V | head -1)" = 3.25.0 ]; then cmakes+=(/usr/bin/cmake); fi
fi

# consume NAME LABEL CMAKE OPTION...: configures, builds and runs the program in a folder of its own.
consume() {
  local folder=$work/$1 label=$2 cmake=$3
  shift 3
  "$cmake" -S "$here" -B "$folder" "${settings[@]}" "$@"
  # nvcc takes minutes for the library, whose objects are those of an installation: the program is compiled, with its flags.
  if [ "$cuda" = 1 ] && [ "${folder%-add_subdirectory}" != "$folder" ]; then
    "$cmake" --build "$folder" --target CMakeFiles/gather_rows.dir/main.cpp.o
    printf '%s: compiled\n' "$label"
    return
  fi
  "$cmake" --build "$folder"
  run_program "$folder" "$label"
}

# A build from the sources is told of Kokkos by its prefix, as README says; an installation knows its own.
prefix_of_kokkos=${kokkos%/lib*/cmake/Kokkos}
# The library is compiled once more for the ways that begin with its sources, quickly: other tests run its code.
quickly=("-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG")

# Two at a time.
running=()
in_turn() {
  if [ "${#running[@]}" -ge 2 ]; then
    wait "${running[0]}"
    running=("${running[@]:1}")
  fi
  (set -e; consume "$@") &
  running+=("$!")
}

cmake --install "$build" --prefix "$work/prefix" >/dev/null
for cmake in "${cmakes[@]}"; do
  label="CMake $("$cmake" --version | sed -n '1s/.* //p')"
  folder=${label// /-}
  in_turn "$folder-find_package" "find_package, $label" "$cmake" "-DCMAKE_PREFIX_PATH=$work/prefix"
  in_turn "$folder-add_subdirectory" "add_subdirectory, $label" "$cmake" "-DFERRY_SOURCE_DIR=$root" \
    "-DKokkos_ROOT=$prefix_of_kokkos" "${quickly[@]}"
done
for process in "${running[@]}"; do wait "$process"; done

# In a project without a build type the library is optimised, and the project's own sources are not.
if [ "$cuda" = 0 ]; then
  "${cmakes[0]}" -S "$here" -B "$work/no_type" "${settings[@]}" -DCMAKE_BUILD_TYPE= "-DFERRY_SOURCE_DIR=$root" \
    "-DKokkos_ROOT=$prefix_of_kokkos" >/dev/null
  commands=$("$(from_cache CMAKE_MAKE_PROGRAM)" -C "$work/no_type" -t commands gather_rows | grep ' -c ')
  if grep 'ferry\.dir' <<<"$commands" | grep -v -e '-O3 -DNDEBUG' || grep 'main\.cpp' <<<"$commands" | grep -e '-O'; then
    printf 'these commands of a project without a build type have the wrong options\n'
    exit 1
  fi
  printf 'add_subdirectory without a build type: the library is optimised\n'
fi

# README's first program, under the warnings of a careful user.
if [ "$cuda" = 0 ]; then
  "${cmakes[0]}" -S "$here" -B "$work/readme" "${settings[@]}" -DCMAKE_BUILD_TYPE= "-DCMAKE_PREFIX_PATH=$work/prefix" \
    "-DFERRY_README=$root/README.md" >/dev/null
  "${cmakes[0]}" --build "$work/readme"
  ctest --test-dir "$work/readme" --no-tests=error --output-on-failure
fi

# nvcc takes long for the library, and one CMake is enough. Compiled quickly: tests/instances tests its code.
if [ "$cuda" = 0 ]; then
  label="CMake $("${cmakes[0]}" --version | sed -n '1s/.* //p')"
  consume "${label// /-}-instances" "find_package with instances, $label" "${cmakes[0]}" "-DCMAKE_PREFIX_PATH=$work/prefix" \
    -DFERRY_LIBRARY=ferry::instances "${quickly[@]}"
fi

# Programs with files and ranks: over the components that they name, and over ferry::ferry alone for those that name none. A program
# that names the main one does not get the others.
if [ "$cuda" = 0 ]; then
  for wanted in "" "main;io;distributed"; do
    folder=components-${wanted:+named}
    consume "$folder" "find_package, components ${wanted:-none}" "${cmakes[0]}" "-DCMAKE_PREFIX_PATH=$work/prefix" "${quickly[@]}" \
      "-DFERRY_WANTED=$wanted" "-DFERRY_PROGRAMS=$root/tests/link"
    ctest --test-dir "$work/$folder" --no-tests=error --output-on-failure
  done
  if "$(from_cache CMAKE_MAKE_PROGRAM)" -C "$work/components-named" -t commands gather_rows | grep -E 'ferry_(io|distributed)|isal'; then
    printf 'a program of the component main gets more than that\n'
    exit 1
  fi
fi

if [ -n "$profile" ]; then
  # Quickly: that a program and ferry-info find the shared library. readme.py makes the static one, and the same program on it.
  variables='tools.cmake.cmaketoolchain:extra_variables={"CMAKE_CXX_FLAGS_DEBUG": "-O0"}'
  conan create "$root" --build=missing --update -pr:a "$profile" -o "ferry/*:shared=True" -s "ferry/*:build_type=Debug" \
    -c "ferry/*:$variables"
fi
