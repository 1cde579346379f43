#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program with each size of the host's registers, and expects the same results bit by bit.

    check_registers.py PROGRAM
"""

import os
import subprocess
import sys


def results_of(program, without):
    environment = {**os.environ, "FERRY_WITHOUT": without}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"FERRY_WITHOUT={without}: exit {done.returncode}\n{done.stderr}")
    first, *rest = done.stdout.splitlines()
    return first, rest


def main():
    program = sys.argv[1]
    largest, with_all = results_of(program, "")
    smallest, with_none = results_of(program, "avx2")
    print(f"{largest}; without AVX2: {smallest}; {len(with_all)} results")
    if not with_all:
        sys.exit("no results")
    if largest != "one version":
        _, used, _, can = largest.split()
        if used != can:
            sys.exit(f"the processor has registers of {can} bytes, {used} are used")
        if smallest.split()[1] != "0":
            sys.exit("FERRY_WITHOUT=avx2 is ignored")
    differ = [f"{a}  without AVX2: {b}" for a, b in zip(with_all, with_none) if a != b]
    if differ or len(with_all) != len(with_none):
        sys.exit("\n".join(["results differ:", *differ]))


main()
