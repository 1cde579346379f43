#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a program of each part of ferry with make, the headers and src/ferry.cpp alone, and runs it. Then links a program
without the library, and with one whose containers or strings have another layout.

    check.py WORK_FOLDER KEY=VALUE...    the variables go to make
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SENTENCE = "the_library_is_not_linked_so_link_the_target_ferry_or_compile_src_ferry_cpp"
OTHER_LAYOUTS = {"-D_GLIBCXX_DEBUG": "compile_the_library_of_ferry_with_GLIBCXX_DEBUG_because_this_program_has_it",
                 "-D_GLIBCXX_USE_CXX11_ABI=0":
                     "compile_the_library_of_ferry_with_GLIBCXX_USE_CXX11_ABI_0_because_this_program_has_it"}


def make(folder, target, variables):
    return subprocess.run(["make", "-C", str(folder), "-f", str(HERE / "Makefile"), target, f"FERRY={HERE.parents[1]}", *variables],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def build(folder, target, variables):
    built = make(folder, target, variables)
    if built.returncode != 0:
        sys.exit(f"make {target} failed:\n{built.stdout}")


def refuse(folder, target, variables, sentence):
    """Links the target, which must fail with this sentence."""
    (folder / "layout.o").unlink(missing_ok=True)
    refused = make(folder, target, variables)
    if refused.returncode == 0:
        sys.exit(f"{target} links with {variables}")
    if sentence not in refused.stdout:
        sys.exit(f"the linker does not print {sentence}:\n{refused.stdout}")


def main():
    folder, variables = Path(sys.argv[1]), sys.argv[2:]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    build(folder, "layout", variables)
    refuse(folder, "unlinked", variables, SENTENCE)
    for flag, sentence in OTHER_LAYOUTS.items():
        refuse(folder, "layout", [*variables, f"LAYOUT_FLAGS={flag}"], sentence)

    build(folder, "capabilities", variables)
    environment = os.environ | {"OMP_NUM_THREADS": "2", "OMP_PROC_BIND": "false", "OMP_WAIT_POLICY": "passive"}
    ran = subprocess.run([str(folder / "capabilities"), str(folder / "run")], text=True, capture_output=True, env=environment, check=False)
    if ran.returncode != 0 or ran.stdout != "2 0 1 100\n":
        sys.exit(f"the program printed something else:\n{ran.stdout}{ran.stderr}")
    print("built by make and run; refused without the library and with other containers or strings")


if __name__ == "__main__":
    main()
