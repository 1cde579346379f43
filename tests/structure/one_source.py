#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that src/ferry.cpp, the library as one source, includes each source that CMake compiles, once.

    one_source.py ROOT         prints the sources that are missing, unknown or listed twice
    one_source.py --self-test  feeds lists with each fault and expects them to be refused
"""

import re
import sys
import tempfile
from pathlib import Path

INCLUDED = re.compile(r'^#include "([^"]+\.cpp)"', re.MULTILINE)
# As cmake/FerryTarget.cmake lists them.
PATTERNS = ("src/**/*.cpp", "backends/host/**/*.cpp", "backends/cuda/**/*.cpp")


def included(source):
    """The sources that one of them includes, and those that these include."""
    for name in INCLUDED.findall(source.read_text(encoding="utf-8")):
        path = (source.parent / name).resolve()
        yield path
        if path.exists():
            yield from included(path)


def check(root):
    whole = root / "src/ferry.cpp"
    compiled = {path for pattern in PATTERNS for path in root.glob(pattern)} - {whole}
    listed = [path for path in included(whole) if path != root / "backends/enabled.cpp"]
    faults = [f"src/ferry.cpp lacks {path.relative_to(root)}" for path in sorted(compiled - set(listed))]
    faults += [f"src/ferry.cpp includes {path.relative_to(root)}, which CMake does not compile" for path in sorted(set(listed) - compiled)]
    faults += [f"src/ferry.cpp includes {path.relative_to(root)} twice" for path in sorted(set(listed)) if listed.count(path) > 1]
    return faults, len(compiled)


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name in ("src/a/b.cpp", "backends/host/c.cpp"):
            (root / name).parent.mkdir(parents=True)
            (root / name).write_text("")
        (root / "backends/enabled.cpp").write_text('#include "host/c.cpp"\n')
        line = '#include "a/b.cpp"\n'
        good = '#include "../backends/enabled.cpp"\n' + line
        for text, faults in ((good, 0), (good.replace("a/b", "a/gone"), 2), (good + line, 1), (line, 1)):
            (root / "src/ferry.cpp").write_text(text)
            found = check(root)[0]
            if len(found) != faults:
                return [f"{faults} faults expected, found {found} in\n{text}"]
    return []


def main(arguments):
    faults, number = (self_test(), 1) if arguments == ["--self-test"] else check(Path(arguments[0]).resolve())
    print("\n".join(faults) or "the list is complete")
    return 1 if faults or number == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
