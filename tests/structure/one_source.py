#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the libraries as one source each, src/ferry.cpp and those with its name, include each source that CMake compiles
for them, once.

    one_source.py ROOT         prints the sources that are missing, unknown or listed twice
    one_source.py --self-test  feeds lists with each fault and expects them to be refused
"""

import re
import sys
import tempfile
from pathlib import Path

INCLUDED = re.compile(r'^#include "([^"]+\.cpp)"', re.MULTILINE)
# As cmake/FerryTarget.cmake lists them.
LIBRARIES = {"ferry": (), "ferry_io": ("io", "loader", "compat"), "ferry_distributed": ("distributed",)}  # the first has the rest
PATTERNS = ("src/**/*.cpp", "backends/*/**/*.cpp")


def library_of(path):
    return next((folders for folders in LIBRARIES.values() if path.parts[0] == "src" and Path(path.parts[1]).stem in folders), ())


def included(source):
    """The sources that one of them includes, and those that these include."""
    for name in INCLUDED.findall(source.read_text(encoding="utf-8")):
        path = (source.parent / name).resolve()
        yield path
        if path.exists():
            yield from included(path)


def check(root):
    wholes = {root / f"src/{name}.cpp": folders for name, folders in LIBRARIES.items()}
    compiled = {path for pattern in PATTERNS for path in root.glob(pattern)} - set(wholes)
    faults = []
    for whole, folders in wholes.items():
        name = whole.relative_to(root)
        own = {path for path in compiled if library_of(path.relative_to(root)) == folders}
        listed = [path for path in included(whole) if path != root / "backends/enabled.cpp"]
        faults += [f"{name} lacks {path.relative_to(root)}" for path in sorted(own - set(listed))]
        faults += [f"{name} includes {path.relative_to(root)}, which CMake does not compile for it" for path in sorted(set(listed) - own)]
        faults += [f"{name} includes {path.relative_to(root)} twice" for path in sorted(set(listed)) if listed.count(path) > 1]
    return faults, len(compiled)


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name in ("src/a/b.cpp", "backends/host/c.cpp", "src/loader/d.cpp"):
            (root / name).parent.mkdir(parents=True)
            (root / name).write_text("")
        (root / "backends/enabled.cpp").write_text('#include "host/c.cpp"\n')
        line = '#include "a/b.cpp"\n'
        good = '#include "../backends/enabled.cpp"\n' + line
        loader = '#include "loader/d.cpp"\n'
        (root / "src/ferry_distributed.cpp").write_text("")
        for text, text_of_io, faults in ((good, loader, 0), (good.replace("a/b", "a/gone"), loader, 2), (good + line, loader, 1),
                                         (line, loader, 1), (good, "", 1), (good + loader, loader, 1), (good, loader + line, 1)):
            (root / "src/ferry.cpp").write_text(text)
            (root / "src/ferry_io.cpp").write_text(text_of_io)
            found = check(root)[0]
            if len(found) != faults:
                return [f"{faults} faults expected, found {found} in\n{text}{text_of_io}"]
    return []


def main(arguments):
    faults, number = (self_test(), 1) if arguments == ["--self-test"] else check(Path(arguments[0]).resolve())
    print("\n".join(faults) or "the lists are complete")
    return 1 if faults or number == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
