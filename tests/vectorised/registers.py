#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails unless the versions of host kernels for AVX2 in an assembly listing (GCC, x86-64) use its registers, without fused
multiply-add and without calls of what should be inlined, and all other functions do without them.

    registers.py WORDS COMPILER ARGUMENTS...   WORDS: each must be in the name of a kernel that computes with 32 bytes at once
"""

import re
import subprocess
import sys

AVX2 = "ferry::kernels::run_on_avx2<"
# Functions that only AVX2's versions call.
HELPER = "ferry::host::in_register<"
WIDE = re.compile(r"\s+v\w+\s.*%[yz]mm")
COMPUTES = re.compile(r"\s+v(?:add|sub|mul|div|sqrt)p[sd]\s.*%ymm")
FUSED = re.compile(r"\s+vfn?m(?:add|sub)\w*")
CALL = re.compile(r"\s+(?:call|jmp)\s+(_Z\w+|sqrtf?|mem\w+)")


def functions_of(listing):
    """Counts for each function by its demangled name."""
    found, name = {}, None
    for line in listing.splitlines():
        if match := re.match(r"(_Z\w+)(?:\.\w+)*:", line):
            name = match[1]
            found.setdefault(name, {"wide": 0, "computes": 0, "fused": 0, "calls": []})
        elif ".cfi_endproc" in line:
            name = None
        elif name:
            found[name]["wide"] += bool(WIDE.match(line))
            found[name]["computes"] += bool(COMPUTES.match(line))
            found[name]["fused"] += bool(FUSED.match(line))
            if match := CALL.match(line):
                found[name]["calls"].append(match[1])
    names = [*found, *(call for counts in found.values() for call in counts["calls"])]
    plain = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.splitlines()
    shown = dict(zip(names, plain))
    return {shown[name]: {**counts, "calls": [shown[call] for call in counts["calls"]]} for name, counts in found.items()}


def faults_of(functions, words):
    faults = []
    for name, counts in functions.items():
        if AVX2 in name.split("(")[0]:
            if counts["fused"]:
                faults.append(f"fused multiply-add in {name}")
            faults += [f"calls {call}: {name}" for call in counts["calls"]
                       if HELPER in call or "::apply<" in call or call in ("sqrt", "sqrtf")]
        elif counts["wide"] and HELPER not in name:
            faults.append(f"AVX outside of its versions: {name}")
    for word in words:
        if not any(counts["computes"] for name, counts in functions.items() if AVX2 in name and word in name):
            faults.append(f"no arithmetic on 32 bytes where a name holds {word}")
    return faults


def self_test():
    good = ("_ZN5ferry7kernels11run_on_avx2I4stepEEvRKT_:\n\tvmulps\t%ymm0, %ymm1, %ymm1\n\t.cfi_endproc\n"
            "_ZN5ferry7kernels10run_on_anyI4stepEEvRKT_:\n\tmulps\t%xmm0, %xmm1\n\t.cfi_endproc\n")
    assert not faults_of(functions_of(good), ["step"])
    assert faults_of(functions_of(good), ["other"])
    assert faults_of(functions_of(good.replace("vmulps", "vmovups")), ["step"])
    assert faults_of(functions_of(good.replace("\tmulps\t%xmm0, %xmm1", "\tvmulps\t%ymm0, %ymm1, %ymm1")), [])
    for more in ("vfmadd132ps\t%ymm0, %ymm1, %ymm1", "call\tsqrtf", "jmp\t_ZN5ferry4host11in_registerIfLi32EE4fillEPvf"):
        assert faults_of(functions_of(good.replace("\t.cfi_endproc", f"\t{more}\n\t.cfi_endproc", 1)), ["step"]), more


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    words, compiler, *arguments = sys.argv[1:]
    listing = subprocess.run([compiler, *arguments, "-S", "-o", "-"], capture_output=True, text=True)
    if listing.returncode:
        sys.exit(listing.stderr)
    functions = functions_of(listing.stdout)
    for name, counts in functions.items():
        if AVX2 in name.split("(")[0]:
            print(f"{counts['computes']} on 32 bytes: {name[:150]}")
    if faults := faults_of(functions, words.split(",")):
        sys.exit("\n".join(faults))


main()
