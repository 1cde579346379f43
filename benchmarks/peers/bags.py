#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.nn.EmbeddingBag, forward, and backward with SparseAdam: what ferry's bags are measured against.

The figures are named <device>.EmbeddingBag.<what>: `forward.<mode>`, and `training.<mode>`, which is the backward pass
with sparse gradients and the optimizer's step, without the forward pass before it. Ten random rows a bag, other rows in
each call; half as many bags as --n says rows.
"""

import torch

import common

HOTNESS = 10
SETS = 4


def make_bags(options, mode):
    bags = torch.nn.EmbeddingBag(options.rows, options.width, mode=mode, sparse=True, include_last_offset=True)
    return bags.to(options.device)


def make_indices(options):
    return torch.randint(0, options.rows, (options.n // 2 * HOTNESS,), device=options.device)


def make_offsets(options):
    return torch.arange(options.n // 2 + 1, device=options.device) * HOTNESS


@torch.no_grad()
def forward(report, options, mode):
    bags, offsets = make_bags(options, mode), make_offsets(options)
    sets = [make_indices(options) for _ in range(SETS)]
    pooled = bags(sets[0], offsets)
    expected = bags.weight[sets[0][-HOTNESS:]].double().sum(dim=0) / (HOTNESS if mode == "mean" else 1)
    if not torch.allclose(pooled[-1].double(), expected, rtol=1e-4, atol=1e-4):
        raise RuntimeError("the last bag is not the sum of its rows")
    payload = 4 * options.width * (options.n // 2) * (HOTNESS + 1)
    report.measure(f"{options.device}.EmbeddingBag.forward.{mode}", lambda call: bags(sets[call % SETS], offsets), payload,
                   rows=options.rows, bags=options.n // 2, hotness=HOTNESS, width=options.width)


def training(report, options, mode):
    """The graph of each forward pass is kept, so that only what follows it is timed."""
    bags, offsets = make_bags(options, mode), make_offsets(options)
    optimizer = torch.optim.SparseAdam(bags.parameters(), lr=0.1)
    pooled = [bags(make_indices(options), offsets) for _ in range(SETS)]
    gradient = torch.rand(options.n // 2, options.width, device=options.device) - 0.5

    # autograd.grad, not backward: the steps between change the weights, whose values the backward pass of a sum or a mean
    # does not use, but whose version backward may check.
    def step(call):
        (bags.weight.grad,) = torch.autograd.grad(pooled[call % SETS], bags.weight, gradient, retain_graph=True)
        optimizer.step()

    before = bags.weight.detach().clone()
    step(0)
    if not (bags.weight.detach() != before).any():
        raise RuntimeError("the step moved nothing")
    report.measure(f"{options.device}.EmbeddingBag.training.{mode}", step, burst=2, rows=options.rows,
                   bags=options.n // 2, hotness=HOTNESS, width=options.width)


def main():
    options = common.read(common.arguments(__doc__.splitlines()[0]))
    report = common.Report(options)
    torch.manual_seed(7)
    for mode in ("sum", "mean"):
        for work in (forward, training):
            name = f"{options.device}.EmbeddingBag.{work.__name__}.{mode}"
            report.attempt(name, lambda work=work, mode=mode: work(report, options, mode))
    report.finish()


if __name__ == "__main__":
    main()
