#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that variables, parameters and members are named by nouns, and that comments open with their subject.

    names.py ROOT FOLDER...  checks the C++ files in those folders of ROOT
    names.py --self-test     feeds names and comments to every rule and expects the bad ones to be refused

A preposition, pronoun, participle or adverb says how an object relates to its neighbours, and a reader has to look up the
object. The list is closed: what is in it has never been the best name of a variable here.
"""

import re
import sys
import tempfile
from pathlib import Path

REFUSED = set("""
of to from at by on in into onto as within its each own one made found taken told met here there aside once all with other others given asked kept
held seen wanted done used then that these those this_ another anew again also both either any_ whose which what where when
""".split())

# Members that programs of users name.
PUBLIC = {"include/ferry/runtime/transfer_statistics.hpp": {"from", "to"}, "include/ferry/memory/statistics.hpp": {"all"},
          "include/ferry/rows/copy_progress.hpp": {"from", "to"}}

# Comments and literals, whichever begins first.
NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:.*\\\n)*.*$", re.MULTILINE)

# A declaration ends a type with a word, a bracket or a mark of indirection; its name is followed by the end of the
# declarator. A call or a function is followed by a parenthesis and is none.
DECLARATION = re.compile(r"(?P<before>[\w>\]]|[&*])(?P<gap>\s+|(?<=[&*]))(?P<name>[a-z]\w*)\s*(?P<after>[;={,)\[:])(?!:)")
NO_TYPE = set("""
return else case goto throw new delete co_return co_await co_yield and or not xor using namespace typename class struct enum
operator if while sizeof alignof requires template public private protected default do const_cast
""".split())
# `type name(arguments);` is a variable if no argument looks like a parameter.
CONSTRUCTION = re.compile(r"(?P<before>[\w>\]]|[&*])(?P<gap>\s+|(?<=[&*]))(?P<name>[a-z]\w*)\((?P<arguments>[^;{}]*?)\)\s*[;,]")
PARAMETER = re.compile(r"(const\s+)?[\w:<>,\s]+[\s&*]+\w+|(const\s+)?([\w:]+_t|bool|char|int|float|double)\s*[&*]*")
# The further names of `type name = value, name, name[size];`, once all that is nested is blank.
NESTED = re.compile(r"\{[^{};]*\}|\([^();{}]*\)|\[[^\[\];]*\]|(?<=\w)<[^<>;(){}=+]*>")
LIST = re.compile(r"(?:(?<=[;{}])|\A)\s*(?!return\b|else\b|case\b|using\b|throw\b|goto\b|delete\b)"
                  r"(?:(?:const|static|mutable|inline|constexpr|thread_local|auto|unsigned)\s+)*[A-Za-z_][\w:]*[\s&*]+[\w ]+?"
                  r"\s*(?:=[^,;{}]*)?(?:,\s*[&*]*\w+\s*(?:=[^,;{}]*)?)+;")
FURTHER = re.compile(r",\s*[&*]*([a-z]\w*)\s*(?=[=,;])")
BINDING = re.compile(r"\bauto\s*(?:const\s*)?&{0,2}\s*\[([\w\s,]+)\]")
CAPTURE = re.compile(r"[\[,]\s*&?([a-z]\w*)\s*=(?!=)")

# Searched first: most sources declare none of these names.
REFUSED_WORD = re.compile(rf"\b(?:{'|'.join(sorted(REFUSED))})_*\b")
REFUSED_FURTHER = re.compile(rf",\s*[&*]*(?:{'|'.join(sorted(REFUSED))})_*\s*[=,;<({{\[]")
COMMENT = re.compile(r"^[ \t]*(///?)[ \t]*(.*)$", re.MULTILINE)
OPENINGS = re.compile(r"(What|Where|Whether|Those|The same)\b")


def last_word(text, end):
    match = re.search(r"(\w+)\s*$", text[max(0, end - 80):end])
    return match.group(1) if match else ""


def refused(name):
    return name.rstrip("_") in REFUSED or name in REFUSED


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def without_nesting(code):
    while True:
        flat = NESTED.sub(blank, code)
        if flat == code:
            return code
        code = flat


def declared_names(code):
    """Yields (name, position) of variables, parameters and members."""
    if not REFUSED_WORD.search(code):
        return
    position = 0
    while True:
        match = DECLARATION.search(code, position)
        if not match:
            break
        position = match.end("name")
        name = match.group("name")
        if not refused(name):
            continue
        before, gap = match.group("before"), match.group("gap")
        if before in "&*":
            # `a & b` and `a * b` have blanks on both sides, a declarator has none before its mark.
            if gap == "" or code[match.start() - 1:match.start()].isspace():
                continue
        elif last_word(code, match.end("before")) in NO_TYPE:
            continue
        if match.group("after") == ":" and before not in "&*" and last_word(code, match.end("before")) in ("case", "default"):
            continue
        yield name, match.start("name")
    for match in CONSTRUCTION.finditer(code):
        name, before = match.group("name"), match.group("before")
        if not refused(name) or not match.group("arguments").strip():
            continue
        if before in "&*":
            if match.group("gap") == "" or code[match.start() - 1].isspace():
                continue
        elif last_word(code, match.end("before")) in NO_TYPE:
            continue
        arguments = re.sub(r"[\[(<{][^\[\](){}<>]*[\])>}]", "_", match.group("arguments")).split(",")
        if not any(PARAMETER.fullmatch(argument.strip()) for argument in arguments):
            yield name, match.start("name")
    for match in LIST.finditer(without_nesting(code)) if REFUSED_FURTHER.search(code) else ():
        for further in FURTHER.finditer(match.group(0)):
            if refused(further.group(1)):
                yield further.group(1), match.start() + further.start(1)
    for match in BINDING.finditer(code):
        for name in re.split(r"[\s,]+", match.group(1)):
            if name and refused(name):
                yield name, match.start()
    for match in CAPTURE.finditer(code):
        if refused(match.group(1)) and "[" in code[match.start():match.start() + 1]:
            yield match.group(1), match.start()


def check_source(path, text):
    code = DIRECTIVE.sub(blank, NO_CODE.sub(blank, text))
    places = []
    for name, position in declared_names(code):
        if name in PUBLIC.get(str(path), ()):
            continue
        places.append((code.count("\n", 0, position) + 1, f"names a variable `{name}`: name the object"))
    previous = -2
    for match in COMMENT.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if line != previous + 1 and OPENINGS.match(match.group(2)):
            places.append((line, f"opens a comment with `{match.group(2)[:30]}`: open with the subject"))
        previous = line
    return [f"{path}:{line}: {message}" for line, message in sorted(set(places))]


def check(root, folders):
    messages, count = [], 0
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".hpp", ".cpp") and path.is_file():
                count += 1
                messages += check_source(path.relative_to(root), path.read_text(encoding="utf-8"))
    return messages, count


GOOD = """
/// Rows of the table. What follows is no opening.
// A second line.
// What continues a comment is no opening.
int at(int row);
int next = call.at(row), total = made_rows * count;
return found_rows;
auto [row, column] = place();
x = a * b;
const auto& table = tables[0];  // of is a word here
const char* text = "int of = 3;";
case other_case: break;
static table of(const T* data, std::int64_t stride);
T at(std::size_t);
call(first, of(second), at(third));
std::vector<int> rows{1, 2}, columns(of(rows), 3);
return rows, columns;
"""

BAD = [
    "int of = 3;",
    "void f(launch_context<Exec>& of);",
    "void f(const std::string& from, int count);",
    "struct s { std::vector<int> made; };",
    "struct s { int own_; };",
    "auto [row, found] = place();",
    "auto f = [of = std::move(table)] {};",
    "for (const auto& each : rows) {}",
    "T* there{};",
    "int taken[3];",
    "launch_context<Exec> of(exec, verb);",
    "const std::vector<int> all(rows.size(), -1);",
    "std::vector<int> rows{1, 2}, made;",
    "const auto first = take(a, b), other = take(b);",
    "tensor<float> table(\"table\", 3), there(\"there\", 3);",
    "/// What a row costs.\nint cost;",
    "/// Whether rows move.\nbool moves;",
    "/// Where rows lie.\nint place;",
    "/// The same rows.\nint rows;",
    "// The same of columns.\nint cost;",
    "// Those that wait.\nint cost;",
]


def self_test():
    wrong = [f"refuses good code: {message}" for message in check_source("good.hpp", GOOD)]
    wrong += [f"accepts: {text!r}" for text in BAD if not check_source("bad.hpp", text)]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "include").mkdir()
        (Path(folder) / "include" / "bad.hpp").write_text(BAD[0])
        if len(check(Path(folder), ["include"])[0]) != 1:
            wrong.append("does not find a file")
    return wrong


def main(arguments):
    if arguments == ["--self-test"]:
        messages = self_test()
    elif len(arguments) > 1:
        messages, count = check(Path(arguments[0]), arguments[1:])
        if count == 0:
            messages.append("no sources")
    else:
        print(__doc__)
        return 2
    for message in messages:
        print(message)
    if messages:
        print(f"{len(messages)} places")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
