#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's rows of any width, narrow and odd ones: what bench_widths is measured against.

    rows.py [--n 1048576] [--gib 2] [--widths 1 3 8 33 65 127 128 129] [--json REPORT.json]

A figure torch.widths.<verb>.device.<width> is bench_widths' widths.<verb>.device.<width>, with the same rows and bytes:
gather (index_select of random rows), scatter (index_copy_ of distinct rows), scatter_last (index_copy_ of random rows,
of which any may stay), scatter_add (index_add_ of distinct rows), and scatter_add_random (index_add_ of random rows).
ceiling.device_copy copies half of the table onto the other half. Give bench_widths --device-n and --device-table-gib of
the same values; run both in one job.
"""

import math

import torch

import common

SETS = 8
BURST = 4
STRIDE = 2_654_435_761


def distinct_rows(options, rows, n, start):
    """Distinct rows in random order, without a permutation of all rows: a stride that has no factor of their number."""
    stride = STRIDE
    while math.gcd(stride, rows) != 1:
        stride += 2
    base = torch.randperm(n, device=options.device) + start
    return base % rows * (stride % rows) % rows


def require(name, right):
    if not right:
        raise RuntimeError(f"{name}: elements are wrong")


def copies(report, options, flat):
    half = flat.numel() // 2
    report.measure("torch.ceiling.device_copy", lambda _: flat[half : 2 * half].copy_(flat[:half]), 8 * half, burst=BURST)


def width_of(report, options, flat, width):
    rows = flat.numel() // width
    table, n = flat[: rows * width].view(rows, width), min(options.n, rows)
    batch = torch.rand(n, width, device=options.device)
    out = torch.empty_like(batch)
    any_rows = [torch.randint(rows, (n,), device=options.device) for _ in range(SETS)]
    distinct = [distinct_rows(options, rows, n, s * n) for s in range(SETS)]
    require("distinct rows", distinct[0].unique().numel() == n)
    moved = 4 * width * n
    setting = {"rows": rows, "n": n, "row_bytes": 4 * width}

    def time(verb, call, factor):
        report.measure(f"torch.widths.{verb}.device.{width}", call, factor * moved, burst=BURST, **setting)

    table.uniform_()
    time("gather", lambda call: torch.index_select(table, 0, any_rows[call % SETS], out=out), 2)
    torch.index_select(table, 0, any_rows[0], out=out)
    require("index_select", torch.equal(out, table[any_rows[0]]))
    time("scatter", lambda call: table.index_copy_(0, distinct[call % SETS], batch), 2)
    table.index_copy_(0, distinct[0], batch)
    require("index_copy_", torch.equal(table[distinct[0]], batch))
    time("scatter_last", lambda call: table.index_copy_(0, any_rows[call % SETS], batch), 2)
    time("scatter_add", lambda call: table.index_add_(0, distinct[call % SETS], batch), 3)
    table.zero_()
    table.index_add_(0, distinct[0], batch)
    require("index_add_", torch.equal(table[distinct[0]], batch))
    time("scatter_add_random", lambda call: table.index_add_(0, any_rows[call % SETS], batch), 3)


def main():
    parser = common.arguments(__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=2.0, help="GiB of the table")
    parser.add_argument("--widths", type=int, nargs="+", default=[1, 3, 8, 33, 65, 127, 128, 129])
    parser.set_defaults(n=1_048_576)
    options = common.read(parser)
    if options.quick:
        options.gib = 1 / 32
    report = common.Report(options)
    torch.manual_seed(41)
    flat = torch.zeros(int(options.gib * 2**30) // 4, device=options.device)
    report.attempt("torch.ceiling.device_copy", lambda: copies(report, options, flat))
    for width in options.widths:
        report.attempt(f"torch.widths.{width}", lambda width=width: width_of(report, options, flat, width))
    report.finish()


if __name__ == "__main__":
    main()
