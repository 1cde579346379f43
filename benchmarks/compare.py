#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds ferry's reports and the peers' reports against the goals, and prints the ratios as a table.

    compare.py FERRY.json [REPORT.json ...] [--goals] [--markdown FILE] [--json FILE] [--goals-file FILE]
    compare.py --self-test

Ratios inside a report of ferry's divide rates by the device's clock. Against a peer, the times of one call and its wait
decide: what a user sees; the ratio of the device's own times is printed next to it. With --goals the exit status is 1 where
a required goal is missed, was not measured, was measured on a smaller table, or where a result was wrong.

Goals that differ in table_gib alone are one goal for several sizes: a report is held against the largest that its table
reaches, and the others are skipped. Reports of several sizes may be given together.
"""

import argparse
import json
import sys
from pathlib import Path


def figures_of(reports):
    return {figure["name"]: figure for report in reports for figure in report.get("figures", [])}


def backend_of(ferry):
    return "cuda" if ferry["device"]["backend"].lower() == "cuda" else "host"


def ratio_between(ours, other):
    """Above 1: ours is faster. By rates where both have them, else by times."""
    if "gb_per_s" in ours and "gb_per_s" in other:
        return ours["gb_per_s"] / other["gb_per_s"]
    return other["ms"]["median"] / ours["ms"]["median"]


def measures(goal):
    """What goals have in common that differ in the size of the table alone."""
    return goal["backend"], goal["ferry"], goal.get("of"), goal.get("peer"), goal.get("counted")


def size_for(goal, goals, size):
    """Of the sizes that the goal is set for, the largest that a table of `size` GiB reaches; None where there is none."""
    sizes = [other["table_gib"] for other in goals if "table_gib" in other and measures(other) == measures(goal)]
    return max((one for one in sizes if size is not None and size >= 0.99 * one), default=None)


def judge(goal, goals, ferry, peers):
    """One row of the table: value is None where a figure is missing."""
    row = {"what": goal["what"], "ferry": goal["ferry"], "against": goal.get("of") or goal.get("peer"),
           "at_least": goal.get("at_least"), "at_most": goal.get("at_most"), "aim": goal.get("aim"),
           "required": goal["required"], "skipped": False, "value": None, "device_value": None, "note": ""}
    ours = ferry.get(row["ferry"])
    other = (ferry if "of" in goal else peers).get(row["against"])
    for name, figure in ((row["ferry"], ours), (row["against"], other)):
        if name is not None and figure is None:
            row["note"] = f"{name} was not measured"
            return row
    if not ours.get("verified", False):
        row["note"] = "the result was wrong"
        return row
    size = ours["setting"].get("table_gib", ours["setting"].get("gib"))
    if "table_gib" in goal and size_for(goal, goals, size) != goal["table_gib"]:
        row["skipped"] = size_for(goal, goals, size) is not None
        row["note"] = f"measured on {size} GiB, not {goal['table_gib']}"
        return row
    if "counted" in goal:
        missing = [what for what in goal["counted"] if what not in ours.get("counted", {})]
        if missing:
            row["note"] = f"{', '.join(missing)} were not counted"
            return row
        row["value"] = sum(ours["counted"][what] for what in goal["counted"])
    elif "peer" in goal:
        # Same rows, same batch, same width, or the times say nothing about each other.
        for key in ("n", "width"):
            left, right = ours["setting"].get(key), other["setting"].get(key)
            if left is not None and right is not None and left != right:
                row["note"] = f"{key} is {left} here and {right} there"
                return row
        row["value"] = other["wall_ms"]["median"] / ours["wall_ms"]["median"]
        row["device_value"] = other["ms"]["median"] / ours["ms"]["median"]
    else:
        row["value"] = ratio_between(ours, other)
    return row


def judge_all(goal, goals, runs, peers):
    """By the first of ferry's reports that can tell."""
    rows = [judge(goal, goals, figures_of([run]), peers) for run in runs]
    return next((row for row in rows if row["value"] is not None), None) or next(
        (row for row in rows if row["skipped"]), rows[0])


def verdict_of(row):
    if row["skipped"]:
        return "skipped"
    if row["value"] is None:
        return "NOT MEASURED"
    if row["at_most"] is not None:
        return "met" if row["value"] <= row["at_most"] else "MISSED"
    if row["value"] < row["at_least"]:
        return "MISSED"
    if row["aim"] is not None and row["value"] < row["aim"]:
        return "met, aim missed"
    return "met"


def table_of(rows):
    lines = ["| what | ratio or count | goal | device's own times | verdict |", "|---|---|---|---|---|"]
    for row in rows:
        value = "" if row["value"] is None else f"{row['value']:.3f}"
        device = "" if row["device_value"] is None else f"{row['device_value']:.3f}"
        goal = f"at most {row['at_most']:g}" if row["at_least"] is None else f"{row['at_least']:g}"
        goal += (f" (aim {row['aim']:g})" if row["aim"] is not None else "")
        mark = "" if row["required"] else " (not required)"
        note = f": {row['note']}" if row["note"] else ""
        lines.append(f"| {row['what']} | {value} | {goal}{mark} | {device} | {verdict_of(row)}{note} |")
    return "\n".join(lines)


def compare(runs, peers, goals):
    """The rows, and what makes --goals fail. `runs` are ferry's reports."""
    theirs, backends = figures_of(peers), {backend_of(run) for run in runs}
    rows = [judge_all(goal, goals, [run for run in runs if backend_of(run) == goal["backend"]], theirs)
            for goal in goals if goal["backend"] in backends]
    problems = [f"{verdict_of(row)}: {row['what']} {row['note']}".strip()
                for row in rows if row["required"] and verdict_of(row) in ("MISSED", "NOT MEASURED")]
    for run in runs:
        problems += [f"FAILED: {failure['name']}: {failure['why']}" for failure in run.get("failures", [])]
        if run["options"]["quick"]:
            problems.append("a report of ferry's is of a --quick run: its figures say nothing")
    return rows, problems


def self_test():
    def figure(name, ms, rate=None, **setting):
        made = {"name": name, "ms": {"median": ms}, "wall_ms": {"median": ms}, "verified": True, "setting": setting}
        return made | ({"gb_per_s": rate} if rate else {})

    goals = [
        {"what": "link", "backend": "cuda", "ferry": "a", "of": "top", "at_least": 0.85, "table_gib": 16, "required": True},
        {"what": "step", "backend": "cuda", "ferry": "s", "peer": "p", "at_least": 5, "aim": 8, "required": True},
        {"what": "large", "backend": "cuda", "ferry": "b", "of": "top", "at_least": 0.9, "table_gib": 16, "required": True},
        {"what": "larger", "backend": "cuda", "ferry": "b", "of": "top", "at_least": 0.8, "table_gib": 64, "required": True},
        {"what": "calls", "backend": "cuda", "ferry": "c", "counted": ["waits", "allocations"], "at_most": 0, "required": True},
        {"what": "host only", "backend": "host", "ferry": "x", "of": "y", "at_least": 1, "required": True},
    ]

    def report(rate=50.0, step=0.2, gib=16.0, large=51.0, large_gib=16.0, waits=0.0, **changes):
        counted = figure("c", 1) | {"counted": {"waits": waits, "allocations": 0.0}}
        ferry = {"device": {"backend": "Cuda"}, "options": {"quick": False},
                 "figures": [figure("a", 1, rate, table_gib=gib), figure("top", 1, 55.0), figure("s", step, n=7),
                             figure("b", 1, large, table_gib=large_gib), counted]}
        return ferry | changes

    def run(*runs, peer_n=7, **changes):
        return compare(runs or [report(**changes)], [{"figures": [figure("p", 1.2, n=peer_n)]}], goals)

    rows, problems = run()
    verdicts = [verdict_of(row) for row in rows]
    assert verdicts == ["met", "met, aim missed", "met", "skipped", "met"] and not problems, (rows, problems)
    assert table_of(rows).count("\n") == 6
    for sizes, verdicts in (((64.0,), ["skipped", "met"]), ((32.0,), ["met", "skipped"]), ((16.0, 64.0), ["met", "met"]),
                            ((64.0, 16.0), ["met", "met"])):
        rows, problems = run(*[report(large=51.0 if size < 64 else 45.0, large_gib=size) for size in sizes])
        assert [verdict_of(row) for row in rows[2:4]] == verdicts and not problems, (sizes, rows, problems)
    _, problems = run(large_gib=4.0)
    assert len(problems) == 2 and "not 16" in problems[0] and "not 64" in problems[1], problems
    _, problems = run(report(), report(large=30.0, large_gib=64.0))
    assert problems == ["MISSED: larger"], problems
    for broken, text in (({"rate": 40.0}, "MISSED: link"), ({"step": 0.3}, "MISSED: step"),
                         ({"gib": 4.0}, "NOT MEASURED: link"), ({"peer_n": 8}, "NOT MEASURED: step"),
                         ({"waits": 0.02}, "MISSED: calls"), ({"large": 45.0}, "MISSED: large"),
                         ({"failures": [{"name": "a", "why": "1 element"}]}, "FAILED: a"),
                         ({"options": {"quick": True}}, "--quick")):
        _, problems = run(**broken)
        assert len(problems) == 1 and text in problems[0], (broken, problems)
    _, problems = compare([{"device": {"backend": "OpenMP"}, "options": {"quick": False}, "figures": []}], [], goals)
    assert len(problems) == 1 and "host only" in problems[0], problems
    uncounted = report()
    del uncounted["figures"][-1]["counted"]["waits"]
    _, problems = run(uncounted)
    assert problems == ["NOT MEASURED: calls waits were not counted"], problems
    print("compare.py: self-test passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="*", type=Path, help="reports of bench_all and of peers/*.py")
    parser.add_argument("--goals", action="store_true", help="fail where a required goal is missed")
    parser.add_argument("--goals-file", type=Path, default=Path(__file__).with_name("goals.json"))
    parser.add_argument("--markdown", type=Path, help="write the table to this file as well")
    parser.add_argument("--json", type=Path, help="write the ratios to this file")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()

    def load(path):
        return json.loads(path.read_text(encoding="utf-8"))

    reports = [load(path) for path in options.reports]
    runs = [report for report in reports if "ferry" in report]
    if not runs:
        parser.error("a report of ferry's is needed")
    rows, problems = compare(runs, [report for report in reports if "ferry" not in report],
                             load(options.goals_file)["goals"])
    table = table_of(rows)
    print(table)
    if options.markdown:
        about = [f"{run['device'].get('name', run['device']['backend'])}, {run['date']}, ferry {run['ferry']['version']}"
                 for run in runs]
        options.markdown.write_text("\n".join(about) + f"\n\n{table}\n", encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps([row | {"verdict": verdict_of(row)} for row in rows], indent=2) + "\n",
                                encoding="utf-8")
    if options.goals and problems:
        print("\nGOALS MISSED", *problems, sep="\n  ", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
