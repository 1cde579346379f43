#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the kernels of a program: ptx.py PROGRAM [option of nvcc...] prints the registers, the hash of the code and the
name of each. Two listings that are equal show that a change of headers left the code for devices as it was. The hash
takes no names, labels or numbers of lines; where the type of a kernel was renamed, `sort -k2` lines the two up."""
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile


def main():
    program, options = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["nvcc", "-std=c++20", "-x", "cu", "-cubin", "-arch=sm_90", "-extended-lambda", "-Xptxas=-v", "--keep",
             f"--keep-dir={folder}", "-o", f"{folder}/code.cubin", *options, program],
            stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        code = next(pathlib.Path(folder).glob("*.ptx")).read_text()
    registers = dict(re.findall(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", done.stderr, re.S))
    listing = []
    for name, body in re.findall(r"\.entry (\w+)\((.*?^\})", code, re.S | re.M):
        body = re.sub(r"//.*", "", body)
        names = {}
        body = re.sub(r"\b_Z\w+?(?=_param_|\b)", lambda m: names.setdefault(m[0], f"name{len(names)}"), body)
        body = re.sub(r"\$L__BB\d+_", "$L", body)
        listing.append((name, registers.get(name, "?"), hashlib.sha256(body.encode()).hexdigest()[:12]))
    plain = subprocess.run(["c++filt"], input="\n".join(name for name, *_ in listing), stdout=subprocess.PIPE, text=True)
    for name, (_, count, digest) in sorted(zip(plain.stdout.split("\n"), listing)):
        print(f"{count:>4} {digest} {name}")


if __name__ == "__main__":
    main()
