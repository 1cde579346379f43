#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what including ferry costs a source, and bounds it.

    compile_time.py COMPILER_ID RUNS FOLDER -- COMPILER FLAG...

Compiles the programs of FOLDER: kokkos.cpp includes Kokkos alone, the others ferry as well. With g++ also as a user who
precompiles ferry.hpp does. A cost is the user time of the compiler over that for kokkos.cpp, the least of RUNS. The first run
within the bound is the last: no other one would change the verdict. Two programs are compiled at a time, and kokkos.cpp next to
itself: a processor is as fast as its neighbour lets it. A machine's speed changes from minute to minute, so both programs are
timed again, one after the other, before a ratio is judged too large. Where other programs keep processors busy ratios are printed
and not judged. The memory that g++ allocates is the same in every run, and is always judged. nvcc makes PTX, whose kernels are
counted, too: those of kokkos.cpp are not ferry's.

With RUNS of at most 2 a compilation is timed and its memory counted at once: g++ then collects no garbage, and ratios are some
tenth smaller. Programs of which others of their kind are timed are not.
"""

import contextlib
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# With CUDA the target ferry::instances defines it. On hosts the library has its verbs anyway, and the programs then call these.
INSTANCES = ["-DFERRY_USE_INSTANCES"]
# What programs may cost: some 15 % above what was measured, see docs/performance.md. A plus: with calls that the library holds.
# A star: with ferry.hpp precompiled.
RATIOS = {"GNU": {"umbrella": 1.7, "gather": 2.0, "step": 2.9, "distributed": 2.2, "checkpoint": 2.4, "npy": 2.3,
                  "prefetcher": 2.4, "gather+": 1.75, "step+": 1.8, "gather*": 0.75, "step*": 1.6, "gather+*": 0.5,
                  "step+*": 0.6},
          "NVIDIA": {"umbrella": 1.75, "gather": 2.2, "step": 2.2, "gather+": 2.0, "step+": 1.9}}
# The memory that g++ may allocate, over that for kokkos.cpp: 10 % above what g++ 12 took, 0.03 above where that is little.
ALLOCATED = {"umbrella": 1.67, "gather": 1.73, "step": 1.95, "distributed": 2.05, "checkpoint": 1.85, "npy": 1.83, "prefetcher": 1.87,
             "gather+": 1.70, "step+": 1.72, "gather*": 0.09, "step*": 0.35, "gather+*": 0.05, "step+*": 0.07}
# How often both programs are timed again.
PAIRS = 3
# Processors that other programs may keep busy where a ratio is judged. With one, a step was measured a quarter slower.
MOST_OTHERS = 0.2
# The exit status where a ratio is not judged.
SKIPPED = 77
# Not timed in short runs: memory or kernels of them are bounded, and others of their kind are timed.
LESS_TIMED = {"GNU": {"gather+", "gather*", "step*", "gather+*", "npy", "checkpoint"}, "NVIDIA": {"gather", "gather+"}}
KERNELS = {"umbrella": 0, "gather": 7, "step": 7, "gather+": 0, "step+": 0}


def compile_by(command):
    """The user time of the compiler and of what it started, and what it said."""
    compiler = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with compiler.stdout:
        said = compiler.stdout.read()
    _, status, usage = os.wait4(compiler.pid, 0)
    compiler.returncode = os.waitstatus_to_exitcode(status)
    if compiler.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{said}")
    return usage.ru_utime, said


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


# g++ then says what it allocated in all phases: what it holds at its end where it collects nothing. -ftime-report says it too, and
# takes three times as long.
REPORT_MEMORY = ["-fmem-report", "--param", "ggc-min-expand=1000000", "--param", "ggc-min-heapsize=1000000000"]


def reported_bytes(said):
    number, unit = re.search(r"^Total\s+\S+\s+(\d+)([kMG]?)\s", said, re.MULTILINE).groups()
    return int(number) * {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}[unit]


def precompile(folder, command, scratch):
    """Precompiles the umbrella; what a source gets in front of it to use that."""
    header = Path(scratch, "precompiled.hpp")
    header.write_text((folder / "umbrella.cpp").read_text(encoding="utf-8"), encoding="utf-8")
    compile_by(command + ["-x", "c++-header", str(header), "-o", f"{header}.gch"])
    header.unlink()  # gcc would take it in silence where the precompiled one does not fit
    return ["-include", str(header)]


class Program:
    """A source, compiled in one of the ways that RATIOS names. `precompiled` has what was precompiled for others. Where it
    `reports`, each compilation that is timed counts its memory, too."""

    def __init__(self, name, folder, command, ptx, reports, scratches, precompiled):
        scratch = scratches.enter_context(tempfile.TemporaryDirectory())
        self.out = os.path.join(scratch, "out")
        self.ptx = ptx
        self.bytes = None
        self.words = command + (INSTANCES if "+" in name else [])
        if name.endswith("*"):
            flags = tuple(self.words)
            if flags not in precompiled:
                precompiled[flags] = precompile(folder, self.words, scratch)
            self.words = self.words + precompiled[flags]
        self.words += ["-ptx" if ptx else "-c", "-o", self.out]
        self.precompiled_alone = self.words + [str(folder / "kokkos.cpp")] if name.endswith("*") else None
        self.words.append(str(folder / f"{name.rstrip('+*')}.cpp"))
        self.timed_words = self.words + (REPORT_MEMORY if reports else [])
        self.reports = reports

    def seconds(self, runs=1, enough=0.0):
        """The least of the runs, of which none follows one that took at most `enough`."""
        least = float("inf")
        private = f"{self.out}.{threading.get_ident()}"  # two threads may time the same program
        for _ in range(runs):
            if least > enough:
                seconds, said = compile_by([private if word == self.out else word for word in self.timed_words])
                os.replace(private, self.out)
                least = min(least, seconds)
                if self.reports:
                    self.bytes = reported_bytes(said)
        return least

    def kernels(self):
        """Of a program that was timed or counted before."""
        return Path(self.out).read_text(encoding="utf-8").count(".entry") if self.ptx else 0

    def count(self):
        """The memory without what is read from a precompiled header; with nvcc it is not counted, but the PTX is made."""
        if self.ptx:
            if not os.path.exists(self.out):
                compile_by(self.words)
            return 0
        if self.bytes is None:
            self.bytes = reported_bytes(compile_by(self.words + REPORT_MEMORY)[1])
        alone = reported_bytes(compile_by(self.precompiled_alone + REPORT_MEMORY)[1]) if self.precompiled_alone else 0
        return self.bytes - alone


def ratio_to(base, base_seconds, program, runs, most):
    """The least seconds of the program and their ratio to the base's."""
    seconds = program.seconds(runs, enough=most * base_seconds)
    ratio = seconds / base_seconds
    for _ in range(PAIRS):
        if ratio > most:
            again = program.seconds()
            seconds, ratio = min(seconds, again), min(ratio, again / base.seconds())
    return seconds, ratio


def main(arguments):
    split = arguments.index("--")
    compiler, runs, folder = arguments[0], int(arguments[1]), Path(arguments[2])
    command = arguments[split + 1:]
    ptx = compiler == "NVIDIA"
    short = runs <= 2
    failed = unjudged = False
    with contextlib.ExitStack() as scratches:
        others = OtherPrograms()
        precompiled = {}
        made = (folder, command, ptx, short and not ptx, scratches, precompiled)
        base = Program("kokkos", *made)
        programs = {name: Program(name, *made) for name in RATIOS[compiler]}
        timed = {name: (float("nan"), float("nan")) for name in programs}
        with ThreadPoolExecutor(min(2, os.cpu_count())) as pool:
            base_seconds = min(pool.map(lambda _: base.seconds(), range(max(runs, 2))))
            ratios = {name: pool.submit(ratio_to, base, base_seconds, programs[name], runs, most)
                      for name, most in RATIOS[compiler].items() if not (short and name in LESS_TIMED[compiler])}
            timed.update((name, ratio.result()) for name, ratio in ratios.items())
        disturbed = others.processors() > MOST_OTHERS
        # Memory and kernels do not depend on what else runs.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            base_allocated, *allocated = pool.map(Program.count, [base, *programs.values()])
        kernels = [program.kernels() - base.kernels() for program in programs.values()]
    what = "kernels" if ptx else "memory"
    print(f"{'source':10} {'user s':>8} {'ratio':>7} {'at most':>8} {what:>8} {'at most':>8}")
    print(f"{'kokkos':10} {base_seconds:8.2f}")
    for (name, (seconds, ratio)), memory, own_kernels in zip(timed.items(), allocated, kernels):
        most = RATIOS[compiler][name]
        if ratio > most and disturbed:
            unjudged = True
        elif ratio > most:
            failed = True
        if ptx:
            failed = failed or own_kernels > KERNELS[name]
            counted = f"{own_kernels:8} {KERNELS[name]:8}"
        else:
            failed = failed or memory > ALLOCATED[name] * base_allocated
            counted = f"{memory / base_allocated:8.2f} {ALLOCATED[name]:8.2f}"
        print(f"{name:10} {seconds:8.2f} {ratio:7.2f} {most:8.2f} {counted}")
    if unjudged:
        print("other programs kept processors busy: not all ratios are judged")
    return 1 if failed else SKIPPED if unjudged else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
