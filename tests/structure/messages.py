#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that headers put messages together by detail::joined, which is compiled once, and not by sums of strings: GCC 12
warns of such sums in templates at -O3, in the program of a user. Labels, `label + "::rows"`, are excepted.

    messages.py ROOT         prints the sums in ROOT/include and ROOT/backends
    messages.py --self-test  feeds sums to the rule and expects the messages among them to be refused
"""

import re
import sys
from pathlib import Path

# Comments, preprocessor lines and literals, whichever begins first.
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*|'(?:\\.|[^'\\\n])'|(?P<text>"(?:\\.|[^"\\\n])*")""",
                   re.DOTALL | re.MULTILINE)
LABEL = re.compile(r'"[\w:/.]*"')
NUMBER = re.compile(r"\bstd::(?:to_string|format)\s*\(")
BEFORE = re.compile(r"(?<!\+)\+\s*$")
AFTER = re.compile(r"\s*\+(?![+=])")


def sums(text):
    """The lines of `text` that add a literal to a string, or make a string of a number."""
    plain = TOKEN.sub(lambda match: match.group("text") or " ", text)
    found = [match.group() for match in NUMBER.finditer(plain)]
    for match in TOKEN.finditer(plain):
        if LABEL.fullmatch(match.group()):
            continue
        if BEFORE.search(plain, max(0, match.start() - 200), match.start()) or AFTER.match(plain, match.end()):
            found.append(plain[plain.rfind("\n", 0, match.start()) + 1:plain.find("\n", match.end())].strip())
    return found


def check(root):
    headers = [header for folder in ("include", "backends") for header in sorted((root / folder).rglob("*.hpp"))]
    faults = [f"{header.relative_to(root)}: {line}" for header in headers for line in sums(header.read_text(encoding="utf-8"))]
    return faults, len(headers)


REFUSED = ('#pragma once\nthrow error("the row " + name);', 'text + " rows"', 'a +\n    "is not " "here"', "std::to_string(rows)", '"[" + low')
TAKEN = ('label + "::rows"', '"tensor::" + label', 'text += " rows";', '// "a row" + b', 'f("a b", +1)', 'joined({"a row ", b + 1})',
         "1 + (x == '+')", 'name + "/codes"')


def self_test():
    return [f"taken: {text}" for text in REFUSED if not sums(text)] + [f"refused: {text}" for text in TAKEN if sums(text)]


def main(arguments):
    faults, number = (self_test(), 1) if arguments == ["--self-test"] else check(Path(arguments[0]))
    print("\n".join(faults) or "no sums")
    return 1 if faults or number == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
