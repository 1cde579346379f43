#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a program with make, ferry's headers and src/ferry.cpp alone, runs it, and links it without the library.

    check.py WORK_FOLDER KEY=VALUE...    the variables go to make
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SENTENCE = "the_library_is_not_linked_so_link_the_target_ferry_or_compile_src_ferry_cpp"


def make(folder, target, variables):
    return subprocess.run(["make", "-C", str(folder), "-f", str(HERE / "Makefile"), target, f"FERRY={HERE.parents[1]}", *variables],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def main():
    folder, variables = Path(sys.argv[1]), sys.argv[2:]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    built = make(folder, "gather_rows", variables)
    if built.returncode != 0:
        sys.exit(f"make failed:\n{built.stdout}")
    environment = os.environ | {"OMP_NUM_THREADS": "2", "OMP_PROC_BIND": "false"}
    output = subprocess.run([str(folder / "gather_rows")], text=True, capture_output=True, env=environment, check=False).stdout
    if "gathered 6 rows" not in output:
        sys.exit(f"the program printed something else:\n{output}")
    unlinked = make(folder, "unlinked", variables)
    if unlinked.returncode == 0:
        sys.exit("the program links without ferry's library")
    if SENTENCE not in unlinked.stdout:
        sys.exit(f"the linker does not print {SENTENCE}:\n{unlinked.stdout}")
    print("built by make, run, and refused without the library")


if __name__ == "__main__":
    main()
