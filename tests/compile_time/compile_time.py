#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what including ferry costs a source, and bounds it.

    compile_time.py COMPILER_ID RUNS FOLDER -- COMPILER FLAG...

Compiles the programs of FOLDER: kokkos.cpp includes Kokkos alone, the others ferry as well. With g++ also as a user who
precompiles ferry.hpp does. A cost is the user time of the compiler over that for kokkos.cpp, the least of RUNS. The first run
within the bound is the last: no other one would change the verdict. A time depends on the machine's neighbours, the memory
that g++ allocates does not: where a time is over its bound, that memory decides. nvcc's times are not judged where other
programs keep processors busy. It makes PTX, whose kernels are counted, too: those of kokkos.cpp are not ferry's.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# A plus: as a user of ferry::instances compiles the program. A star: with ferry.hpp precompiled.
PROGRAMS = ["umbrella", "gather", "step", "umbrella+", "gather+", "step+", "gather*", "step*", "gather+*", "step+*"]
INSTANCES = ["-DFERRY_USE_INSTANCES", "-DFERRY_DISPATCH_AVX2"]
# What they may cost: some 15 % above what was measured, see docs/performance.md.
RATIOS = {"GNU": {"umbrella": 2.5, "gather": 5.0, "step": 7.2, "umbrella+": 2.4, "gather+": 2.5, "step+": 2.6,
                  "gather*": 3.2, "step*": 5.4, "gather+*": 0.7, "step+*": 0.8},
          "NVIDIA": {"umbrella": 3.4, "gather": 5.2, "step": 5.2, "gather+": 3.3, "step+": 3.4}}
# The memory that g++ may allocate, over that for kokkos.cpp: 10 % above what g++ 12 took.
ALLOCATED = {"umbrella": 2.08, "gather": 2.65, "step": 3.31, "umbrella+": 2.01, "gather+": 2.05, "step+": 2.07,
             "gather*": 0.80, "step*": 1.47, "gather+*": 0.24, "step+*": 0.27}
# Processors that other programs may keep busy where a ratio is judged. With one, a step was measured a quarter slower.
MOST_OTHERS = 0.2
# The exit status where a ratio is not judged.
SKIPPED = 77
KERNELS = {"umbrella": 1, "gather": 10, "step": 18, "gather+": 1, "step+": 1}


def user_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def busy_seconds():
    """Seconds that all processors have spent in programs, of other virtual machines too; None where the system does not say."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
        return sum(int(field) for field in fields[1:4] + fields[8:9]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None


class OtherPrograms:
    """What other programs computed since this was made, in processors: they share caches with the compiler."""

    def __init__(self):
        self.at, self.busy, self.own = time.monotonic(), busy_seconds(), self.own_seconds()

    @staticmethod
    def own_seconds():
        children, here = (resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
        return children.ru_utime + children.ru_stime + here.ru_utime + here.ru_stime

    def processors(self):
        if self.busy is None:
            return 0.0
        now = busy_seconds()
        others = 0.0 if now is None else now - self.busy - (self.own_seconds() - self.own)
        return others / (time.monotonic() - self.at)


def allocated_bytes(command):
    """What g++ allocated in all phases, from the last column of its report."""
    done = subprocess.run(command + ["-ftime-report"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True)
    number, unit = re.search(r"^ TOTAL .*?(\d+)([kMG]?)\s*$", done.stdout, re.MULTILINE).groups()
    return int(number) * {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}[unit]


def precompile(folder, command, scratch):
    """Precompiles the umbrella; what a source gets in front of it to use that."""
    header = Path(scratch, "precompiled.hpp")
    header.write_text((folder / "umbrella.cpp").read_text(encoding="utf-8"), encoding="utf-8")
    user_seconds(command + ["-x", "c++-header", str(header), "-o", f"{header}.gch"])
    header.unlink()  # gcc would take it in silence where the precompiled one does not fit
    return ["-include", str(header)]


def measure(folder, name, runs, command, ptx, enough=0.0):
    """The least seconds of the runs, of which none follows one that took at most `enough`, the number of kernels, whether
    other programs were busy, and the bytes that g++ allocated if `enough` did not suffice."""
    others = OtherPrograms()
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "out")
        words = command + (INSTANCES if "+" in name else [])
        if name.endswith("*"):
            words = words + precompile(folder, words, scratch)
        words += ["-ptx" if ptx else "-c", str(folder / f"{name.rstrip('+*')}.cpp"), "-o", out]
        seconds = user_seconds(words)
        for _ in range(runs - 1):
            if seconds > enough:
                seconds = min(seconds, user_seconds(words))
        allocated = allocated_bytes(words) if not ptx and seconds > enough else 0
        kernels = Path(out).read_text(encoding="utf-8").count(".entry") if ptx else 0
    return seconds, kernels, others.processors() > MOST_OTHERS, allocated


def main(arguments):
    split = arguments.index("--")
    compiler, runs, folder = arguments[0], int(arguments[1]), Path(arguments[2])
    command = arguments[split + 1:]
    ptx = compiler == "NVIDIA"
    base, base_kernels, base_disturbed, base_allocated = measure(folder, "kokkos", runs, command, ptx)
    print(f"{'source':10} {'user s':>8} {'ratio':>7} {'at most':>8} {'kernels':>8} {'at most':>8}")
    print(f"{'kokkos':10} {base:8.2f}")
    failed, unjudged = False, ptx and base_disturbed
    for name in PROGRAMS:
        if name not in RATIOS[compiler]:
            continue
        most = RATIOS[compiler][name]
        seconds, kernels, disturbed, allocated = measure(folder, name, runs, command, ptx, enough=most * base)
        ratio, kernels = seconds / base, kernels - base_kernels
        by_memory = ""
        if ratio > most and not ptx:
            work, most_work = allocated / base_allocated, ALLOCATED[name]
            failed = failed or work > most_work
            by_memory = f"   memory allocated: {work:.2f} of at most {most_work:.2f}"
        elif ratio > most and (disturbed or base_disturbed):
            unjudged = True
        elif ratio > most:
            failed = True
        failed = failed or (ptx and kernels > KERNELS[name])
        counted = f"{kernels:8} {KERNELS[name]:8}" if ptx else ""
        print(f"{name:10} {seconds:8.2f} {ratio:7.2f} {most:8.2f} {counted}{by_memory}")
    if unjudged:
        print("other programs kept processors busy: not all ratios are judged")
    return 1 if failed else SKIPPED if unjudged else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
