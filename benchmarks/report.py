#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the report of one run, and README's figures from it.

    report.py REPORT.json ... --out results/CARD.md     the report, from the JSON of ferry's programs and of peers/*.py
    report.py --readme results/CARD.md                  README's table, from that report
    report.py --check results/CARD.md                   whether README has the figures of that report
    report.py --before BEFORE.json ... --after AFTER.json ...    what changed between two commits, of runs in turns on one card
    report.py --self-test

jobs.json lists the jobs in their order: the figure of ferry's, the figure that it is compared with, and the least ratio and
share of the bound that are held. A ratio above 1 is in favour of ferry. Times of two figures of ferry's are those of the
device; against a peer the times of one call and its wait decide: what a user sees. A share is ferry's rate over that of
its bound, a figure of the same run. A job that was not measured is left out, and listed at the end.
"""

import argparse
import json
import re
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
README = FOLDER.parent / "README.md"
COLUMNS = ["job", "ms", "compared with", "its ms", "ratio", "bound", "share"]
BEGIN, END = "<!-- figures: benchmarks/report.py -->", "<!-- end of figures -->"


def number(value, digits=3):
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e" in text else text


def row_of(job, figures, peers):
    """The cells of a job, or None if ferry's figure is missing; what is wrong; what is missing."""
    ours = figures.get(job["ferry"])
    if ours is None:
        return None, [], [f"{job['job']}: {job['ferry']}"]
    problems = [] if ours.get("verified", False) else [f"{job['job']}: the result was wrong"]
    missing, cells = [], dict.fromkeys(COLUMNS, "") | {"job": job["job"], "ms": number(ours["ms"]["median"])}
    if "peer" in job or "of" in job:
        name = job.get("peer") or job["of"]
        other = (peers if "peer" in job else figures).get(name)
        settings = [figure["setting"] for figure in (ours, other) if figure is not None and "peer" in job]
        unlike = [key for key in ("n", "width") if len({setting[key] for setting in settings if key in setting}) > 1]
        if other is None or unlike:
            missing.append(f"{job['job']}: {name}" + "".join(f" of an equal {key}" for key in unlike))
        else:
            clock = "wall_ms" if "peer" in job else "ms"
            time, its_time = ours[clock]["median"], other[clock]["median"]
            rated = "of" in job and ours.get("bytes", 0) > 0 and other.get("bytes", 0) > 0
            ratio = ours["gb_per_s"] / other["gb_per_s"] if rated else its_time / time
            cells |= {"ms": number(time), "compared with": job.get("with", name), "its ms": number(its_time),
                      "ratio": f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}"}
            if "least" in job and ratio < job["least"]:
                problems.append(f"{job['job']}: ratio {ratio:.3f} is below {job['least']}")
    bound = figures.get(ours.get("ceiling", ""))
    if bound is not None and "gb_per_s" in ours:
        share = ours["gb_per_s"] / bound["gb_per_s"]
        cells |= {"bound": bound["name"].removeprefix("ceiling."), "share": f"{share:.2f}"}
        if "least_share" in job and share < job["least_share"]:
            problems.append(f"{job['job']}: share {share:.3f} is below {job['least_share']}")
    if "counted" in job:
        counted = ours.get("counted", {})
        cells["compared with"] = ", ".join(f"{counted[what]:g} {what}" for what in job["counted"] if what in counted)
        if any(counted.get(what) != 0 for what in job["counted"]):
            problems.append(f"{job['job']}: {counted}")
    return cells, problems, missing


def write_report(runs, jobs, commit):
    """The lines of the report. `runs` are reports of ferry's and of peers."""
    own, others = [run for run in runs if "ferry" in run], [run for run in runs if "ferry" not in run]
    figures, peers = ({figure["name"]: figure for run in part for figure in run["figures"]} for part in (own, others))
    device = own[0]["device"]
    lines = [f"# {device.get('name', device['backend'])}", "",
             f"Written by `benchmarks/report.py` from one run on {own[0]['date'][:10]}"
             + (f" of commit {commit}" if commit else "") + ". "
             + f"CUDA {device.get('runtime_cuda', 'none')}, tables of {own[0]['options'].get('table_gib') or 16:g} GiB.",
             "Columns: see [benchmarks](../README.md#report). Times are medians in ms.", ""]
    below, missing = [], []
    for section in jobs["sections"]:
        rows = []
        for job in section["jobs"]:
            cells, problems, lacking = row_of(job, figures, peers)
            below += problems
            missing += lacking
            if cells is not None:
                rows.append("| " + " | ".join(cells[column] for column in COLUMNS) + " |")
        if rows:
            lines += [f"## {section['title']}", "", "| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|", *rows, ""]
    for run in own:
        below += [f"{failure['name']}: {failure['why']}" for failure in run.get("failures", [])]
        below += ["a run with --quick: its figures say nothing"] if run["options"]["quick"] else []
    for title, texts in (("Below what is held", below), ("Not measured", missing)):
        if texts:
            lines += [f"## {title}", "", *(f"- {text}" for text in texts), ""]
    return lines, below


def cells_of(report):
    """The cells of each job of a report."""
    jobs = {}
    for line in report.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == len(COLUMNS):
            jobs[cells[0]] = dict(zip(COLUMNS, cells))
    return jobs


def readme_table(report, jobs):
    """README's lines. A text has {job:column} for a cell, or {job:column:x} for one followed by x."""
    table, lines = cells_of(report), []
    names = {job["ferry"] + (f" {job['key']}" if "key" in job else ""): job["job"]
             for section in jobs["sections"] for job in section["jobs"]}
    for text, values in jobs["readme"]:
        found = []
        for value in values:
            name, column = value.split(":")[:2]
            cells = table.get(names[name])
            if cells is None or not cells[column]:
                break
            found.append(cells[column] + ("x" if value.endswith(":x") else ""))
        else:
            lines.append(f"| {text} | {', '.join(found)} |")
    return "\n".join([BEGIN, "| | |", "|---|---|", *lines, END])


def compare(before, after, least=0.03):
    """Figures of two commits whose times differ by more than `least` of the former: name, both times, ratio. A time is
    the least median of a commit's runs: neighbours on a machine only add to it."""
    def times(runs):
        found = {}
        for figure in (figure for run in runs if "ferry" in run for figure in run["figures"]):
            if not figure["name"].startswith("ceiling."):
                found.setdefault(figure["name"], []).append(figure["ms"]["median"])
        return {name: min(values) for name, values in found.items()}

    former, latter = times(before), times(after)
    pairs = [(name, former[name], latter[name]) for name in former if latter.get(name, 0) > 0]
    changed = [(name, one, other, other / one) for name, one, other in pairs if abs(other / one - 1) > least]
    lines = ["| figure | before, ms | after, ms | after / before |", "|---|---|---|---|"]
    lines += [f"| {name} | {number(one)} | {number(other)} | {ratio:.2f} |" for name, one, other, ratio in sorted(changed, key=lambda c: -c[3])]
    slower = sum(ratio > 1 for *_, ratio in changed)
    lines += ["", f"{len(pairs)} figures of both; {slower} slower and {len(changed) - slower} faster by more than {least:.0%}."]
    return lines


def self_test():
    def figure(name, ms, rate=None, **more):
        result = {"name": name, "ms": {"median": ms}, "wall_ms": {"median": 2 * ms}, "verified": True, "setting": {"n": 7}}
        return result | ({"gb_per_s": rate, "bytes": 1} if rate else {}) | more

    jobs = {"sections": [{"title": "Verbs", "jobs": [
        {"job": "gather", "ferry": "a", "of": "b", "least": 0.9, "least_share": 0.8},
        {"job": "step", "ferry": "s", "peer": "p", "with": "Peer", "least": 5},
        {"job": "loop", "ferry": "c", "counted": ["waits"]}, {"job": "absent", "ferry": "x"}]}],
            "readme": [["gather of rows", ["a:share", "a:ratio:x"]], ["absent", ["x:ms"]]]}

    def run(rate=45.0, waits=0.0, n=7, **more):
        own = {"ferry": {}, "date": "2026-01-01T", "device": {"backend": "Cuda"}, "options": {"quick": False}, "figures": [
            figure("a", 1.0, rate, ceiling="ceiling.copy"), figure("b", 1.0, 50.0), figure("ceiling.copy", 1.0, 55.0),
            figure("s", 0.2), figure("c", 0.1, counted={"waits": waits})]} | more
        return write_report([own, {"figures": [figure("p", 1.2) | {"setting": {"n": n}}]}], jobs, "abc")

    lines, below = run()
    assert below == [] and "| gather | 1 | b | 1 | 0.90 | copy | 0.82 |" in lines, (lines, below)
    assert "| step | 0.4 | Peer | 2.4 | 6.00 |  |  |" in lines and "- absent: x" in lines, lines
    assert readme_table("\n".join(lines), jobs) == "\n".join([BEGIN, "| | |", "|---|---|", "| gather of rows | 0.82, 0.90x |", END])
    for broken, text in (({"rate": 40.0}, "ratio 0.800"), ({"rate": 40.0}, "share 0.727"), ({"waits": 0.5}, "loop"),
                         ({"failures": [{"name": "a", "why": "1 element"}]}, "a: 1 element"),
                         ({"options": {"quick": True}}, "--quick")):
        assert any(text in problem for problem in run(**broken)[1]), (broken, run(**broken)[1])
    assert "- step: p of an equal n" in run(n=8)[0] and "| step | 0.2 |  |  |  |  |  |" in run(n=8)[0]
    def timed(**ms):
        return {"ferry": {}, "figures": [figure(name, value) for name, value in ms.items()]}

    table = compare([timed(a=1.0, b=2.0), timed(a=1.2, b=1.9)], [timed(a=1.1, b=1.9, c=1.0)])
    assert "| a | 1 | 1.1 | 1.10 |" in table and not any("| b " in line for line in table), table
    assert "2 figures of both; 1 slower and 0 faster" in table[-1], table
    listed = json.loads((FOLDER / "jobs.json").read_text(encoding="utf-8"))
    texts = [job["job"] for section in listed["sections"] for job in section["jobs"]]
    assert len(texts) == len(set(texts)), [text for text in texts if texts.count(text) > 1]
    readme_table("", listed)  # README names jobs that are listed
    print("report.py: self-test passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="*", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default="")
    parser.add_argument("--readme", type=Path)
    parser.add_argument("--check", type=Path)
    parser.add_argument("--before", nargs="+", type=Path)
    parser.add_argument("--after", nargs="+", type=Path)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.before and options.after:
        print("\n".join(compare(*([json.loads(path.read_text(encoding="utf-8")) for path in paths] for paths in (options.before, options.after)))))
        return 0
    jobs = json.loads((FOLDER / "jobs.json").read_text(encoding="utf-8"))
    report = options.readme or options.check
    if report is not None:
        readme = README.read_text(encoding="utf-8")
        table = readme_table(report.read_text(encoding="utf-8"), jobs)
        written = re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda match: table, readme, flags=re.DOTALL)
        if options.readme:
            README.write_text(written, encoding="utf-8")
        elif written != readme or BEGIN not in readme:
            print(f"README.md differs from {report}; run benchmarks/report.py --readme {report}", file=sys.stderr)
            return 1
        return 0
    lines, below = write_report([json.loads(path.read_text(encoding="utf-8")) for path in options.reports], jobs, options.commit)
    text = "\n".join(lines)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    print(text)
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
