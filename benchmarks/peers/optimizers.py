#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's optimizers on the rows of a batch: what ferry's fused steps are measured against.

The figures are named <device>.<optimizer>.<gradient>. Sparse gradients: `coalesced` ones are sorted and free of repeats
before the clock starts, as a plan that is ready; `uncoalesced` ones are sorted inside the step, as indices given to
ferry. The rows are distinct in both, in random order, and other ones in each call. Those of `duplicates` are drawn with
replacement, and the gradients uncoalesced.

`gathered` is for optimizers that take no sparse gradients: weights and state of the batch's distinct rows are gathered
from their tables, stepped with a dense gradient, and scattered back. Each implementation of torch's is a figure of its
own, `gathered.foreach` say, and `gathered` is the fastest of them.
"""

import inspect

import torch

import common

SPARSE = {
    "SGD": (torch.optim.SGD, {"lr": 0.1}),
    "Adagrad": (torch.optim.Adagrad, {"lr": 0.1}),
    "SparseAdam": (torch.optim.SparseAdam, {"lr": 0.1}),
}
# With the number of state arrays: one that is not gathered would make the peer look faster.
DENSE = {
    "Adadelta": (torch.optim.Adadelta, {"lr": 0.1}, 2),
    "Adamax": (torch.optim.Adamax, {"lr": 0.1}, 2),
    "RMSprop": (torch.optim.RMSprop, {"lr": 0.1}, 1),
    "Rprop": (torch.optim.Rprop, {"lr": 0.1}, 2),
    "ASGD": (torch.optim.ASGD, {"lr": 0.1}, 1),
    "NAdam": (torch.optim.NAdam, {"lr": 0.1}, 2),
    "Adam": (torch.optim.Adam, {"lr": 0.1}, 2),
    "AdamW": (torch.optim.AdamW, {"lr": 0.1}, 2),
    "Amsgrad": (torch.optim.Adam, {"lr": 0.1, "amsgrad": True}, 3),
    "SGDMomentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}, 1),
}
# A rule that can be captured into a graph counts its steps on the device, and some then read nothing back.
WAYS = {"foreach": {"foreach": True}, "capturable": {"foreach": True, "capturable": True}, "fused": {"fused": True}}
SETS = 4  # each set of gradients holds a whole batch


def ways_of(options, rule):
    known = inspect.signature(rule.__init__).parameters
    return [
        way
        for way, settings in WAYS.items()
        if all(one in known for one in settings) and (way != "capturable" or options.device == "cuda")
    ]


def make_rows(options, kind):
    if kind == "duplicates":
        return torch.randint(0, options.rows, (options.n,), device=options.device)
    return torch.randperm(options.rows, device=options.device)[: options.n]


def make_gradient(options, kind):
    rows = make_rows(options, kind).unsqueeze(0)
    values = torch.rand(options.n, options.width, device=options.device)
    gradient = torch.sparse_coo_tensor(rows, values, (options.rows, options.width))
    return gradient.coalesce() if kind == "coalesced" else gradient


def require_moved(before, after, rows):
    """One step must have moved the named rows and no others."""
    moved = (after != before).any(dim=1).nonzero().squeeze(1)
    if not torch.equal(moved, rows.unique()):
        raise RuntimeError(f"the step moved {len(moved)} rows, not those of the gradient")


def sparse_step(report, options, name, kind):
    rule, settings = SPARSE[name]
    gradients = [make_gradient(options, kind) for _ in range(SETS)]
    weight = torch.rand(options.rows, options.width, device=options.device).requires_grad_()
    optimizer = rule([weight], **settings)

    def step(call):
        weight.grad = gradients[call % SETS]
        optimizer.step()

    before = weight.detach().clone()
    step(0)
    require_moved(before, weight.detach(), gradients[0].coalesce().indices().squeeze(0))
    report.measure(f"{options.device}.{name}.{kind}", step, rows=options.rows, n=options.n, width=options.width)


@torch.no_grad()
def gathered_step(report, options, name, way):
    rule, settings, arrays = DENSE[name]
    sets = [make_rows(options, "distinct") for _ in range(SETS)]
    gradients = [torch.rand(options.n, options.width, device=options.device) - 0.5 for _ in range(SETS)]
    # A step of zeros by zeros makes the state, one value in all of it: that of the tables.
    weight = torch.nn.Parameter(torch.zeros(options.n, options.width, device=options.device))
    weight.grad = torch.zeros_like(weight)
    optimizer = rule([weight], **settings, **WAYS[way])
    optimizer.step()
    state = [one for one in optimizer.state[weight].values() if torch.is_tensor(one) and one.shape == weight.shape]
    if len(state) != arrays:
        raise RuntimeError(f"{len(state)} state arrays, not {arrays}")
    batches = [weight.data, *state]
    tables = [torch.rand(options.rows, options.width, device=options.device)]
    tables += [torch.full_like(tables[0], one.flatten()[0].item()) for one in state]

    def step(call):
        rows = sets[call % SETS]
        for table, batch in zip(tables, batches):
            torch.index_select(table, 0, rows, out=batch)
        weight.grad = gradients[call % SETS]
        optimizer.step()
        for table, batch in zip(tables, batches):
            table.index_copy_(0, rows, batch)

    before = [table.clone() for table in tables]
    step(0)
    step(0)  # Rprop's sizes stay what they are at the first
    for old, new in zip(before, tables):
        require_moved(old, new, sets[0])
    del before
    name = f"{options.device}.{name}.gathered.{way}"
    report.measure(name, step, rows=options.rows, n=options.n, width=options.width)


def main():
    options = common.read(common.arguments(__doc__.splitlines()[0]))
    report = common.Report(options)
    torch.manual_seed(7)
    for name in SPARSE:
        for kind in ("coalesced", "uncoalesced", "duplicates"):
            report.attempt(
                f"{options.device}.{name}.{kind}", lambda name=name, kind=kind: sparse_step(report, options, name, kind)
            )
    for name in DENSE:
        for way in ways_of(options, DENSE[name][0]):
            report.attempt(
                f"{options.device}.{name}.gathered.{way}",
                lambda name=name, way=way: gathered_step(report, options, name, way),
            )
        report.fastest(f"{options.device}.{name}.gathered")
    report.finish()


if __name__ == "__main__":
    main()
