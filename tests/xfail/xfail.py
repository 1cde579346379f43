#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles programs that must be refused.

    xfail.py --compile-commands FILE --probe SOURCE [--fixed] [--only NAME,...] [--place before|after] FILE...
    xfail.py --compile-commands FILE --probe SOURCE --self-test

A file holds #includes and then programs. Each begins with its name and says how it must be refused, once or more often:

    // ---- name: a sentence
    // expected-error: <regular expression that the text of one of the compiler's errors matches>
    // expected-first-error: <one that the text of the first error matches>
    // expected-errors: <number> <one that the text of every error matches, of which there must be exactly so many>
    // most-lines: <number of lines that the compiler may print; without it 30 for an error if the first one or all are told>
    // or: <a statement that is refused alike, in place of the one before: a program of its own>

A program that declares no function refused() is the statements of one. It passes when the compiler fails and all of these are
true. Its legal form shows that the one illegal combination and nothing else is refused: with FERRY_XFAIL_FIXED defined, and
with the lines behind `// legal: ` in place of the statement that follows them.

The programs of all files compile in one compilation, each in a namespace of its own: as they are, or with --fixed in their legal
forms, which must compile. --place says where the compiler names the program: gcc before an error's text, nvcc and clang after
it. A program that is not refused as it says among the others, or that specialises ferry's templates, is compiled alone.
--without-precompiled leaves out the precompiled header of the probe.
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

NAME = re.compile(r"^// ---- (\w+)(?::.*)?$", re.MULTILINE)
EXPECTED = re.compile(r"^\s*//\s*expected-error:\s*(.+?)\s*$", re.MULTILINE)
FIRST = re.compile(r"^\s*//\s*expected-first-error:\s*(.+?)\s*$", re.MULTILINE)
EVERY = re.compile(r"^\s*//\s*expected-errors:\s*(\d+)\s+(.+?)\s*$", re.MULTILINE)
MOST_LINES = re.compile(r"^\s*//\s*most-lines:\s*(\d+)\s*$", re.MULTILINE)
# Lines of the legal form, and the statement in whose place they stand.
LEGAL = re.compile(r"((?:^[ ]*// legal: .+\n)+)(?:.*[^;\n]\n)*?.*;$", re.MULTILINE)
SPECIALISES = re.compile(r"^(namespace ferry|struct ferry::)", re.MULTILINE)
# An error's text, without the file name before it and without the source lines that compilers print after it.
ERROR = re.compile(r"\berror\b[^:\n]*:\s*(.*)$", re.MULTILINE)
# The lines that gcc prints before an error to say where it is.
CONTEXT = re.compile(r"^In file included from|^\s+from |: (In|At) |:\s+(recursively )?required |\[ skipping ")
# Statements that are refused alike, and the one in whose place they stand, with its legal form.
OR = re.compile(r"^// or: (.+)\n", re.MULTILINE)
STATEMENT = re.compile(r"(?:^// legal: .+\n)*(?:^(?!//).*[^;{}\n]\n)*^(?!//).*;\n\Z", re.MULTILINE)
FIXED = "FERRY_XFAIL_FIXED"


class Program:
    """One program of a file: its name, the file's #includes, its text."""

    def __init__(self, name, includes, text):
        self.name, self.includes, self.text = name, includes, text

    def source(self, fixed=False):
        text = LEGAL.sub(lambda found: found.group(1).replace("// legal: ", "").rstrip("\n"), self.text) if fixed else self.text
        return text if "refused(" in text else f"void refused() {{\n{text}\n}}\n"

    def has_legal_form(self):
        return bool(LEGAL.search(self.text)) or FIXED in self.includes + self.text

    def compiles_alone(self):
        return bool(SPECIALISES.search(self.text))


def read_programs(path):
    words = NAME.split(Path(path).read_text(encoding="utf-8"))
    programs = []
    for name, text in zip(words[1::2], words[2::2]):
        programs.append(Program(name, words[0], OR.sub("", text)))
        before = OR.split(text, maxsplit=1)[0]
        for number, statement in enumerate(OR.findall(text), start=2):
            programs.append(Program(f"{name}_{number}", words[0], STATEMENT.sub(lambda _: statement + "\n", before)))
    return programs


class Compiler:
    """The command of the probe, with other sources in the probe's place."""

    def __init__(self, compile_commands, probe):
        probe = Path(probe).resolve()
        for entry in json.loads(Path(compile_commands).read_text(encoding="utf-8")):
            if (Path(entry["directory"]) / entry["file"]).resolve() == probe:
                command = entry.get("arguments") or shlex.split(entry["command"])
                self.directory = entry["directory"]
                self.command = self._without_source_and_output(command, probe) + [f"-I{probe.parent.parent}"]
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
        """The command without the precompiled header."""
        bare = copy.copy(self)
        bare.command = [word for number, word in enumerate(self.command)
                        if word != "-include" and self.command[number - 1] != "-include"]
        return bare

    def compile(self, source, *definitions):
        """The exit status and the output for a source. Only the front end matters, where it can be run alone."""
        words = [f"-D{name}" for name in definitions]
        if self.is_nvcc():
            words += ["-c", str(source), "-o", f"{source}.o"]
        else:
            words += ["-fsyntax-only", str(source)]
        # The compiler quotes identifiers in the locale's quotation marks; expressions are written for plain ones.
        done = subprocess.run(self.command + words, cwd=self.directory, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | {"LC_ALL": "C"})
        return done.returncode, done.stdout


def compile_together(compiler, programs, scratch, fixed=False):
    """The exit status and the output for programs, each in a namespace of its own, in one compilation."""
    includes = list(dict.fromkeys(program.includes for program in programs))
    parts = []
    for program in programs:
        (scratch / f"{program.name}.cpp").write_text(program.source(fixed), encoding="utf-8")
        parts.append(f"namespace program_{program.name} {{\n#include \"{scratch}/{program.name}.cpp\"\n}}")
    source = scratch / "together.cpp"
    source.write_text("\n".join(includes + parts) + "\n", encoding="utf-8")
    return compiler.compile(source, *([FIXED] if fixed else []))


def compile_alone(compiler, program, scratch, fixed=False):
    source = scratch / f"{program.name}.cpp"
    source.write_text(program.includes + program.source(fixed), encoding="utf-8")
    return compiler.compile(source, *([FIXED] if fixed else []))


def compile_fixed(compiler, programs, scratch):
    """What is wrong with the programs that must compile in their legal forms."""
    legal = [program for program in programs if program.has_legal_form()]
    compilations = [("programs", compile_together(compiler, [one for one in legal if not one.compiles_alone()], scratch, True))]
    compilations += [(one.name, compile_alone(compiler, one, scratch, True)) for one in legal if one.compiles_alone()]
    return [f"{name}: not legal in the legal form; the compiler said:\n" + shorten(output)
            for name, (status, output) in compilations if status != 0]


def said_of_each(output, programs, scratch, place):
    """The errors of each program in the output for all, and the number of lines. An error is a program's if it is in the program
    or the program requires the template that it is in: the program that is named last up to the error's text, or first from there
    on."""
    paths = {f"{scratch}/{program.name}.cpp": program.name for program in programs}
    named = re.compile("|".join(re.escape(path) for path in paths))
    said = {program.name: ([], []) for program in programs}
    lines = output.splitlines()
    numbers = [number for number, line in enumerate(lines) if ERROR.search(line)]
    begins = []
    for number in numbers:
        begin = number
        while place == "before" and begin > 0 and CONTEXT.search(lines[begin - 1]):
            begin -= 1
        begins.append(begin)
    for number, begin, end in zip(numbers, begins, begins[1:] + [len(lines)]):
        if place == "after":
            paths_there = named.findall("\n".join(lines[number:end]))[:1]
        else:
            paths_there = named.findall("\n".join(lines[:number + 1]))[-1:]
        for path in paths_there:
            said[paths[path]][0].append(ERROR.search(lines[number]).group(1))
            said[paths[path]][1].append(end - begin)
    return {name: (errors, sum(counts)) for name, (errors, counts) in said.items()}


def judge(text, errors, printed):
    """What is wrong with the errors of a program that is refused."""
    every = EVERY.findall(text)
    problems = [f"is refused, but not with: {line}" for line in EXPECTED.findall(text)
                if not any(re.search(line, error) for error in errors)]
    problems += [f"is refused, but not first of all with: {line}" for line in FIRST.findall(text)
                 if not errors or not re.search(line, errors[0])]
    for number, line in every:
        if len(errors) != int(number):
            problems.append(f"is refused with {len(errors)} errors, not with {number}")
        problems += [f"is refused with an error that is none of the expected: {error}" for error in errors
                     if not re.search(line, error)]
    limits = [int(number) for number in MOST_LINES.findall(text)]
    if not limits and (every or FIRST.search(text)):
        limits = [30 * max([1] + [int(number) for number, _ in every])]
    problems += [f"is refused in {printed} lines, more than {limit}" for limit in limits if printed > limit]
    return problems


def refused_together(compiler, programs, scratch, place):
    """The names of the programs that are refused as they say where all of them are compiled."""
    programs = [program for program in programs if not program.compiles_alone()]
    status, output = compile_together(compiler, programs, scratch)
    said = {} if status == 0 else said_of_each(output, programs, scratch, place)
    return {name for name, (errors, printed) in said.items()
            if errors and not judge(next(one.text for one in programs if one.name == name), errors, printed)}


def refuse(compiler, program, scratch):
    """What is wrong with one program; nothing where it is refused as it says."""
    if not any(expected.search(program.text) for expected in (EXPECTED, FIRST, EVERY)):
        return ["has no line '// expected-error: ...'"]
    status, output = compile_alone(compiler, program, scratch)
    if status == 0:
        return ["compiles, and must not"]
    problems = judge(program.text, ERROR.findall(output), len(output.splitlines()))
    if problems:
        problems.append("the compiler said:\n" + shorten(output))
    return problems


def shorten(output, lines=40):
    kept = output.splitlines()
    return "\n".join(kept[:lines] + ([f"... and {len(kept) - lines} more lines"] if len(kept) > lines else []))


# What compilers say of an error in a.cpp and of one in a template that b.cpp requires.
GCC_OUTPUT = """In file included from /p/together.cpp:3:
/p/a.cpp: In function 'void program_a::refused()':
/p/a.cpp:7:3: error: first
    7 |   first
/l/verb.hpp: In instantiation of 'void verb() [with T = int]':
/p/b.cpp:9:14:   required from here
/l/verb.hpp:20:17: error: static assertion failed: second
"""
NVCC_OUTPUT = """/p/a.cpp(7): error: first
          detected during instantiation of "void other()" at line 3 of /p/together.cpp

/l/verb.hpp(20): error: static assertion failed with "second"
          detected during:
            instantiation of "void inner()" at line 30 of /l/verb.hpp
            instantiation of "void verb()" at line 9 of /p/b.cpp

/l/verb.hpp(21): error: third
          detected during instantiation of "void verb()" at line 8 of /p/a.cpp
"""
CLANG_OUTPUT = """In file included from /p/together.cpp:3:
/p/a.cpp:7:3: error: first
In file included from /p/together.cpp:1:
/l/verb.hpp:20:17: error: static assertion failed: second
/p/b.cpp:9:14: note: in instantiation of function template specialization 'verb<int>' requested here
"""
ATTRIBUTED = [
    (GCC_OUTPUT, "before", {"a": (["first"], 4), "b": (["static assertion failed: second"], 3)}),
    (NVCC_OUTPUT, "after", {"a": (["first", "third"], 5), "b": (['static assertion failed with "second"'], 5)}),
    (CLANG_OUTPUT, "after", {"a": (["first"], 2), "b": (["static assertion failed: second"], 2)}),
]

ONE = "static_assert(1 == 2, \"one is not two\");\n"
TWO = "static_assert(false, \"first\");\nstatic_assert(false, \"second\");\n"
SELF_TEST = {
    "refused": ("// expected-error: one is not two\n" + ONE, None),
    "refused_unless_fixed": (f"// expected-error: one is not two\n#ifndef {FIXED}\n{ONE}#endif\n", None),
    "refused_or_legal": ("// expected-error: one is not two\n// legal: static_assert(1 == 1);\n" + ONE, None),
    "refused_in_lines": ("// expected-error: one is not two\n// legal: int one = 1;\n// legal: static_assert(1 == 1);\n"
                         "static_assert(1 == 2,\n              \"one is not two\");\n", None),
    "two_sentences": ("// expected-error: first\n// expected-error: second\n" + TWO, None),
    "legal": ("// expected-error: one is not two\nint legal = 1;\n", "compiles, and must not"),
    "other_sentence": ("// expected-error: two is not three\n" + ONE, "not with: two is not three"),
    "second_sentence_missing": ("// expected-error: first\n// expected-error: second\nstatic_assert(false, \"first\");\n",
                                "not with: second"),
    "first_of_two": ("// expected-first-error: first\n" + TWO, None),
    "second_of_two": ("// expected-first-error: second\n" + TWO, "not first of all with: second"),
    "both": ("// expected-errors: 2 first|second\n" + TWO, None),
    "one_of_both": ("// expected-errors: 2 one\n" + ONE, "with 1 errors, not with 2"),
    "another_one": ("// expected-errors: 2 first\n" + TWO, "none of the expected: .*second"),
    "short": ("// expected-error: first\n// most-lines: 20\n" + TWO, None),
    "long": ("// expected-error: first\n// most-lines: 0\n" + TWO, "more than 0"),
    "no_expectation": (ONE, "has no line"),
}


def self_test(compiler, place, scratch):
    failures = []
    for output, where, expected in ATTRIBUTED:
        said = said_of_each(output, [Program("a", "", ""), Program("b", "", "")], "/p", where)
        if said != expected:
            failures.append(f"errors are attributed {said}, not {expected}")
    programs = {name: Program(name, "", text) for name, (text, _) in SELF_TEST.items()}
    for name, (_, sentence) in SELF_TEST.items():
        problems = refuse(compiler, programs[name], scratch)
        as_expected = any(re.search(sentence, problem) for problem in problems) if sentence else not problems
        if not as_expected:
            failures.append(f"{name}: expected {sentence or 'no problem'}, got {problems}")
    mended = [programs[name] for name in ("refused_unless_fixed", "refused_or_legal", "refused_in_lines", "refused")]
    if compile_fixed(compiler, mended, scratch):
        failures.append("refused_unless_fixed, refused_or_legal: do not compile in their legal forms")
    never = Program("never_legal", "", f"// {FIXED} mends nothing here\n{ONE}")
    if not compile_fixed(compiler, mended + [never], scratch):
        failures.append("never_legal: compiles with others")
    refused = refused_together(compiler, list(programs.values()), scratch, place)
    expected = {name for name, (_, sentence) in SELF_TEST.items() if sentence is None}
    if refused - {"no_expectation"} != expected:
        failures.append(f"together are refused: {refused}")
    if refused_together(compiler, [programs["legal"]], scratch, place):
        failures.append("legal: refused together")
    file = scratch / "file.cpp"
    file.write_text("#include <vector>\n\n// ---- a: one\nint a;\n// legal: b();\nb(1,\n  2);\n// or: c();\n\n// ---- d\nvoid refused() {}\n",
                    encoding="utf-8")
    read = [(one.name, one.includes, one.source()) for one in read_programs(file)]
    if read != [("a", "#include <vector>\n\n", "void refused() {\n\nint a;\n// legal: b();\nb(1,\n  2);\n\n\n}\n"),
                ("a_2", "#include <vector>\n\n", "void refused() {\n\nint a;\nc();\n\n}\n"),
                ("d", "#include <vector>\n\n", "\nvoid refused() {}\n")]:
        failures.append(f"a file is read as {read}")
    print("\n".join(failures) or f"{len(SELF_TEST)} programs judged as expected")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile-commands", required=True)
    parser.add_argument("--probe", required=True)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--without-precompiled", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--place", choices=("before", "after"), default="before")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    compiler = Compiler(arguments.compile_commands, arguments.probe)
    if arguments.without_precompiled:
        compiler = compiler.without_included_header()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        if arguments.self_test:
            return self_test(compiler.without_included_header(), arguments.place, scratch)
        programs = [program for file in arguments.files for program in read_programs(file)]
        if arguments.only:
            programs = [program for program in programs if program.name in arguments.only.split(",")]
        if not programs:
            raise SystemExit("no programs")
        if arguments.fixed:
            problems = compile_fixed(compiler, programs, scratch)
            print("\n".join(problems) or f"{len(programs)} programs compile in their legal forms")
            return 1 if problems else 0
        refused = refused_together(compiler, programs, scratch, arguments.place)
        print(f"{len(refused)} of {len(programs)} programs are refused together as they say")
        failed = False
        for program in programs:
            if program.name not in refused:
                problems = refuse(compiler, program, scratch)
                failed = failed or bool(problems)
                print("\n".join(f"{program.name} {problem}" for problem in problems) or f"{program.name} is refused as it says")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
