#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where a kernel of a PTX file gets its functor from anywhere but its argument, or may take more registers than a
block of its threads has: the host waits for the launches of the first, and those of the second are refused."""

import re
import sys

ENTRY = re.compile(r"\.entry (\w+)\((.*?)\)\s*(.*?)\{", re.S)
BUFFERED = re.compile(r"cuda_parallel_launch_(?:constant|global)_memory")


def faults_of(listing, words):
    """(kernel, what is wrong) for all kernels; those of teams, and none else, must name the size of their blocks."""
    faults, seen = [], {word: False for word in words}
    for name, _, directives in ENTRY.findall(listing):
        for word in words:
            seen[word] = seen[word] or word in name
        if BUFFERED.search(name):
            faults.append((name, "gets its functor from a buffer"))
        if "TeamPolicy" in name and ".maxntid" not in directives:
            faults.append((name, "does not bound its threads"))
    return faults + [(word, "is the name of no kernel") for word, found in seen.items() if not found]


def self_test():
    entry = ".visible .entry _ZN6Kokkos4Impl{}I{}Ev(\n\t.param .b8 a[8]\n)\n{}{{\n\tret;\n}}\n"
    good = entry.format("33cuda_parallel_launch_local_memory", "10TeamPolicystep", ".maxntid 512, 1, 1\n")
    assert faults_of(good, ["step"]) == []
    assert len(faults_of(good, ["other"])) == 1
    assert len(faults_of(good.replace(".maxntid 512, 1, 1\n", ""), [])) == 1
    assert len(faults_of(good.replace("local", "constant"), [])) == 1
    assert len(faults_of(good.replace("local", "global"), [])) == 1
    assert faults_of(good.replace("TeamPolicy", "RangePolic").replace(".maxntid 512, 1, 1\n", ""), []) == []


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    path, *words = sys.argv[1:]
    with open(path, encoding="utf-8") as listing:
        faults = faults_of(listing.read(), words)
    for name, fault in faults:
        print(f"{fault}: {name[:200]}")
    if faults:
        sys.exit("some launches would wait or be refused")


main()
