#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where a kernel of an assembly listing (GCC or Clang, x86-64) copies or fills by string instructions or by calls, and
where one that is named adds no vectors."""

import re
import subprocess
import sys

# A kernel, or what it calls in its place (registers::in_largest).
KERNEL = re.compile(r"(?:\w+ )?(?:ferry::kernels::|ferry::detail::registers<|ferry_test::on_host)")
COPY = re.compile(r"\s+(rep\s+(?:movs|stos)\w*|(?:call|jmp)\s+(?:mem(?:cpy|move|set))\b)")
PACKED = re.compile(r"\s+v?(?:add|sub|mul|div)p[sd]\b")


def kernels_of(listing):
    """Copies and packed arithmetic of each kernel."""
    found, name = {}, None
    for line in listing.splitlines():
        if match := re.match(r"(_Z\w+)(?:\.\w+)*:", line):
            name = match[1]
            found[name] = {"copies": [], "packed": 0}
        elif ".cfi_endproc" in line:
            name = None
        elif name and (match := COPY.match(line)):
            found[name]["copies"].append(" ".join(match[1].split()))
        elif name and PACKED.match(line):
            found[name]["packed"] += 1
    plain = subprocess.run(["c++filt"], input="\n".join(found), capture_output=True, text=True, check=True).stdout
    named = zip(plain.splitlines(), found.values())
    return {name: counts for name, counts in named if KERNEL.match(name)}


def faults_of(kernels, adds):
    """What is wrong, and the words that no kernel's name holds."""
    faults = [f"{counts['copies']} in {name}" for name, counts in kernels.items() if counts["copies"]]
    for word in adds:
        named = [counts for name, counts in kernels.items() if word in name]
        if not any(counts["packed"] for counts in named):
            faults.append(f"no packed arithmetic where a name holds {word} ({len(named)} kernels)")
    return faults


def self_test():
    clean = "_ZN5ferry7kernels4stepEv:\n\tmovups\t(%rax), %xmm0\n\taddps\t%xmm0, %xmm1\n\t.cfi_endproc\n"
    assert not faults_of(kernels_of(clean), ["step"])
    assert faults_of(kernels_of(clean), ["other"])
    assert faults_of(kernels_of(clean.replace("addps", "addss")), ["step"])
    for copy in ("rep movsq", "rep stosl", "call\tmemcpy", "jmp\tmemmove", "call\tmemset@PLT"):
        assert faults_of(kernels_of(clean.replace("movups\t(%rax), %xmm0", copy)), ["step"]), copy
    outside = clean.replace("movups\t(%rax), %xmm0", "rep movsq").replace("5ferry7kernels", "5other7kernels")
    assert not faults_of(kernels_of(outside), [])


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    adds, compiler, *arguments = sys.argv[1:]
    listing = subprocess.run([compiler, *arguments, "-S", "-o", "-"], capture_output=True, text=True)
    if listing.returncode:
        sys.exit(listing.stderr)
    kernels = kernels_of(listing.stdout)
    for name, counts in kernels.items():
        print(f"{len(counts['copies'])} copies, {counts['packed']} packed: {name[:150]}")
    faults = faults_of(kernels, adds.split(","))
    if not kernels or faults:
        sys.exit("\n".join(faults) or "no kernels")


main()
