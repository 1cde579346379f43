#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of sharded verbs for a rank as the number of devices grows: a model of measured terms, next to readings.

    scaling.py REPORT.json [--fit-to 2] [--predict 8,64] [--link GB/s]
    scaling.py --self-test

Takes the report of bench_ranks and prints Markdown tables: the terms, then for each call the reading and the model's
time. --fit-to takes the terms from groups of at most so many devices, so that the readings of larger groups test the
model. --predict adds numbers of devices without readings, for a link of the same rate at each device, or of --link.

Times in ms, N devices, n rows of r bytes a rank, o = (N - 1) / N the share of other ranks:

    gather      start + max(n r / local, o n r / link)                   by path::peer
    step        plain(n) + 2 meeting(N) + route + n position + o n r / link
    all_reduce  sum_start + 2 meeting(N) + 2 o S / sum_link              of S bytes, each direction
    meeting(N)  meeting + N rank                                         a barrier

start: a gather of 1024 rows on one device, launch and wait. local, link: gathers of 8-fold batches on one device, and
from the other ranks of the largest group fitted. plain(n): the step of one device on an ordinary table. route: launches
of the routing kernels and the host's read of the counts; position: the routing kernels for each position, less what the
update's own kernel hides of the link; both from the smallest and the largest batch. sum_start, sum_link: from sums of 1 and 64 MiB.
"""

import argparse
import json
import re
import sys
from pathlib import Path

ROW = "512B"
MIB = 2**20


def readings(figures):
    """{(N, what): figure} of the figures ranks.<N>.<what> that are right."""
    found = {}
    for figure in figures:
        name = re.fullmatch(r"ranks\.(\d+)\.(.+)", figure["name"])
        if name and figure.get("verified"):
            found[int(name[1]), name[2]] = figure
    return found


def ms_of(read, ranks, what):
    figure = read.get((ranks, what))
    return None if figure is None else figure["wall_ms"]["median"]


def line_through(points):
    """(a, b) of a + b x by least squares; b = 0 with one point."""
    count = len(points)
    mean_x, mean_y = (sum(point[i] for point in points) / count for i in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    return mean_y - slope * mean_x, slope


def counts_of(read, pattern):
    """The numbers n of figures whose name matches the pattern's group."""
    found = {int(name[1]) for _, what in read if (name := re.fullmatch(pattern, what))}
    return sorted(found)


def row_bytes():
    return int(ROW[:-1])


class Model:
    """The terms of a report, from groups of at most `most` devices."""

    def __init__(self, read, most, link=None):
        groups = sorted({ranks for ranks, _ in read if ranks <= most})
        if not groups or groups[0] != 1 or len(groups) < 2:
            raise ValueError("the model needs readings of one device and of a larger group")
        self.groups = groups
        largest = groups[-1]
        sizes = counts_of(read, rf"gather\.shared\.{ROW}\.(\d+)")
        self.sizes = sizes
        self.start = ms_of(read, 1, f"gather.shared.{ROW}.{sizes[0]}")
        volume = sizes[-1] * row_bytes() / 1e6
        self.local = volume / max(ms_of(read, 1, f"gather.shared.{ROW}.{sizes[-1]}") - self.start, 1e-9)
        far = ms_of(read, largest, f"gather.far.{ROW}.{sizes[-1]}.all")
        self.link = link or volume / max(far - self.start, 1e-9)
        meetings = [(n, ms_of(read, n, "verb.barrier") - ms_of(read, n, "verb.nothing")) for n in groups if n > 1]
        if len(meetings) == 1:  # through the origin: nobody to meet costs nothing
            ranks, ms = meetings[0]
            self.meeting, self.rank = 0.0, ms / ranks
        else:
            self.meeting, self.rank = line_through(meetings)
            if self.rank < 0:  # noise: no rank makes a meeting shorter
                self.meeting, self.rank = sum(ms for _, ms in meetings) / len(meetings), 0.0
        self.plain = {n: ms_of(read, 1, f"step.plain.device_space.{n}")
                      for n in counts_of(read, r"step\.plain\.device_space\.(\d+)")}
        rests = []
        for n, plain in self.plain.items():
            for ranks in groups[1:]:
                whole = ms_of(read, ranks, f"step.device_space.{n}")
                if whole is not None:
                    rests.append((n, whole - plain - 2 * self.meet(ranks) - self.over_link(ranks, n)))
        ends = [rest for rest in rests if rest[0] in (min(self.plain), max(self.plain))]
        self.route, self.position = line_through(ends) if ends else (0.0, 0.0)
        sums = {mib: [ms_of(read, n, f"all_reduce.{mib}MiB") for n in groups[1:]] for mib in (1, 64)}
        starts, links = [], []
        for ranks, small, large in zip(groups[1:], sums[1], sums[64]):
            rate = 2 * self.others(ranks) * 63 * MIB / 1e6 / max(large - small, 1e-9)
            links.append(rate)
            starts.append(small - 2 * self.meet(ranks) - 2 * self.others(ranks) * MIB / 1e6 / rate)
        self.sum_link = link * min(links) / self.measured_link(volume, far) if link else min(links)
        self.sum_start = sum(starts) / len(starts)

    def measured_link(self, volume, far):
        return volume / max(far - self.start, 1e-9)

    @staticmethod
    def others(ranks):
        return (ranks - 1) / ranks

    def meet(self, ranks):
        return self.meeting + ranks * self.rank if ranks > 1 else 0.0

    def over_link(self, ranks, n):
        return self.others(ranks) * n * row_bytes() / 1e6 / self.link

    def gather(self, ranks, n):
        return self.start + max(n * row_bytes() / 1e6 / self.local, self.over_link(ranks, n))

    def step(self, ranks, n):
        if ranks == 1:
            return self.plain[n]
        return self.plain[n] + 2 * self.meet(ranks) + self.route + n * self.position + self.over_link(ranks, n)

    def all_reduce(self, ranks, mib):
        if ranks == 1:
            return None
        return self.sum_start + 2 * self.meet(ranks) + 2 * self.others(ranks) * mib * MIB / 1e6 / self.sum_link

    def calls(self):
        """(name, name of the figures, time on N devices)"""
        for n in self.sizes:
            yield f"gather of {n} rows", f"gather.shared.{ROW}.{n}", lambda ranks, n=n: self.gather(ranks, n)
        for n in self.plain:
            yield f"step(adam) of {n} rows", f"step.device_space.{n}", lambda ranks, n=n: self.step(ranks, n)
        for mib in (1, 64):
            yield f"all_reduce of {mib} MiB", f"all_reduce.{mib}MiB", lambda ranks, mib=mib: self.all_reduce(ranks, mib)

    def terms(self):
        return [("start", self.start, "ms"), ("local", self.local, "GB/s"), ("link", self.link, "GB/s"),
                ("meeting", self.meeting, "ms"), ("rank", self.rank, "ms"), ("route", self.route, "ms"),
                ("position", 1e6 * self.position, "ns"), ("sum_start", self.sum_start, "ms"),
                ("sum_link", self.sum_link, "GB/s"),
                *((f"plain({n})", ms, "ms") for n, ms in self.plain.items())]


def table(model, read, predicted):
    """Lines of Markdown: reading / model in ms."""
    measured = sorted({ranks for ranks, _ in read})
    groups = measured + [n for n in predicted if n not in measured]
    lines = ["| call | " + " | ".join(str(n) for n in groups) + " |", "|---|" + "---|" * len(groups)]
    for name, what, time in model.calls():
        cells = []
        for ranks in groups:
            reading, modelled = ms_of(read, ranks, what), time(ranks)
            cells.append(" / ".join(f"{ms:.3g}" if ms is not None else "-" for ms in (reading, modelled)))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def made_up():
    """A report whose terms are known: link 400, local 2000 GB/s, meetings of 4 + 2 N us."""
    figures = []

    def add(ranks, what, ms):
        figures.append({"name": f"ranks.{ranks}.{what}", "verified": True, "gb_per_s": 1.0, "setting": {"ranks": ranks},
                        "wall_ms": {"median": ms}})

    for ranks in (1, 2, 4):
        others, meet = (ranks - 1) / ranks, 0.004 + 0.002 * ranks if ranks > 1 else 0.0
        add(ranks, "verb.nothing", 0.001)
        add(ranks, "verb.barrier", 0.001 + meet)
        for n in (1024, 131072, 1048576):
            volume, start = n * 512 / 1e6, 0.01 if n > 1024 else 0.01 - 1024 * 512 / 1e6 / 2000
            add(ranks, f"gather.shared.{ROW}.{n}", start + max(volume / 2000, others * volume / 400))
            if ranks > 1:
                add(ranks, f"gather.far.{ROW}.{n}.all", start + volume / 400)
            if ranks == 1:
                add(1, f"step.plain.device_space.{n}", 0.02 + n * 1e-6)
            add(ranks, f"step.device_space.{n}",
                0.02 + n * 1e-6 + (2 * meet + 0.05 + n * 2e-7 + others * volume / 400 if ranks > 1 else 0))
        for mib in (1, 64):
            add(ranks, f"all_reduce.{mib}MiB", 0.003 + 2 * meet + 2 * others * mib * MIB / 1e6 / 300)
    return {"figures": figures}


def self_test():
    read = readings(made_up()["figures"])
    model = Model(read, 4)

    def close(value, wanted, part=0.01):
        assert abs(value - wanted) <= part * abs(wanted), (value, wanted)

    for value, wanted in ((model.link, 400), (model.local, 2000), (model.meeting, 0.004), (model.rank, 0.002),
                          (model.route, 0.05), (model.position, 2e-7), (model.sum_link, 300), (model.sum_start, 0.003)):
        close(value, wanted)
    early = Model(read, 2)  # four devices from what two say
    for ranks in (4,):
        close(early.gather(ranks, 1048576), ms_of(read, ranks, f"gather.shared.{ROW}.1048576"))
        close(early.step(ranks, 1048576), ms_of(read, ranks, "step.device_space.1048576"))
        close(early.all_reduce(ranks, 64), ms_of(read, ranks, "all_reduce.64MiB"), 0.03)
    assert Model(read, 4, link=200).gather(64, 1048576) > 1.9 * model.gather(64, 1048576)
    lines = table(model, read, [8, 64])
    assert lines[0] == "| call | 1 | 2 | 4 | 8 | 64 |" and len(lines) == 2 + 3 + 3 + 2, lines
    assert lines[-1].startswith("| all_reduce of 64 MiB |") and "- / " in lines[-1], lines[-1]
    wrong = [dict(figure, verified=False) for figure in made_up()["figures"]]
    assert readings(wrong) == {}
    print("scaling.py: self-test passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", nargs="?", type=Path, help="report of bench_ranks")
    parser.add_argument("--fit-to", type=int, default=1 << 30, help="largest group that gives terms")
    parser.add_argument("--predict", default="8,64", help="numbers of devices without readings")
    parser.add_argument("--link", type=float, help="GB/s of the link of each device in these")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.report is None:
        parser.error("a report of bench_ranks is needed")
    read = readings(json.loads(options.report.read_text(encoding="utf-8"))["figures"])
    model = Model(read, options.fit_to, options.link)
    print(f"Terms from groups of {', '.join(map(str, model.groups))} devices:", *(
        f"{name} {value:.4g} {unit}" for name, value, unit in model.terms()), sep="\n  ")
    print("\nms on N devices, reading / model:\n")
    print(*table(model, read, [int(n) for n in options.predict.split(",")]), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
