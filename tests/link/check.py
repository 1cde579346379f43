#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds programs of each library of ferry with make, the headers and one source of each library alone, and runs them. Also
links programs without a library that they need, and with one whose containers or strings have another layout.

    check.py WORK_FOLDER KEY=VALUE...    the variables go to make
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SENTENCE = "the_library_is_not_linked_so_link_the_target_{0}_or_compile_src_{0}_cpp"
PROGRAMS = {"rows": "2 0 1\n", "files": "2 100\n", "ranks": "0 1\n"}
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
    refuse(folder, "unlinked", variables, SENTENCE.format("ferry"))
    for flag, sentence in OTHER_LAYOUTS.items():
        refuse(folder, "layout", [*variables, f"LAYOUT_FLAGS={flag}"], sentence)

    environment = os.environ | {"OMP_NUM_THREADS": "2", "OMP_PROC_BIND": "false", "OMP_WAIT_POLICY": "passive"}
    for program, output in PROGRAMS.items():
        build(folder, program, variables)
        ran = subprocess.run([str(folder / program), str(folder / f"run_of_{program}")], text=True, capture_output=True, env=environment,
                             check=False)
        if ran.returncode != 0 or ran.stdout != output:
            sys.exit(f"{program} printed something else:\n{ran.stdout}{ran.stderr}")
    refuse(folder, "files_unlinked", variables, SENTENCE.format("ferry_io"))
    refuse(folder, "ranks_unlinked", variables, SENTENCE.format("ferry_distributed"))
    print("built by make and run; refused without a library and with other containers or strings")


if __name__ == "__main__":
    main()
