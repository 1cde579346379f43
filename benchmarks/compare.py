#!/usr/bin/env python3
"""Holds ferry's report and the peers' reports against the goals, and prints the ratios as a table.

    compare.py FERRY.json [PEER.json ...] [--goals] [--markdown FILE] [--json FILE] [--goals-file FILE]
    compare.py --self-test

Ratios inside ferry's report divide rates by the device's clock. Against a peer, the times of one call and its wait
decide: what a user sees; the ratio of the device's own times stands beside it. With --goals the exit status is 1 where
a required goal is missed, was not measured, was measured on a smaller table, or where a result was wrong.
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


def judge(goal, ferry, peers):
    """One row of the table: value is None where a figure is missing."""
    row = {"what": goal["what"], "ferry": goal["ferry"], "against": goal.get("of") or goal["peer"],
           "at_least": goal["at_least"], "aim": goal.get("aim"), "required": goal["required"],
           "value": None, "device_value": None, "note": ""}
    ours = ferry.get(row["ferry"])
    other = (ferry if "of" in goal else peers).get(row["against"])
    for name, figure in ((row["ferry"], ours), (row["against"], other)):
        if figure is None:
            row["note"] = f"{name} was not measured"
            return row
    if not ours.get("verified", False):
        row["note"] = "the result was wrong"
        return row
    size = ours["setting"].get("table_gib", ours["setting"].get("gib"))
    if "table_gib" in goal and (size is None or size < 0.99 * goal["table_gib"]):
        row["note"] = f"measured on {size} GiB, not {goal['table_gib']}"
        return row
    if "peer" in goal:
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


def verdict_of(row):
    if row["value"] is None:
        return "NOT MEASURED"
    if row["value"] < row["at_least"]:
        return "MISSED"
    if row["aim"] is not None and row["value"] < row["aim"]:
        return "met, aim missed"
    return "met"


def table_of(rows):
    lines = ["| what | ratio | goal | device's own times | verdict |", "|---|---|---|---|---|"]
    for row in rows:
        value = "" if row["value"] is None else f"{row['value']:.3f}"
        device = "" if row["device_value"] is None else f"{row['device_value']:.3f}"
        goal = f"{row['at_least']:g}" + (f" (aim {row['aim']:g})" if row["aim"] is not None else "")
        mark = "" if row["required"] else " (not required)"
        note = f": {row['note']}" if row["note"] else ""
        lines.append(f"| {row['what']} | {value} | {goal}{mark} | {device} | {verdict_of(row)}{note} |")
    return "\n".join(lines)


def compare(ferry, peers, goals):
    """The rows, and what makes --goals fail."""
    ours, theirs, backend = figures_of([ferry]), figures_of(peers), backend_of(ferry)
    rows = [judge(goal, ours, theirs) for goal in goals if goal["backend"] == backend]
    problems = [f"{verdict_of(row)}: {row['what']} {row['note']}".strip()
                for row in rows if row["required"] and (row["value"] is None or row["value"] < row["at_least"])]
    problems += [f"FAILED: {failure['name']}: {failure['why']}" for failure in ferry.get("failures", [])]
    if ferry["options"]["quick"]:
        problems.append("ferry's report is of a --quick run: its figures say nothing")
    return rows, problems


def self_test():
    def figure(name, ms, rate=None, **setting):
        made = {"name": name, "ms": {"median": ms}, "wall_ms": {"median": ms}, "verified": True, "setting": setting}
        return made | ({"gb_per_s": rate} if rate else {})

    goals = [
        {"what": "link", "backend": "cuda", "ferry": "a", "of": "top", "at_least": 0.85, "table_gib": 16, "required": True},
        {"what": "step", "backend": "cuda", "ferry": "s", "peer": "p", "at_least": 5, "aim": 8, "required": True},
        {"what": "host only", "backend": "host", "ferry": "x", "of": "y", "at_least": 1, "required": True},
    ]

    def run(rate=50.0, step=0.2, gib=16.0, peer_n=7, **changes):
        ferry = {"device": {"backend": "Cuda"}, "options": {"quick": False},
                 "figures": [figure("a", 1, rate, table_gib=gib), figure("top", 1, 55.0), figure("s", step, n=7)]}
        return compare(ferry | changes, [{"figures": [figure("p", 1.2, n=peer_n)]}], goals)

    rows, problems = run()
    assert [verdict_of(row) for row in rows] == ["met", "met, aim missed"] and not problems, (rows, problems)
    assert table_of(rows).count("\n") == 3
    for broken, text in (({"rate": 40.0}, "MISSED: link"), ({"step": 0.3}, "MISSED: step"),
                         ({"gib": 4.0}, "NOT MEASURED: link"), ({"peer_n": 8}, "NOT MEASURED: step"),
                         ({"failures": [{"name": "a", "why": "1 element"}]}, "FAILED: a"),
                         ({"options": {"quick": True}}, "--quick")):
        _, problems = run(**broken)
        assert len(problems) == 1 and text in problems[0], (broken, problems)
    _, problems = compare({"device": {"backend": "OpenMP"}, "options": {"quick": False}, "figures": []}, [], goals)
    assert len(problems) == 1 and "host only" in problems[0], problems
    print("compare.py: self-test passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ferry", nargs="?", type=Path, help="report of bench_all")
    parser.add_argument("peers", nargs="*", type=Path, help="reports of peers/*.py")
    parser.add_argument("--goals", action="store_true", help="fail where a required goal is missed")
    parser.add_argument("--goals-file", type=Path, default=Path(__file__).with_name("goals.json"))
    parser.add_argument("--markdown", type=Path, help="write the table to this file as well")
    parser.add_argument("--json", type=Path, help="write the ratios to this file")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.ferry is None:
        parser.error("a report of ferry's is needed")

    def load(path):
        return json.loads(path.read_text(encoding="utf-8"))

    ferry, peers = load(options.ferry), [load(path) for path in options.peers]
    rows, problems = compare(ferry, peers, load(options.goals_file)["goals"])
    table = table_of(rows)
    print(table)
    if options.markdown:
        device = ferry["device"].get("name", ferry["device"]["backend"])
        options.markdown.write_text(f"{device}, {ferry['date']}, ferry {ferry['ferry']['version']}\n\n{table}\n",
                                    encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps([row | {"verdict": verdict_of(row)} for row in rows], indent=2) + "\n",
                                encoding="utf-8")
    if options.goals and problems:
        print("\nGOALS MISSED", *problems, sep="\n  ", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
