#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each source, header and script names its license in its first line, or in the second after a #! line.

    license_lines.py ROOT          prints the files without the line
    license_lines.py --write ROOT  adds it to them

ROOT is a checkout of the sources: the files are those that git tracks, or all where there is no git.
"""

import re
import subprocess
import sys
from pathlib import Path

LINE = "SPDX-License-Identifier: Apache-2.0"
# Comment sign by the end of a file's name.
SIGNS = [(re.compile(r"\.([chi]pp(\.in)?|cu)$"), "//"),
         (re.compile(r"(\.(py|sh|cmake|cmake\.in|yml|yaml)|/CMakeLists\.txt|^CMakeLists\.txt|^\.ci/run)$"), "#")]
SKIPPED = ("build/", ".cache/")


def files_of(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if listed.returncode == 0:
        return sorted(filter(None, listed.stdout.decode().split("\0")))
    every = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(name for name in every if not name.startswith(SKIPPED))


def main(arguments):
    write = "--write" in arguments
    root = Path([word for word in arguments if word != "--write"][0])
    lacking = checked = 0
    for name in files_of(root):
        sign = next((sign for pattern, sign in SIGNS if pattern.search(name)), None)
        if sign is None or not (root / name).is_file():
            continue
        checked += 1
        text = (root / name).read_text(encoding="utf-8")
        first = text.find("\n") + 1 if text.startswith("#!") else 0
        if text.startswith(f"{sign} {LINE}\n", first):
            continue
        lacking += 1
        print(f"{name} lacks '{sign} {LINE}'")
        if write:
            (root / name).write_text(f"{text[:first]}{sign} {LINE}\n{text[first:]}", encoding="utf-8")
    print(f"{checked} files, {lacking} without the line" + (", which was added" if write and lacking else ""))
    return 1 if checked == 0 or (lacking and not write) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
