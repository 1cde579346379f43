#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws README's picture: the rate of gathers against the size of the table.

    plot.py SWEEP.json [GATHER.json] --out results/gather_table_size.svg

SWEEP.json is a report of bench_sweep, GATHER.json one of peers/gather.py for its markers. Equal reports give equal bytes.
Needs matplotlib (PyPI; written for 3.11.2).
"""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  # after the choice of the backend

SERIES = {  # space and path: label, colour, marker
    ("mapped_space", "direct"): ("mapped, direct", "#0072b2", "o"),
    ("pinned_space", "cooperative"): ("pinned, cooperative", "#009e73", "s"),
    ("pinned_space", "ordered"): ("pinned, ordered", "#e69f00", "^"),
    ("pinned_space", "staged"): ("pinned, staged", "#cc79a7", "D"),
    ("pinned_space", "direct"): ("pinned, direct", "#d55e00", "v"),
}
PEERS = {"cupy.gather": ("CuPy, pinned", "P"), "uva.gather": ("PyTorch, UVA", "*"), "staged.gather": ("PyTorch, staged", "d")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in options.reports]
    figures = [figure for report in reports for figure in report["figures"]]
    swept = [figure for figure in figures if figure["setting"].get("sweep") == "table" and figure.get("verified")]
    ceiling = next((figure["gb_per_s"] for figure in figures if figure["name"] == "ceiling.h2d"), None)
    widths = sorted({figure["setting"]["row_bytes"] for figure in swept}, reverse=True)
    pyplot.rcParams.update({"svg.hashsalt": "ferry", "svg.fonttype": "none", "axes.grid": True, "grid.alpha": 0.35})
    canvas, axes = pyplot.subplots(1, len(widths), figsize=(4.6 * len(widths), 4.4), sharey=True, squeeze=False,
                                   layout="constrained")
    for each, row_bytes in zip(axes[0], widths):
        for which, (label, colour, marker) in SERIES.items():
            points = sorted((figure["setting"]["table_gib"], figure["gb_per_s"]) for figure in swept
                            if figure["setting"]["row_bytes"] == row_bytes
                            and (figure["setting"]["space"], figure["setting"]["path"]) == which)
            if points:
                each.plot(*zip(*points), color=colour, marker=marker, label=label)
        for operation, (label, marker) in PEERS.items():
            points = [(figure["setting"]["rows"] * row_bytes / 2**30, figure["gb_per_s"]) for figure in figures
                      if figure["name"].endswith(f"GB.{operation}") and figure["setting"]["width"] * 4 == row_bytes]
            if points:
                each.plot(*zip(*sorted(points)), color="#555555", marker=marker, linestyle="none", label=label)
        if ceiling:
            each.axhline(ceiling, color="#444444", linestyle=":", label="memcpy from pinned memory")
        each.set_xscale("log", base=2)
        each.set_ylim(bottom=0)
        each.set_title(f"random rows of {row_bytes} B")
        each.set_xlabel("table, GiB")
    axes[0][0].set_ylabel("gathered rows, GB/s")
    canvas.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    canvas.savefig(options.out, metadata={"Date": None})


if __name__ == "__main__":
    main()
