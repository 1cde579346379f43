#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's calls on batches of all sizes: what bench_small is measured against.

The figures are named small.<call>.n<rows of the batch>: index_select, index_copy_, index_add_, and steps of SGD and SparseAdam on
sparse gradients that are not coalesced. Rows are drawn with replacement, other ones in each call. small.empty_kernel is the shortest
call that launches a kernel.
"""

import torch

import common

SIZES = (1, 32, 1024, 4096, 16384, 131072)
SETS = 16
RULES = {"SGD": torch.optim.SGD, "SparseAdam": torch.optim.SparseAdam}


def moves(report, options, table, rows, values):
    n = values.shape[0]
    out = torch.empty_like(values)
    setting = {"rows": options.rows, "n": n, "width": options.width}

    def index_select(call):
        torch.index_select(table, 0, rows[call % SETS], out=out)

    def index_copy(call):
        table.index_copy_(0, rows[call % SETS], values)

    def index_add(call):
        table.index_add_(0, rows[call % SETS], values)

    report.measure(f"small.index_select.n{n}", index_select, **setting)
    index_select(0)
    if not torch.equal(out, table[rows[0]]):
        raise RuntimeError("index_select gathered other rows")
    report.measure(f"small.index_copy_.n{n}", index_copy, **setting)
    report.measure(f"small.index_add_.n{n}", index_add, **setting)


def step(report, options, rows, values, name):
    n = values.shape[0]
    gradients = [torch.sparse_coo_tensor(one.unsqueeze(0), values, (options.rows, options.width)) for one in rows]
    weight = torch.rand(options.rows, options.width, device=options.device).requires_grad_()
    optimizer = RULES[name]([weight], lr=0.1)

    def run(call):
        weight.grad = gradients[call % SETS]
        optimizer.step()

    before = weight.detach().clone()
    run(0)
    moved = (weight.detach() != before).any(dim=1).nonzero().squeeze(1)
    if not torch.equal(moved, rows[0].unique()):
        raise RuntimeError(f"{name} moved {len(moved)} rows, not those of the gradient")
    report.measure(f"small.{name}.n{n}", run, rows=options.rows, n=n, width=options.width)


def main():
    options = common.read(common.arguments(__doc__.splitlines()[0]))
    report = common.Report(options)
    torch.manual_seed(11)
    one = torch.zeros(1, device=options.device)
    report.measure("small.empty_kernel", lambda _: one.zero_())
    table = torch.rand(options.rows, options.width, device=options.device)
    for n in SIZES:
        rows = [torch.randint(0, options.rows, (n,), device=options.device) for _ in range(SETS)]
        values = torch.rand(n, options.width, device=options.device) + 0.5
        report.attempt(f"small.moves.n{n}", lambda rows=rows, values=values: moves(report, options, table, rows, values))
        for name in RULES:
            report.attempt(
                f"small.{name}.n{n}",
                lambda rows=rows, values=values, name=name: step(report, options, rows, values, name),
            )
    report.finish()


if __name__ == "__main__":
    main()
