#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the extension into ferry_tables/, for the Python that runs this script.

    python3 build.py [--kokkos FOLDER] [--prefix FOLDER]... [--jobs N] [-- CMAKE OPTIONS]

    --kokkos   where Kokkos is installed; it must be a shared library or position-independent
               (CMAKE_POSITION_INDEPENDENT_CODE=ON). With CUDA in it, the tables are for the GPU.
    --prefix   folders where CMake finds Boost, or Kokkos

Needs CMake 3.25, a C++20 compiler, Python's headers, and nanobind (pip install nanobind).
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--kokkos")
    arguments.add_argument("--prefix", action="append", default=[])
    arguments.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments.add_argument("--build", default=str(Path(tempfile.gettempdir()) / "ferry_tables_build"))
    arguments.add_argument("cmake", nargs="*")
    given = arguments.parse_args()

    configure = ["cmake", "-S", str(HERE / "extension"), "-B", given.build, f"-DPython_EXECUTABLE={sys.executable}",
                 f"-DFERRY_TABLES_OUTPUT={HERE / 'ferry_tables'}"]
    if given.kokkos:
        configure.append(f"-DKokkos_ROOT={given.kokkos}")
    if given.prefix:
        configure.append("-DCMAKE_PREFIX_PATH=" + ";".join(given.prefix))
    subprocess.run(configure + given.cmake, check=True)
    subprocess.run(["cmake", "--build", given.build, "--parallel", str(given.jobs)], check=True)


if __name__ == "__main__":
    main()
