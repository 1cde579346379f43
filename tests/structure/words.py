#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no private word is a part of a name or stands in a comment, where the field has a word.

    words.py ROOT         checks the folders that tests/structure/words names against its words
    words.py --self-test  feeds broken lists and sources to the check and expects each to be refused
"""

import re
import sys
import tempfile
from pathlib import Path

LIST = "tests/structure/words"
# Comments and literals, whichever begins first.
NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""", re.DOTALL)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include.*$", re.MULTILINE)
NAME = re.compile(r"\b[A-Za-z_]\w*")
ENTRY = re.compile(r"(?P<word>[a-z]+)(?P<star>\*?)\s+(?P<advice>\S.*)$")


def read_list(text):
    """Words with their advice, those of names alone, folders, kept names, phrases, and complaints about lines."""
    advice, in_names, folders, kept, phrases, complaints = {}, set(), [], set(), [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("#") or not line.strip():
            continue
        key, _, value = line.partition(" ")
        entry = ENTRY.match(line)
        if key == "folders":
            folders += value.split()
        elif key == "keep":
            kept |= set(value.split())
        elif key == "phrase":
            phrases.append(value)
        elif entry and entry["word"] not in advice:
            advice[entry["word"]] = entry["advice"]
            if entry["star"]:
                in_names.add(entry["word"])
        else:
            complaints.append(f"line {number} of the list is no word with advice, or has a word again: {line.strip()}")
    return advice, in_names, folders, kept, phrases, complaints


def files_of(root, folder):
    if folder == "backends":
        bases, pattern = [root / "backends"], "**/*"
    elif folder == "top":
        bases, pattern = [root / "include/ferry", root / "src", root / "src/instances"], "*"
    else:
        bases, pattern = [root / "include/ferry" / folder, root / "src" / folder], "**/*"
    return sorted(path for base in bases for path in base.glob(pattern) if path.suffix in (".hpp", ".cpp"))


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def check(root):
    advice, in_names, folders, kept, phrases, complaints = read_list((root / LIST).read_text(encoding="utf-8"))
    some_word = re.compile(rf"(?i)(?<![a-z])({'|'.join(advice)})(?![a-z])") if advice else None
    some_phrase = re.compile(rf"(?i)\b({'|'.join(phrases)})\b") if phrases else None
    named_phrase = re.compile(rf"(?<![a-z])({'|'.join(phrases).replace(' ', '_')})(?![a-z])") if phrases else None
    number = 0
    for folder in folders:
        files = files_of(root, folder)
        number += len(files)
        if not files:
            complaints.append(f"{folder} has no files")
        for path in files:
            text = path.read_text(encoding="utf-8")
            if some_word is None or not some_word.search(text):
                continue

            def complain(position, word, kind):
                line = text.count("\n", 0, position) + 1
                complaints.append(f"{path.relative_to(root)}:{line}: {word} in a {kind}: {advice[word]}")

            for literal in NO_CODE.finditer(text):
                if not literal.group(0).startswith("/"):
                    continue
                comment = some_phrase.sub(blank, literal.group(0)) if some_phrase else literal.group(0)
                for match in NAME.finditer(comment):
                    word = match.group(0).lower()
                    if word in advice and word not in in_names and match.group(0) not in kept:
                        complain(literal.start() + match.start(), word, "comment")
            for match in NAME.finditer(INCLUDE.sub(blank, NO_CODE.sub(blank, text))):
                if match.group(0) not in kept:
                    name = named_phrase.sub("", match.group(0)) if named_phrase else match.group(0)
                    for part in set(name.split("_")) & advice.keys():
                        complain(match.start(), part, "name")
    return complaints, number


GOOD = {
    LIST: "# Words\nfolders memory top\nkeep array_note\nphrase in place\nplace  slot\nnote  record\nrest*  remainder\n",
    "include/ferry/memory/pool.hpp": '#include <ferry/memory/place.hpp>\n// The rest is locked in place, see array_note.\n'
                                     'array_note first; int replace, in_place_now; const char* text = "a place";\n',
    "src/rows/gather.cpp": "int place;\n",
    "src/ferry.cpp": "\n",
}
BROKEN = [
    ({"src/memory/pool.cpp": "int place;\n"}, "src/memory/pool.cpp:1: place in a name: slot"),
    ({"src/memory/pool.cpp": "\nint first_place_of(int);\n"}, "src/memory/pool.cpp:2: place in a name: slot"),
    ({"src/memory/pool.cpp": "int rest_;\n"}, "rest in a name: remainder"),
    ({"src/memory/pool.cpp": "int within_place;\n"}, "place in a name: slot"),
    ({"src/memory/pool.cpp": "int i = 0;  // The Place of a row\n"}, "place in a comment: slot"),
    ({"src/memory/pool.cpp": "/* a note */\n"}, "note in a comment: record"),
    ({"src/ferry.cpp": "int note;\n"}, "src/ferry.cpp:1: note in a name: record"),
    ({LIST: "folders memory top rows\nplace  slot\nkeep array_note\nphrase in place\n"}, "src/rows/gather.cpp:1: place in a name: slot"),
    ({LIST: "folders memory plan\nplace  slot\n"}, "plan has no files"),
    ({LIST: "folders memory\nplace\n"}, "line 2 of the list is no word with advice"),
    ({LIST: "folders memory\nplace  slot\nplace  offset\n"}, "line 3 of the list is no word with advice"),
]


def findings_of(files):
    with tempfile.TemporaryDirectory() as scratch:
        for name, body in files.items():
            path = Path(scratch) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body, encoding="utf-8")
        return check(Path(scratch))[0]


def self_test():
    failures = [f"a legal tree is refused: {line}" for line in findings_of(GOOD)]
    for change, sentence in BROKEN:
        findings = findings_of(GOOD | change)
        if not any(sentence in finding for finding in findings):
            failures.append(f"{change} is not refused with {sentence!r}: {findings}")
    print("\n".join(failures) or f"{len(BROKEN)} broken trees refused, 1 legal tree accepted")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1:
        print(__doc__)
        return 2
    complaints, number = check(Path(arguments[0]).resolve())
    print("\n".join(complaints) or f"{number} files without private words")
    return 1 if complaints or number == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
