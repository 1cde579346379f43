#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails unless the compiler has vectorised every function of an assembly listing (GCC or Clang, x86-64) that is named, and
calls no square root there."""

import re
import subprocess
import sys

ARITHMETIC = re.compile(r"\s+v?(?:add|sub|mul|div|sqrt|max|min|fn?m(?:add|sub)\d*)(ps|ss)\b")
CALL = re.compile(r"\s+(?:call|jmp)\s+sqrtf?\b")


def arithmetic_of(listing, function):
    """Packed and scalar float instructions and calls of each function whose demangled name holds the word."""
    counts, name = {}, None
    for line in listing.splitlines():
        if match := re.match(r"(_Z\w+)(?:\.\w+)*:", line):  # with the names of copies that a compiler makes for itself
            name = match[1] if function in match[1] else None
            if name:
                counts.setdefault(name, {"ps": 0, "ss": 0, "calls": 0})
        elif ".cfi_endproc" in line:
            name = None
        elif name and (match := ARITHMETIC.match(line)):
            counts[name][match[1]] += 1
        elif name and CALL.match(line):
            counts[name]["calls"] += 1
    demangled = subprocess.run(["c++filt"], input="\n".join(counts), capture_output=True, text=True, check=True).stdout
    return dict(zip(demangled.splitlines(), counts.values()))


def is_vectorised(count):
    """Scalar instructions prepare what a loop needs and take a row's last one to three elements; a loop that was unrolled or
    not vectorised has more of them."""
    return count["ps"] > 2 * count["ss"] and not count["calls"]


def self_test():
    packed = "_Z4stepv:\n\tmulps\t%xmm0, %xmm1\n\tvsqrtps\t%xmm0, %xmm1\n\t.cfi_endproc\n"
    assert all(map(is_vectorised, arithmetic_of(packed, "step").values()))
    assert len(arithmetic_of(packed, "other")) == 0
    assert arithmetic_of(packed.replace("stepv:", "stepv.isra.0:"), "step") == arithmetic_of(packed, "step")
    scalar = packed.replace("sqrtps", "sqrtss")
    assert not any(map(is_vectorised, arithmetic_of(scalar, "step").values()))
    for call in ("call\tsqrtf", "call\tsqrt@PLT", "jmp\tsqrtf"):
        assert not any(map(is_vectorised, arithmetic_of(packed.replace("\t.cfi", f"\t{call}\n\t.cfi"), "step").values())), call
    assert not is_vectorised({"ps": 0, "ss": 0, "calls": 0})


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    compiler, function, *arguments = sys.argv[1:]
    listing = subprocess.run([compiler, *arguments, "-S", "-o", "-"], capture_output=True, text=True)
    if listing.returncode:
        sys.exit(listing.stderr)
    counts = arithmetic_of(listing.stdout, function)
    for name, count in counts.items():
        verdict = "vectorised" if is_vectorised(count) else "NOT VECTORISED"
        print(f"{verdict}: {count['ps']} packed, {count['ss']} scalar, {count['calls']} calls: {name[:100]}")
    if not counts or not all(map(is_vectorised, counts.values())):
        sys.exit("some of them are not")


main()
