#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes sources that show of each header that it compiles alone and twice in a row.

    chains.py FOLDER ROOT HEADER...    writes FOLDER/*.cpp, FOLDER/kokkos.txt and FOLDER/plain.txt
    chains.py --self-test

A header that includes another one compiles after it as it does alone: it brings the other one along. A source therefore holds a
chain of headers, each of which includes all before it, directly or by others. The fewest chains hold every header once; they are a
third of the headers. Includes between #if and #endif don't count. The sources with headers that reach Kokkos are listed in
kokkos.txt: a precompiled Kokkos may come first in them and hides nothing that they lack.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

INCLUDE = re.compile(r'\s*#\s*include\s*(?:<((?:ferry/|Kokkos_)[^>]+)>|"([^"]+)")')
KOKKOS = "Kokkos"


def included_by(header, root):
    """The headers of ferry that a header includes in every build, and KOKKOS if it includes that."""
    included, depth = set(), 0
    for line in Path(header).read_text(encoding="utf-8").splitlines():
        if re.match(r"\s*#\s*if", line):
            depth += 1
        elif re.match(r"\s*#\s*endif", line):
            depth -= 1
        found = INCLUDE.match(line)
        if depth == 0 and found:
            system, relative = found.groups()
            if system == "Kokkos_Core.hpp":
                included.add(KOKKOS)
            elif system and system.startswith("Kokkos_"):
                continue
            elif system:
                included.add(os.path.normpath(os.path.join(root, "include", system)))
            else:
                included.add(os.path.normpath(os.path.join(os.path.dirname(header), relative)))
    return included


def closures(headers, root):
    """What each header brings along."""
    found = {}

    def closure(header):
        if header not in found:
            found[header] = set()  # ends a circle, should there be one
            direct = included_by(header, root)
            found[header] = direct.union(*(closure(name) for name in direct if name != KOKKOS and os.path.exists(name)))
        return found[header]

    for header in headers:
        closure(header)
    return found


def chains(headers, brought):
    """The fewest chains (Dilworth): a largest matching of headers with successors."""
    successor = {}
    known = set(headers)
    candidates = {header: sorted((brought[header] & known) - {header}, key=lambda name: (-len(brought[name]), name))
                  for header in headers}

    def match(header, seen):
        for name in candidates[header]:
            if name not in seen:
                seen.add(name)
                if name not in successor or match(successor[name], seen):
                    successor[name] = header
                    return True
        return False

    for header in sorted(headers, key=lambda name: (len(brought[name]), name)):
        match(header, set())
    followers = set(successor.values())
    result = []
    for header in sorted(known - followers):
        chain = [header]
        while chain[-1] in successor:
            chain.append(successor[chain[-1]])
        result.append(chain)
    return result


def write(path, text):
    """Leaves a file alone that holds the text already."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def generate(folder, root, headers):
    folder.mkdir(parents=True, exist_ok=True)
    brought = closures(headers, root)
    reaching = [header for header in headers if KOKKOS in brought[header]]
    for listed, group in (("kokkos", reaching), ("plain", sorted(set(headers) - set(reaching)))):
        sources = []
        for chain in chains(group, brought):
            name = re.sub(r"\W", "_", os.path.relpath(chain[-1], root))
            # The first include shows that the header needs nothing before it, the second that it guards itself. The variable
            # keeps the object from being empty, of which some linkers and sanitizers warn.
            lines = [f'#include "{header}"\n' for header in chain for _ in range(2)]
            write(folder / f"{name}.cpp", "".join(lines) + f"int {name}_compiles = 1;\n")
            sources.append(f"{folder / name}.cpp\n")
        write(folder / f"{listed}.txt", "".join(sources))


def self_test():
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        texts = {"a": "#include <Kokkos_Core.hpp>\n", "b": "#include <ferry/a.hpp>\n", "c": '#include "b.hpp"\n', "d": "",
                 "e": "#include <ferry/a.hpp>\n#include <ferry/d.hpp>\n", "f": "#if 1\n#include <ferry/d.hpp>\n#endif\n"}
        (root / "include/ferry").mkdir(parents=True)
        headers = []
        for name, text in texts.items():
            header = root / f"include/ferry/{name}.hpp"
            header.write_text(text, encoding="utf-8")
            headers.append(str(header))
        brought = closures(headers, scratch)
        result = chains(headers, brought)
        named = sorted("".join(Path(header).stem for header in chain) for chain in result)
        assert named == ["abc", "de", "f"], named
        generate(root / "out", scratch, headers)
        assert (root / "out/kokkos.txt").read_text(encoding="utf-8").count("\n") == 2
        assert (root / "out/plain.txt").read_text(encoding="utf-8").count("\n") == 2
    print("1 passed, 0 failed")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        generate(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])


if __name__ == "__main__":
    main()
