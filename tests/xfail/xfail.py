#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles programs that must be refused.

    xfail.py --compile-commands FILE --probe SOURCE [--without-fixed] PROGRAM...
    xfail.py --compile-commands FILE --probe SOURCE --fixed PROGRAM...
    xfail.py --compile-commands FILE --probe SOURCE --together --place before|after PROGRAM...
    xfail.py --compile-commands FILE --probe SOURCE --self-test

A program says how it must be refused, once or more often:

    // expected-error: <regular expression that the text of one of the compiler's errors matches>
    // expected-first-error: <one that the text of the first error matches>
    // expected-errors: <number> <one that the text of every error matches, of which there must be exactly so many>
    // most-lines: <number of lines that the compiler may print>

It passes when the compiler fails and all of these are true. A program that mentions FERRY_XFAIL_FIXED must also compile
when that macro is defined, so that the test shows that the one illegal combination and nothing else is refused. With
--fixed that is all that is tested, of all the programs in one compilation, which is much faster than one for each.

--together compiles programs as they are in one compilation first, without their legal forms. It suffices for those that are
refused with their expected-error there, by an error within or required by the program. --place says where the compiler names
the program: gcc before an error's text, nvcc and clang after it. A program that is not refused there, or says more than
expected-error, is compiled alone.
"""

import argparse
import copy
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

EXPECTED = re.compile(r"^\s*//\s*expected-error:\s*(.+?)\s*$", re.MULTILINE)
FIRST = re.compile(r"^\s*//\s*expected-first-error:\s*(.+?)\s*$", re.MULTILINE)
EVERY = re.compile(r"^\s*//\s*expected-errors:\s*(\d+)\s+(.+?)\s*$", re.MULTILINE)
MOST_LINES = re.compile(r"^\s*//\s*most-lines:\s*(\d+)\s*$", re.MULTILINE)
# An error's text, without the file name before it and without the source lines that compilers print after it.
ERROR = re.compile(r"\berror\b[^:\n]*:\s*(.*)$", re.MULTILINE)
FIXED = "FERRY_XFAIL_FIXED"


class Compiler:
    """The command of the probe, with other sources in the probe's place."""

    def __init__(self, compile_commands, probe):
        probe = Path(probe).resolve()
        for entry in json.loads(Path(compile_commands).read_text(encoding="utf-8")):
            if (Path(entry["directory"]) / entry["file"]).resolve() == probe:
                command = entry.get("arguments") or shlex.split(entry["command"])
                self.directory = entry["directory"]
                self.command = self._without_source_and_output(command, probe)
                return
        raise SystemExit(f"{compile_commands} does not compile {probe}")

    def _without_source_and_output(self, command, probe):
        kept, position = [], 0
        while position < len(command):
            word = command[position]
            if word in ("-o", "-MF", "-MT", "-MQ"):
                position += 2
                continue
            if word not in ("-c", "-MD", "-MMD") and (Path(self.directory) / word).resolve() != probe:
                kept.append(word)
            position += 1
        return kept

    def is_nvcc(self):
        return any("nvcc" in Path(word).name for word in self.command)

    def without_included_header(self):
        """The command for sources that use nothing of the library: without the precompiled header."""
        bare = copy.copy(self)
        bare.command = [word for number, word in enumerate(self.command)
                        if word != "-include" and self.command[number - 1] != "-include"]
        return bare

    def compile(self, source, *definitions):
        """The exit status and the output for a source. Only the front end matters, where it can be run alone."""
        with tempfile.TemporaryDirectory() as scratch:
            words = [f"-D{name}" for name in definitions]
            if self.is_nvcc():
                words += ["-c", str(source), "-o", os.path.join(scratch, "object.o")]
            else:
                words += ["-fsyntax-only", str(source)]
            # The compiler quotes identifiers in the locale's quotation marks; expressions are written for plain ones.
            done = subprocess.run(self.command + words, cwd=self.directory, text=True, errors="replace",
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | {"LC_ALL": "C"})
        return done.returncode, done.stdout


INCLUDE = re.compile(r"^\s*#\s*include\s*<[^>]+>", re.MULTILINE)


def compile_together(compiler, programs, *definitions):
    """The exit status and the output for programs, each in a namespace of its own, in one compilation."""
    includes = sorted({line.strip() for program in programs for line in INCLUDE.findall(program.read_text(encoding="utf-8"))})
    parts = [f"namespace program_{number} {{\n#include \"{program}\"\n}}" for number, program in enumerate(programs)]
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "together.cpp"
        source.write_text("\n".join(["#include <ferry/ferry.hpp>"] + includes + parts) + "\n", encoding="utf-8")
        return compiler.compile(source, *definitions)


def compile_fixed(compiler, programs):
    """What is wrong with the programs that must compile with FERRY_XFAIL_FIXED."""
    fixed = [program for program in programs if FIXED in program.read_text(encoding="utf-8")]
    status, output = compile_together(compiler, fixed, FIXED)
    if status != 0:
        return [f"do not all compile with {FIXED}; the compiler said:\n" + shorten(output)]
    return []


def errors_of_each(output, programs, place):
    """The errors of each program in the output for all. An error is a program's if it is in the program or the program requires
    the template that it is in: the program that is named last up to the error's text, or first from there on."""
    named = re.compile("|".join(re.escape(str(program)) for program in programs))
    errors = {str(program): [] for program in programs}
    lines = output.splitlines()
    numbers = [number for number, line in enumerate(lines) if ERROR.search(line)]
    for number, following in zip(numbers, numbers[1:] + [len(lines)]):
        if place == "after":
            names = named.findall("\n".join(lines[number:following]))[:1]
        else:
            names = named.findall("\n".join(lines[:number + 1]))[-1:]
        for name in names:
            errors[name].append(ERROR.search(lines[number]).group(1))
    return errors


def refused_together(compiler, programs, place):
    """The programs of which the compiler said every expected-error where it compiled all of them."""
    status, output = compile_together(compiler, programs)
    errors = {} if status == 0 else errors_of_each(output, programs, place)
    refused = []
    for program in programs:
        expected = EXPECTED.findall(program.read_text(encoding="utf-8"))
        said = errors.get(str(program), [])
        if expected and all(any(re.search(line, error) for error in said) for line in expected):
            refused.append(program)
    return refused


def suffices_together(text):
    """Whether a program says nothing but expected-error: no numbers or order of what the compiler prints."""
    return EXPECTED.search(text) and not (FIRST.search(text) or EVERY.search(text) or MOST_LINES.search(text))


def refuse(compiler, source, with_fixed=True):
    """What is wrong with one program; nothing where it is refused as it says."""
    text = Path(source).read_text(encoding="utf-8")
    expected = EXPECTED.findall(text)
    first = FIRST.findall(text)
    every = EVERY.findall(text)
    if not (expected or first or every):
        return ["has no line '// expected-error: ...'"]
    status, output = compiler.compile(source)
    if status == 0:
        return ["compiles, and must not"]
    errors = ERROR.findall(output)
    missing = [line for line in expected if not any(re.search(line, error) for error in errors)]
    problems = [f"is refused, but not with: {line}" for line in missing]
    problems += [f"is refused, but not first of all with: {line}" for line in first
                 if not errors or not re.search(line, errors[0])]
    for number, line in every:
        if len(errors) != int(number):
            problems.append(f"is refused with {len(errors)} errors, not with {number}")
        problems += [f"is refused with an error that is none of the expected: {error}" for error in errors
                     if not re.search(line, error)]
    printed = len(output.splitlines())
    problems += [f"is refused in {printed} lines, more than {number}" for number in MOST_LINES.findall(text)
                 if printed > int(number)]
    if problems:
        problems.append("the compiler said:\n" + shorten(output))
    if with_fixed and FIXED in text:
        status, output = compiler.compile(source, FIXED)
        if status != 0:
            problems.append(f"does not compile with {FIXED} either; the compiler said:\n" + shorten(output))
    return problems


def shorten(output, lines=40):
    kept = output.splitlines()
    return "\n".join(kept[:lines] + ([f"... and {len(kept) - lines} more lines"] if len(kept) > lines else []))


# What compilers say of an error in a.cpp and of one in a template that b.cpp requires.
GCC_OUTPUT = """In file included from /t/together.cpp:3:
/p/a.cpp: In function 'void program_0::refused()':
/p/a.cpp:7:3: error: first
/l/verb.hpp: In instantiation of 'void verb() [with T = int]':
/p/b.cpp:9:14:   required from here
/l/verb.hpp:20:17: error: static assertion failed: second
"""
NVCC_OUTPUT = """/p/a.cpp(7): error: first
          detected during instantiation of "void other()" at line 3 of /t/together.cpp

/l/verb.hpp(20): error: static assertion failed with "second"
          detected during:
            instantiation of "void inner()" at line 30 of /l/verb.hpp
            instantiation of "void verb()" at line 9 of /p/b.cpp

/l/verb.hpp(21): error: third
          detected during instantiation of "void verb()" at line 8 of /p/a.cpp
"""
CLANG_OUTPUT = """In file included from /t/together.cpp:3:
/p/a.cpp:7:3: error: first
In file included from /t/together.cpp:1:
/l/verb.hpp:20:17: error: static assertion failed: second
/p/b.cpp:9:14: note: in instantiation of function template specialization 'verb<int>' requested here
"""
ATTRIBUTED = [
    (GCC_OUTPUT, "before", {"/p/a.cpp": ["first"], "/p/b.cpp": ["static assertion failed: second"]}),
    (NVCC_OUTPUT, "after", {"/p/a.cpp": ["first", "third"], "/p/b.cpp": ['static assertion failed with "second"']}),
    (CLANG_OUTPUT, "after", {"/p/a.cpp": ["first"], "/p/b.cpp": ["static assertion failed: second"]}),
]

SELF_TEST = {
    "refused": ("// expected-error: one is not two\nstatic_assert(1 == 2, \"one is not two\");\n", None),
    "refused_unless_fixed": ("// expected-error: one is not two\n#ifndef FERRY_XFAIL_FIXED\n"
                             "static_assert(1 == 2, \"one is not two\");\n#endif\n", None),
    "two_sentences": ("// expected-error: first\n// expected-error: second\n"
                      "static_assert(false, \"first\");\nstatic_assert(false, \"second\");\n", None),
    "legal": ("// expected-error: one is not two\nint legal = 1;\n", "compiles, and must not"),
    "other_sentence": ("// expected-error: two is not three\nstatic_assert(1 == 2, \"one is not two\");\n",
                       "not with: two is not three"),
    "second_sentence_missing": ("// expected-error: first\n// expected-error: second\nstatic_assert(false, \"first\");\n",
                                "not with: second"),
    "never_legal": ("// expected-error: one is not two\n// FERRY_XFAIL_FIXED mends nothing here\n"
                    "static_assert(1 == 2, \"one is not two\");\n", "does not compile with FERRY_XFAIL_FIXED"),
    "first_of_two": ("// expected-first-error: first\nstatic_assert(false, \"first\");\n"
                     "static_assert(false, \"second\");\n", None),
    "second_of_two": ("// expected-first-error: second\nstatic_assert(false, \"first\");\n"
                      "static_assert(false, \"second\");\n", "not first of all with: second"),
    "both": ("// expected-errors: 2 one of two\nstatic_assert(false, \"one of two\");\n"
             "static_assert(false, \"one of two\");\n", None),
    "one_of_both": ("// expected-errors: 2 one of two\nstatic_assert(false, \"one of two\");\n", "with 1 errors, not with 2"),
    "another_one": ("// expected-errors: 2 one of two\nstatic_assert(false, \"one of two\");\n"
                    "static_assert(false, \"another\");\n", "none of the expected: .*another"),
    "short": ("// expected-error: first\n// most-lines: 20\nstatic_assert(false, \"first\");\n", None),
    "long": ("// expected-error: first\n// most-lines: 0\nstatic_assert(false, \"first\");\n", "more than 0"),
    "no_expectation": ("static_assert(1 == 2, \"one is not two\");\n", "has no line"),
}


def self_test(compiler, place):
    failures = []
    for output, where, errors in ATTRIBUTED:
        attributed = errors_of_each(output, ["/p/a.cpp", "/p/b.cpp"], where)
        if attributed != errors:
            failures.append(f"errors are attributed {attributed}, not {errors}")
    with tempfile.TemporaryDirectory() as scratch:
        for name, (text, sentence) in SELF_TEST.items():
            source = Path(scratch) / f"{name}.cpp"
            source.write_text(text, encoding="utf-8")
            problems = refuse(compiler.without_included_header(), source)
            as_expected = any(re.search(sentence, problem) for problem in problems) if sentence else not problems
            if not as_expected:
                failures.append(f"{name}: expected {sentence or 'no problem'}, got {problems}")
        written = {name: Path(scratch) / f"{name}.cpp" for name in SELF_TEST}
        if compile_fixed(compiler, [written["refused_unless_fixed"], written["refused"]]):
            failures.append("refused_unless_fixed: does not compile with others")
        if not compile_fixed(compiler, [written["refused_unless_fixed"], written["never_legal"]]):
            failures.append("never_legal: compiles with others")
        # Two with the same sentence, one that is legal and one that is refused with a sentence of another program.
        together = [written[name] for name in ("refused", "refused_unless_fixed", "legal", "other_sentence", "two_sentences")]
        refused = [program.stem for program in refused_together(compiler, together, place)]
        if refused != ["refused", "refused_unless_fixed", "two_sentences"]:
            failures.append(f"together are refused: {refused}")
        if refused_together(compiler, [written["legal"]], place):
            failures.append("legal: refused together")
        alone = [name for name in SELF_TEST if not suffices_together(SELF_TEST[name][0])]
        if alone != ["first_of_two", "second_of_two", "both", "one_of_both", "another_one", "short", "long", "no_expectation"]:
            failures.append(f"compiled alone: {alone}")
    print("\n".join(failures) or f"{len(SELF_TEST)} programs judged as expected")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile-commands", required=True)
    parser.add_argument("--probe", required=True)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--without-fixed", action="store_true")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--place", choices=("before", "after"), default="before")
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    compiler = Compiler(arguments.compile_commands, arguments.probe)
    if arguments.self_test:
        return self_test(compiler, arguments.place)
    if arguments.fixed:
        problems = compile_fixed(compiler, [Path(program).resolve() for program in arguments.programs])
        print("\n".join(f"{len(arguments.programs)} programs {problem}" for problem in problems) or
              f"{len(arguments.programs)} programs compile with {FIXED}")
        return 1 if problems else 0
    programs = [Path(program).resolve() for program in arguments.programs]
    refused = set()
    if arguments.together:
        refused = {program for program in refused_together(compiler, programs, arguments.place)
                   if suffices_together(program.read_text(encoding="utf-8"))}
        print(f"{len(refused)} of {len(programs)} programs are refused together as they say")
    failed = False
    for program in programs:
        if program not in refused:
            problems = refuse(compiler, program, not (arguments.together or arguments.without_fixed))
            failed = failed or bool(problems)
            print("\n".join(f"{program} {problem}" for problem in problems) or f"{program} is refused as it says")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
