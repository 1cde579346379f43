#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the sources of a test program can be compiled as one, as FERRY_TEST_UNITY does.

    test_namespaces.py TESTS FOLDER...  checks *_test.cpp in those folders of TESTS
    test_namespaces.py --self-test      feeds broken sources to every rule and expects each to be refused

What tests/rows/gather_test.cpp declares lies in namespace ferry_test::gather_test. Outside there are only comments,
preprocessor lines and specialisations of the library's templates, and a macro does not outlive its source.
"""

import re
import sys
import tempfile
from pathlib import Path

# Comments and literals, whichever begins first.
NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:.*\\\n)*.*$", re.MULTILINE)
DEFINE = re.compile(r"^[ \t]*#[ \t]*(define|undef)[ \t]+(\w+)", re.MULTILINE)


def statements_outside(text):
    """The declarations of the outermost level, each up to its semicolon or closing brace."""
    text = DIRECTIVE.sub("", text)
    depth, begun, found = 0, 0, []
    for position, sign in enumerate(text):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth == 0 and sign in ";}":
            found.append(" ".join(text[begun:position + 1].split()))
            begun = position + 1
    rest = " ".join(text[begun:].split())
    return [statement for statement in found + [rest] if statement not in ("", ";")]


def check_source(path):
    text = NO_CODE.sub("", path.read_text(encoding="utf-8"))
    own = f"namespace ferry_test::{path.stem} {{"
    outside = statements_outside(text)
    found = [] if any(statement.startswith(own) for statement in outside) else [f"has no {own[:-2]}"]
    for statement in outside:
        if not statement.startswith((own, "template <> ")):
            found.append(f"declares outside of {own[:-2]}: {statement[:60]}")
    macros = {}
    for directive, name in DEFINE.findall(text):
        macros[name] = directive
    found += [f"leaves the macro {name} to other sources" for name, last in macros.items() if last == "define"]
    return found


def check(tests, folders):
    sources = [source for folder in folders for source in sorted((tests / folder).rglob("*_test.cpp"))]
    if not sources:
        return [f"{tests} holds no tests"], 0
    return [f"{source.relative_to(tests)} {message}" for source in sources for message in check_source(source)], len(sources)


GOOD = """// namespace elsewhere {
#include <vector>
#if defined(_OPENMP)
#include <omp.h>
#endif

/// What this tests.
namespace ferry_test::good_test {

struct own {};

}  // namespace ferry_test::good_test

template <>
struct ferry::array_traits<ferry_test::good_test::own> {
  using value_type = float;
};

namespace ferry_test::good_test {

namespace {

#define TWICE(a) \\
  {              \\
    a, a         \\
  }
constexpr char brace = '}', quote = '"', list[] = TWICE(1);
#undef TWICE

}  // namespace

TEST_CASE("braces {") { const auto text = R"(} " {)"; }

}  // namespace ferry_test::good_test
"""

BROKEN = [
    (GOOD.replace("good_test", "other_test"), "has no namespace ferry_test::good_test"),
    (GOOD.replace("ferry_test::good_test {", "ferry_test {"), "has no namespace ferry_test::good_test"),
    ("namespace {\nint helper;\n}\n" + GOOD, "declares outside"),
    (GOOD + "TEST_CASE(\"one\") {}\n", "declares outside"),
    (GOOD + "using namespace ferry_test;\n", "declares outside"),
    ("using ferry::verb;\n" + GOOD, "declares outside"),
    ("namespace path = ferry::path;\n" + GOOD, "declares outside"),
    ("static int number = 1;\n" + GOOD, "declares outside"),
    ("template <class T>\nstruct helper {};\n" + GOOD, "declares outside"),
    (GOOD.replace("#undef TWICE\n", ""), "leaves the macro TWICE"),
    ("#define EARLY 1\n" + GOOD, "leaves the macro EARLY"),
    ("", "has no namespace"),
]


def findings_of(text):
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "rows" / "good_test.cpp"
        source.parent.mkdir()
        source.write_text(text, encoding="utf-8")
        return check(Path(scratch), ["rows"])[0]


def self_test():
    failures = [f"a legal source is refused: {line}" for line in findings_of(GOOD)]
    for text, sentence in BROKEN:
        findings = findings_of(text)
        if not any(sentence in finding for finding in findings):
            failures.append(f"not refused with {sentence!r}, but with {findings}:\n{text}")
    if not check(Path("/nowhere"), ["rows"])[0]:
        failures.append("a folder without tests is not refused")
    print("\n".join(failures) or f"{len(BROKEN) + 1} broken sources refused, 1 legal source accepted")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) < 2:
        print(__doc__)
        return 2
    findings, sources = check(Path(arguments[0]), arguments[1:])
    print("\n".join(findings) or f"{sources} sources have a namespace of their own")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
