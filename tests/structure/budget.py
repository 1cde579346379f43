#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no folder of the library has more raw lines than tests/structure/budget grants it.

    budget.py ROOT         counts the lines of ROOT and prints the distance of each entry to its goal
    budget.py --self-test  feeds broken budgets and grown folders to the check and expects each to be refused
"""

import re
import sys
import tempfile
from pathlib import Path

ENTRY = re.compile(r"(?P<folders>[a-z_]+(?: [a-z_]+)*)\s+(?P<most>\d+)\s+(?P<goal>\d+|-)$")
# Capabilities whose files lie in several folders have a budget of their own.
CAPABILITIES = {
    "copy_rows": re.compile(r"(policy/(occupancy|overlap)|plan/row_range|(rows|quantized)/copy_rows|rows/rows_along|"
                            r"rows/detail/(row_moves|pair_rows|copy_row_arrays|move_staged_rows))\.[ch]pp"),
    "resolve": re.compile(r"(policy/overflow|cache/(lru|resolve|resolve_rows|exchange_rows|detail/(choose_slots|resolve_rows)))\.[ch]pp"),
}
REASON = re.compile(r"  (?P<most>\d+): (?P<sentence>\S+( \S+){2,}\.)$")


def read_budget(text):
    """The entries as (folders, most, goal), and complaints about lines."""
    entries, complaints, reasoned = [], [], True
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("#") or not line.strip():
            continue
        entry, reason = ENTRY.match(line), REASON.match(line)
        if entry and reasoned:
            goal = None if entry["goal"] == "-" else int(entry["goal"])
            entries.append((entry["folders"].split(), int(entry["most"]), goal))
            reasoned = False
        elif reason and entries and not reasoned and int(reason["most"]) == entries[-1][1]:
            reasoned = True
        else:
            complaints.append(f"line {number} of the budget is neither an entry nor the reason of the number above it: {line.strip()}")
    if not reasoned:
        complaints.append(f"the budget of {' '.join(entries[-1][0])} has no reason for {entries[-1][1]}")
    return entries, complaints


def folder_of(base, inner):
    if base == "backends":
        return "backends_kokkos" if inner.parts[0] == "kokkos" else "backends"
    return inner.parts[0] if len(inner.parts) > 1 else "top"


def lines_of(root):
    """Raw lines of the library's C++ files by folder."""
    lines = {}
    for base in ("include/ferry", "src", "backends"):
        for path in (root / base).rglob("*"):
            if path.suffix in (".hpp", ".cpp"):
                inner = path.relative_to(root / base)
                folder = next((name for name, files in CAPABILITIES.items() if files.fullmatch(inner.as_posix())),
                              folder_of(base, inner))
                lines[folder] = lines.get(folder, 0) + path.read_text(encoding="utf-8").count("\n")
    return lines


def check(root):
    """The report and the complaints."""
    root = Path(root).resolve()
    entries, complaints = read_budget((root / "tests/structure/budget").read_text(encoding="utf-8"))
    lines = lines_of(root)
    report = [f"{'folders':20} {'lines':>7} {'most':>7} {'goal':>7} {'above it':>9}"]
    budgeted, sums = [], [0, 0, 0]
    for folders, most, goal in entries:
        budgeted += folders
        size = sum(lines.get(folder, 0) for folder in folders)
        complaints += [f"{folder} has no lines to budget" for folder in folders if folder not in lines]
        report.append(f"{' '.join(folders):20} {size:7} {most:7} " +
                      (f"{'-':>7} {'-':>9}" if goal is None else f"{goal:7} {max(0, size - goal):9}"))
        if goal is not None:
            sums = [sums[0] + size, sums[1] + most, sums[2] + goal]
        if size > most:
            complaints.append(f"{' '.join(folders)} has {size} lines; {most} are the most. Shorten it, or raise the number in "
                              "tests/structure/budget with the reason")
    report.append(f"{'with a goal':20} {sums[0]:7} {sums[1]:7} {sums[2]:7} {max(0, sums[0] - sums[2]):9}")
    complaints += [f"{folder} has no budget" for folder in sorted(set(lines) - set(budgeted))]
    complaints += [f"{folder} has two budgets" for folder in sorted(set(budgeted)) if budgeted.count(folder) > 1]
    return report, complaints


GOOD = {
    "tests/structure/budget": "# Sizes\n\nmemory rows   6   5\n  6: They had six lines.\nbackends   1   -\n  1: It had one line.\n"
                              "top   1   1\n  1: It had one line.\n",
    "include/ferry/memory/detail/pool.hpp": "\n\n",
    "src/memory/pool.cpp": "\n\n",
    "src/rows/gather.cpp": "\n\n",
    "include/ferry/ferry.hpp": "\n",
    "backends/host/launch.hpp": "\n",
}
BUDGET = GOOD["tests/structure/budget"]
BROKEN = [
    ({"src/rows/gather.cpp": "\n" * 3}, "memory rows has 7 lines; 6 are the most"),
    ({"include/ferry/rows/gather.hpp": "\n"}, "memory rows has 7 lines; 6 are the most"),
    ({"backends/cuda/launch.hpp": "\n"}, "backends has 2 lines; 1 are the most"),
    ({"src/ferry.cpp": "\n"}, "top has 2 lines; 1 are the most"),
    ({"src/cache/cache.cpp": "\n"}, "cache has no budget"),
    ({"tests/structure/budget": BUDGET.replace("memory rows   6", "memory rows   7")}, "neither an entry nor the reason"),
    ({"tests/structure/budget": BUDGET.replace("  6: They had six lines.\n", "")}, "neither an entry nor the reason"),
    ({"tests/structure/budget": BUDGET.replace("  6: They had six lines.", "  6: More.")}, "neither an entry nor the reason"),
    ({"tests/structure/budget": BUDGET.replace("top   1   1\n  1: It had one line.\n", "top   1   1\n")}, "has no reason for 1"),
    ({"tests/structure/budget": BUDGET + "rows   9   9\n  9: It has another one.\n"}, "rows has two budgets"),
    ({"tests/structure/budget": BUDGET + "plan   9   9\n  9: It has no lines.\n"}, "plan has no lines to budget"),
]


def findings_of(files):
    with tempfile.TemporaryDirectory() as scratch:
        for name, body in files.items():
            path = Path(scratch) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body, encoding="utf-8")
        return check(scratch)[1]


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
    report, complaints = check(arguments[0])
    print("\n".join(report + complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
