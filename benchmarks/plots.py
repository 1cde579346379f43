#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws reports as SVG: the rate against the size of the table and of a row, where a call's time goes, the cost of
sharded verbs against the number of devices, lookups next to a server's, and what widths, frequent rows and the size of a batch
cost.

    plots.py REPORT.json ... [--out FOLDER]
    plots.py --self-test

Takes the reports of bench_sweep, bench_ranks, bench_quantized, bench_widths, bench_skew and bench_small, of peers/gather.py for its
markers in the first picture, and of peers/quantized.py; their order does not matter. The model of `scaling` is that of
scaling.py. What a picture needs and the reports lack is left out. The same reports give the same bytes.

Needs matplotlib (PyPI; written for 3.11.2): python3 -m pip install matplotlib==3.11.2
"""

import argparse
import json
import math
import re
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import scaling as scaling_model

# Space and path: label, colour, marker.
SERIES = {
    ("mapped_space", "direct"): ("mapped, direct", "#0072b2", "o"),
    ("pinned_space", "cooperative"): ("pinned, cooperative", "#009e73", "s"),
    ("pinned_space", "ordered"): ("pinned, ordered", "#e69f00", "^"),
    ("pinned_space", "staged"): ("pinned, staged", "#cc79a7", "D"),
    ("pinned_space", "direct"): ("pinned, direct", "#d55e00", "v"),
    ("pinned_space", "automatic"): ("pinned, automatic", "#000000", "x"),
}
PEERS = {
    "cupy.gather": ("CuPy, pinned", "P", "#555555"),
    "uva.gather": ("PyTorch, UVA", "*", "#555555"),
    "staged.gather": ("PyTorch, staged", "d", "#999999"),
}
LINES_A_SECOND, LINK_GB_A_SECOND = 400e6, 51  # of a PCIe 5 x16 link
GROUPS = (8, 16, 32, 64)  # numbers of devices that the model is drawn for, beyond the readings
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7")
PARTS = (("start", "#999999"), ("rows", "#0072b2"), ("indices", "#e69f00"))


def settings():
    """Nothing that changes from day to day, and letters as letters: small files that can be searched."""
    return {
        "svg.hashsalt": "ferry", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10,
        "axes.grid": True, "axes.axisbelow": True, "grid.alpha": 0.35, "axes.spines.top": False,
        "axes.spines.right": False, "lines.linewidth": 1.6, "lines.markersize": 5, "legend.frameon": False,
    }


def figures_of(reports):
    return [figure for report in reports for figure in report.get("figures", [])]


def swept(figures, sweep):
    return [figure for figure in figures if figure["setting"].get("sweep") == sweep and figure.get("verified")]


def lines_of(figures, against):
    """For each series the points (setting[against], GB/s), in order."""
    found = {}
    for figure in figures:
        setting = figure["setting"]
        found.setdefault((setting["space"], setting["path"]), []).append((setting[against], figure["gb_per_s"]))
    return {which: sorted(found[which]) for which in SERIES if which in found}


def peers_of(figures, row_bytes):
    """Points of the peers with such rows: for each operation and its number of rows (GiB, GB/s)."""
    found = {}
    for figure in figures:
        head, _, operation = figure["name"].partition("GB.")
        setting = figure["setting"]
        if head.startswith("pinned.") and operation in PEERS and setting["width"] * 4 == row_bytes:
            gib = setting["rows"] * row_bytes / 2**30
            found.setdefault((operation, setting["n"]), []).append((gib, figure["gb_per_s"]))
    return {which: sorted(points) for which, points in sorted(found.items())}


def in_units(count):
    return f"{count:g} B" if count < 1024 else f"{count / 1024:g} KiB"


def draw_lines(axes, lines, ceiling):
    for which, points in lines.items():
        label, colour, marker = SERIES[which]
        dashed = {"linestyle": "--"} if which[1] == "automatic" else {}
        axes.plot(*zip(*points), color=colour, marker=marker, label=label, **dashed)
    if ceiling:
        axes.axhline(ceiling, color="#444444", linestyle=":", label="memcpy from pinned memory")
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)


def set_ticks(axes, values, text):
    from matplotlib.ticker import NullLocator

    axes.set_xticks(values, [text(value) for value in values])
    axes.xaxis.set_minor_locator(NullLocator())


def legend_below(canvas, axes, columns):
    entries = {}
    for each in axes:
        for handle, label in zip(*each.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    canvas.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns)


def table_sizes(pyplot, figures, ceiling):
    points = swept(figures, "table")
    widths = sorted({figure["setting"]["row_bytes"] for figure in points}, reverse=True)
    if not widths:
        return None
    canvas, axes = pyplot.subplots(
        1, len(widths), figsize=(4.6 * len(widths), 4.4), sharey=True, squeeze=False, layout="constrained")
    for each, row_bytes in zip(axes[0], widths):
        here = [figure for figure in points if figure["setting"]["row_bytes"] == row_bytes]
        draw_lines(each, lines_of(here, "table_gib"), ceiling)
        for (operation, n), marks in peers_of(figures, row_bytes).items():
            label, marker, colour = PEERS[operation]
            each.plot(*zip(*marks), color=colour, marker=marker, markersize=8, linestyle="none", label=f"{label}, {n} rows")
        set_ticks(each, sorted({figure["setting"]["table_gib"] for figure in here}), lambda gib: f"{gib:.3g}")
        each.set_title(f"{here[0]['setting']['n']} random rows of {in_units(row_bytes)}")
        each.set_xlabel("table, GiB")
    axes[0][0].set_ylabel("gathered rows, GB/s")
    legend_below(canvas, axes[0], 3)
    return canvas


def row_sizes(pyplot, figures, ceiling):
    points = swept(figures, "rows")
    if not points:
        return None
    canvas, axes = pyplot.subplots(figsize=(7.2, 4.6), layout="constrained")
    draw_lines(axes, lines_of(points, "row_bytes"), ceiling)
    set_ticks(axes, sorted({figure["setting"]["row_bytes"] for figure in points}), in_units)
    setting = points[0]["setting"]
    axes.set_title(f"{setting['n']} random rows of a table of {setting['table_gib']:.3g} GiB")
    axes.set_xlabel("row")
    axes.set_ylabel("gathered rows, GB/s")
    legend_below(canvas, [axes], 3)
    return canvas


def parts_of(parts):
    """Milliseconds to start, for the rows, for the indices: a call on one row, what else a call takes whose plan is
    ready, and what a call takes beyond that which is given indices. Together they are the whole call, so where a plan
    saves nothing all but the start counts as rows."""
    start = min(parts["one_row"], parts["whole"])
    indices = min(max(parts["whole"] - parts["planned"], 0.0), parts["whole"] - start)
    return {"start": start, "rows": parts["whole"] - start - indices, "indices": indices}


def time_split(pyplot, figures):
    found, plan, title = {}, [], ""
    for figure in swept(figures, "parts"):
        setting = figure["setting"]
        ms = figure["wall_ms"]["median"]
        if setting["part"] == "make_plan":
            plan = [("make_plan alone", ms)]  # tables in all spaces have the same rows
        else:
            found.setdefault((setting["space"], setting["path"]), {})[setting["part"]] = ms
        if setting["part"] == "whole":
            title = (f"One gather and its wait: {setting['n']} random rows of {in_units(setting['row_bytes'])}, "
                     f"table of {setting['table_gib']:.3g} GiB")
    bars = [(SERIES[which][0], parts_of(found[which])) for which in SERIES if len(found.get(which, ())) == 3]
    if not bars:
        return None
    names = [name for name, _ in bars] + [name for name, _ in plan]
    canvas, axes = pyplot.subplots(figsize=(7.6, 0.9 + 0.45 * len(names)), layout="constrained")
    left = [0.0] * len(bars)
    texts = {"start": "start: the same on one row", "rows": "rows", "indices": "indices: what a ready plan saves"}
    for part, colour in PARTS:
        widths = [parts[part] for _, parts in bars]
        axes.barh(range(len(bars)), widths, left=left, color=colour, label=texts[part], height=0.6)
        left = [before + width for before, width in zip(left, widths)]
    axes.barh(range(len(bars), len(names)), [ms for _, ms in plan], color="#e69f00", alpha=0.5, height=0.6)
    for place, ms in enumerate(left + [ms for _, ms in plan]):
        axes.text(ms, place, f" {ms:.3g}", va="center")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("ms, medians")
    axes.set_title(title, fontsize=10)
    legend_below(canvas, [axes], 3)
    return canvas


def scaling(pyplot, figures):
    """The time of a call, and the share of the rate of two devices that each device keeps, against the number of
    devices: readings as markers, the model as lines."""
    read = scaling_model.readings(figures)
    groups = sorted({ranks for ranks, _ in read})
    try:
        model = scaling_model.Model(read, max(groups, default=0))
    except (ValueError, TypeError, IndexError):
        return None
    largest = max(model.sizes)
    shown = {f"gather.shared.{scaling_model.ROW}.{largest}", f"step.device_space.{largest}", "all_reduce.64MiB",
             *(f"step.device_space.{n}" for n in sorted(model.plain)[-2:-1]),
             *(f"gather.shared.{scaling_model.ROW}.{n}" for n in model.sizes[-2:-1])}
    calls = [call for call in model.calls() if call[1] in shown]
    canvas, (times, shares) = pyplot.subplots(1, 2, figsize=(9.6, 4.6), layout="constrained")
    xs = sorted({*groups, *(n for n in GROUPS if n > groups[-1])})
    for (label, what, time), colour in zip(calls, COLOURS):
        marks = [(n, scaling_model.ms_of(read, n, what)) for n in groups]
        marks = [(n, ms) for n, ms in marks if ms is not None]
        curve = [(n, time(n)) for n in xs if time(n) is not None]
        times.plot(*zip(*curve), color=colour, label=label)
        times.plot(*zip(*marks), color=colour, marker="o", linestyle="none")
        base = dict(marks).get(2)
        if base:
            shares.plot(*zip(*[(n, base / ms) for n, ms in curve if n >= 2]), color=colour, label=label)
            shares.plot(*zip(*[(n, base / ms) for n, ms in marks if n >= 2]), color=colour, marker="o", linestyle="none")
    for axes in (times, shares):
        axes.set_xscale("log", base=2)
        axes.set_ylim(bottom=0)
        set_ticks(axes, xs, str)
        axes.set_xlabel("devices")
    times.set_ylabel("ms of a rank")
    times.set_title("Time of a call, the same work on each rank", fontsize=10)
    shares.set_ylabel("share of the rate of two devices")
    shares.set_title("Weak scaling; markers: readings, lines: model", fontsize=10)
    legend_below(canvas, [times], 3)
    return canvas


def lookups(pyplot, figures):
    """Rows a second against the rows of a call: decoded rows from mapped memory, next to a Triton kernel's."""
    series = (
        ("ferry, scales in the device", "mapped.mxfp8.256.scales_device", "", False, "#0072b2", "o"),
        ("ferry, scales in mapped memory", "mapped.mxfp8.256.scales_mapped", "", False, "#009e73", "s"),
        ("Triton, page-locked, sorted before", "mapped.mxfp8.256.scales_mapped", ".sorted", True, "#e69f00", "^"),
        ("Triton, page-locked", "mapped.mxfp8.256.scales_mapped", "", True, "#d55e00", "v"),
    )
    canvas, axes = pyplot.subplots(figsize=(7.2, 4.6), layout="constrained")
    sizes = set()
    for label, name, order, is_peer, colour, marker in series:
        pattern = re.compile(rf"quantized\.{re.escape(name)}\.n(\d+){re.escape(order)}$")
        points = []
        for figure in figures:
            match = pattern.match(figure["name"])
            if match and ("way" in figure["setting"]) == is_peer:
                points.append((int(match[1]), int(match[1]) / figure["wall_ms"]["median"] / 1e3))
        if points:
            sizes.update(n for n, _ in points)
            axes.plot(*zip(*sorted(points)), color=colour, marker=marker, label=label)
    if not sizes:
        pyplot.close(canvas)
        return None
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    set_ticks(axes, sorted(sizes), str)
    axes.set_xlabel("rows a call")
    axes.set_ylabel("million rows a second, call and wait")
    axes.set_title("Rows of MXFP8, 256 numbers, decoded to bfloat16")
    legend_below(canvas, [axes], 2)
    return canvas


def row_bytes(pyplot, figures):
    """The rate against the bytes of a row in mapped memory, next to what the link's lines allow."""
    rates = {}
    for figure in figures:
        match = re.match(r"widths\.(gather|scatter)\.bytes\.(\d+)$", figure["name"])
        if match:
            rates.setdefault(match[1], []).append((int(match[2]), figure["gb_per_s"]))
    if not rates:
        return None
    canvas, axes = pyplot.subplots(figsize=(7.2, 4.6), layout="constrained")
    widths = sorted({width for points in rates.values() for width, _ in points})
    axes.plot(widths, [link_floor(width) for width in widths], color="#444444", linestyle=":",
              label=f"{LINES_A_SECOND / 1e6:g} million lines a second, or {LINK_GB_A_SECOND:g} GB/s")
    for (verb, points), colour, marker in zip(sorted(rates.items()), COLOURS, "os"):
        axes.plot(*zip(*sorted(points)), color=colour, marker=marker, linestyle="none", label=verb)
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    set_ticks(axes, [2**k for k in range(6, 13)], in_units)
    axes.set_xlabel("bytes of a row")
    axes.set_ylabel("GB/s")
    axes.set_title("Random rows of bytes in mapped memory")
    legend_below(canvas, [axes], 3)
    return canvas


def link_floor(width):
    """GB/s of rows one after the other, if the link takes so many lines of 128 bytes a second."""
    rows = 128 // math.gcd(width, 128)
    lines = sum((row * width + width - 1) // 128 - row * width // 128 + 1 for row in range(rows)) / rows
    return min(LINK_GB_A_SECOND, width / lines * LINES_A_SECOND / 1e9)


def shares_by_width(pyplot, figures, copy):
    """The share of a device copy against the width of a row within the device."""
    shares = {}
    for figure in figures:
        match = re.match(r"widths\.(\w+)\.device\.(\d+)(\.plan_ready)?$", figure["name"])
        if match and copy:
            label = match[1] + (", plan ready" if match[3] else "")
            shares.setdefault(label, []).append((int(match[2]), figure["gb_per_s"] / copy))
    if not shares:
        return None
    canvas, axes = pyplot.subplots(figsize=(7.2, 4.6), layout="constrained")
    for (label, points), colour, marker in zip(sorted(shares.items()), COLOURS, "os^Dv"):
        axes.plot(*zip(*sorted(points)), color=colour, marker=marker, label=label)
    axes.set_xscale("log", base=2)
    axes.set_ylim(0, 1)
    set_ticks(axes, [2**k for k in range(8)], str)
    axes.set_xlabel("floats of a row")
    axes.set_ylabel("bytes read and written / device copy")
    axes.set_title("Random rows within the device")
    legend_below(canvas, [axes], 3)
    return canvas


def skew(pyplot, figures):
    """The time of a batch in which few rows have most positions, next to the uniform one's."""
    times = {}
    for figure in figures:
        match = re.match(r"skew\.(\w+)\.(\d+)\.(\w+(?:\.\d+)?)$", figure["name"])
        if match:
            times.setdefault((int(match[2]), match[1]), {})[match[3]] = figure["ms"]["median"]
    sizes = sorted({n for n, _ in times})
    if not sizes:
        return None
    canvas, axes = pyplot.subplots(
        1, len(sizes), figsize=(4.8 * len(sizes), 4.4), sharey=True, squeeze=False, layout="constrained")
    for each, n in zip(axes[0], sizes):
        verbs = [verb for size, verb in times if size == n]
        kinds = list(times[n, verbs[0]])
        for verb, colour, marker in zip(verbs, COLOURS, "os^Dv"):
            base = times[n, verb]["uniform"]
            each.plot(range(len(kinds)), [times[n, verb][kind] / base for kind in kinds], color=colour, marker=marker, label=verb)
        set_ticks(each, range(len(kinds)), lambda place: kinds[place].replace("_", " "))
        each.set_yscale("log", base=2)
        set_y_ticks(each, (0.5, 1, 2, 4, 8))
        each.set_title(f"{n} positions")
    axes[0][0].set_ylabel("time / time of the uniform batch")
    legend_below(canvas, axes[0], 4)
    return canvas


def batch_sizes(pyplot, figures):
    """The time of a call of a burst against the rows of its batch, around the sizes at which the kernels change."""
    times = {}
    for figure in figures:
        match = re.match(r"small\.sizes\.((?!loop\.).+)\.n(\d+)$", figure["name"])
        if match:
            times.setdefault(match[1], []).append((int(match[2]), 1e3 * figure["ms"]["median"]))
    if not times:
        return None
    canvas, axes = pyplot.subplots(figsize=(7.2, 4.8), layout="constrained")
    for (verb, points), colour, marker in zip(times.items(), COLOURS + ("#000000",), "os^Dvx"):
        axes.plot(*zip(*sorted(points)), color=colour, marker=marker, markersize=4, label=verb)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    sizes = [n for points in times.values() for n, _ in points]
    set_ticks(axes, [2**k for k in range(8, 18) if min(sizes) <= 2**k <= max(sizes)], str)
    set_y_ticks(axes, (4, 8, 16, 32, 64, 128))
    axes.set_xlabel("rows of a batch")
    axes.set_ylabel("microseconds of a call, back to back")
    axes.set_title("Rows of 128 floats, drawn with replacement")
    legend_below(canvas, [axes], 3)
    return canvas


def set_y_ticks(axes, values):
    from matplotlib.ticker import NullLocator

    axes.set_yticks(values, [f"{value:g}" for value in values])
    axes.yaxis.set_minor_locator(NullLocator())


def draw(reports, out):
    """Writes what can be drawn; the files' paths."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figures = figures_of(reports)
    ceiling = next((figure["gb_per_s"] for figure in figures if figure["name"] == "ceiling.h2d"), None)
    copy = next((figure["gb_per_s"] for figure in figures if figure["name"] == "ceiling.device_copy"), None)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    with matplotlib.rc_context(settings()):
        for name, canvas in (
            ("gather_table_size", table_sizes(pyplot, figures, ceiling)),
            ("gather_row_size", row_sizes(pyplot, figures, ceiling)),
            ("gather_time_split", time_split(pyplot, figures)),
            ("scaling", scaling(pyplot, figures)),
            ("lookups", lookups(pyplot, figures)),
            ("row_bytes", row_bytes(pyplot, figures)),
            ("shares_by_width", shares_by_width(pyplot, figures, copy)),
            ("skew", skew(pyplot, figures)),
            ("batch_sizes", batch_sizes(pyplot, figures)),
        ):
            if canvas is None:
                continue
            written.append(out / f"{name}.svg")
            canvas.savefig(written[-1], metadata={"Date": None, "Creator": None})
            pyplot.close(canvas)
    return written


def made_up():
    def figure(name, rate=1.0, ms=1.0, **setting):
        return {"name": name, "verified": True, "gb_per_s": rate, "wall_ms": {"median": ms}, "setting": setting}

    ours = [figure("ceiling.h2d", 55.0)]
    for space, path in SERIES:
        about = {"space": space, "path": path, "n": 1000}
        for gib in (0.25, 1.0, 16.0):
            for row_bytes in (512, 128):
                ours.append(figure("t", 20.0 + gib, sweep="table", table_gib=gib, row_bytes=row_bytes, **about))
        for row_bytes in (16, 512, 4096):
            ours.append(figure("r", row_bytes**0.4, sweep="rows", table_gib=16.0, row_bytes=row_bytes, **about))
        if path != "automatic":
            for part, ms in (("whole", 1.6), ("planned", 1.5), ("one_row", 0.1)):
                ours.append(figure("p", ms=ms, sweep="parts", part=part, table_gib=16.0, row_bytes=512, **about))
    ours.append(figure("p", ms=0.2, sweep="parts", part="make_plan", space="pinned_space", path="", table_gib=16.0))
    theirs = [figure("pinned.10GB.cupy.gather", 15.0, rows=19_531_250, width=128, n=1000),
              figure("pinned.10GB.cupy.scatter", 15.0, rows=19_531_250, width=128, n=1000)]
    ours.append(figure("ceiling.device_copy", 4000.0))
    lookup = "quantized.mapped.mxfp8.256.scales_"
    for n in (16, 1024):
        for scales in ("device", "mapped"):
            ours.append(figure(f"{lookup}{scales}.n{n}", ms=0.1, n=n))
        for order in ("", ".sorted"):
            theirs.append(figure(f"{lookup}mapped.n{n}{order}", ms=0.4, n=n, way="grid"))
    for width in (64, 136, 4096):
        for verb in ("gather", "scatter"):
            ours.append(figure(f"widths.{verb}.bytes.{width}", 40.0))
    for width in (1, 8, 128):
        for verb in ("gather", "scatter", "scatter_add"):
            ours.append(figure(f"widths.{verb}.device.{width}", 3000.0))
    for verb in ("scatter_add", "sgd"):
        for kind in ("uniform", "zipf_1.05", "one_row"):
            ours.append({**figure(f"skew.{verb}.1000.{kind}"), "ms": {"median": 1.0}})
    for verb in ("gather", "step.adam", "loop.step.adam"):
        for n in (256, 1024, 1025):
            ours.append({**figure(f"small.sizes.{verb}.n{n}"), "ms": {"median": 0.008}})
    return [{"ferry": {}, "figures": ours}, {"figures": theirs}, scaling_model.made_up()]


def self_test():
    def close(left, right):
        return all(abs(left[part] - right[part]) < 1e-9 for part in left)

    assert link_floor(128) == 51 and abs(link_floor(136) - 27.2) < 0.9 and abs(link_floor(64) - 25.6) < 1e-9
    assert close(parts_of({"whole": 1.6, "planned": 1.5, "one_row": 0.1}), {"start": 0.1, "rows": 1.4, "indices": 0.1})
    assert close(parts_of({"whole": 1.4, "planned": 1.5, "one_row": 0.1}), {"start": 0.1, "rows": 1.3, "indices": 0.0})
    assert close(parts_of({"whole": 0.1, "planned": 0.0, "one_row": 0.2}), {"start": 0.1, "rows": 0.0, "indices": 0.0})
    with tempfile.TemporaryDirectory() as folder:
        first, again = (draw(made_up(), Path(folder) / name) for name in ("first", "again"))
        wanted = {
            "gather_table_size": [label for label, _, _ in SERIES.values()] + ["memcpy from pinned memory", "CuPy, pinned, 1000 rows"],
            "gather_row_size": [label for label, _, _ in SERIES.values()] + ["memcpy from pinned memory", "4 KiB"],
            "gather_time_split": ["pinned, cooperative", "mapped, direct", "rows", "make_plan alone"],
            "scaling": ["gather of 1048576 rows", "step(adam) of 131072 rows", "all_reduce of 64 MiB", "64"],
            "lookups": ["ferry, scales in the device", "Triton, page-locked, sorted before", "1024"],
            "row_bytes": ["gather", "scatter", "400 million lines a second, or 51 GB/s", "4 KiB"],
            "shares_by_width": ["gather", "scatter_add", "128"],
            "skew": ["scatter_add", "sgd", "zipf 1.05", "1000 positions"],
            "batch_sizes": ["gather", "step.adam", "1024"],
        }
        assert [file.stem for file in first] == list(wanted), first
        for file, other in zip(first, again):
            assert file.read_bytes() == other.read_bytes(), f"{file.name} differs from time to time"
            texts = [text.strip() for text in ElementTree.parse(file).getroot().itertext() if text.strip()]
            for label in wanted[file.stem]:
                assert label in texts, (file.name, label, texts)
        # One line of three points for each series in each of the two panels, and one for the ceiling.
        tree = ElementTree.parse(first[0])
        paths = [each.get("d", "") for each in tree.iter("{http://www.w3.org/2000/svg}path") if each.get("clip-path")]
        long = [path for path in paths if path.count("L") == 2]
        assert len(long) >= 2 * len(SERIES), len(long)
        peers_only = draw([{"figures": made_up()[1]["figures"][:2]}], Path(folder) / "none")
        assert peers_only == [], peers_only
    print("plots.py: self-test passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="*", type=Path, help="reports of the programs named above")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the pictures")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    written = draw([json.loads(path.read_text(encoding="utf-8")) for path in options.reports], options.out)
    if not written:
        parser.error("the reports hold nothing to draw: a report of a program named above is needed")
    print(*written, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
