#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole jobs in PyTorch: what ferry's job.* are measured against.

  <device>.job.training.<rule>   EmbeddingBag forward, backward with sparse gradients, and the optimizer's step; ten rows a
                                 bag under Zipf's law with exponent 1.05
  <device>.job.particles         index_add_ of rows of four floats to a million cells, then index_select of as many
"""

import torch

import common

HOTNESS, EXPONENT, SETS, PARTICLES = 10, 1.05, 4, 4_000_000


def zipf(rows, count, device):
    """Row numbers by the continuous form of Zipf's law, the popular ones anywhere in the table."""
    uniform = torch.rand(count, dtype=torch.float64, device=device)
    last = (rows + 1.0) ** (1 - EXPONENT)
    rank = ((1 + uniform * (last - 1)) ** (1 / (1 - EXPONENT))).long() - 1
    return torch.randperm(rows, device=device, generator=torch.Generator(device).manual_seed(5))[rank.clamp(0, rows - 1)]


def training(report, options, rule):
    bags_of = torch.nn.EmbeddingBag(options.rows, options.width, mode="sum", sparse=True, include_last_offset=True)
    bags_of = bags_of.to(options.device)
    bags = options.n // 2
    offsets = torch.arange(bags + 1, device=options.device) * HOTNESS
    sets = [zipf(options.rows, bags * HOTNESS, options.device) for _ in range(SETS)]
    gradient = torch.rand(bags, options.width, device=options.device) - 0.5
    optimizer = {"adam": torch.optim.SparseAdam, "adagrad": torch.optim.Adagrad}[rule](bags_of.parameters(), lr=0.1)

    def step(call):
        optimizer.zero_grad(set_to_none=True)
        bags_of(sets[call % SETS], offsets).backward(gradient)
        optimizer.step()

    before = bags_of.weight.detach().clone()
    step(0)
    moved = (bags_of.weight.detach() != before).any(dim=1).sum().item()
    if moved != sets[0].unique().numel():
        raise RuntimeError(f"the step moved {moved} rows")
    report.measure(f"{options.device}.job.training.{rule}", step, burst=2, rows=options.rows, bags=bags, hotness=HOTNESS,
                   width=options.width)


def particles(report, options):
    count = 20_000 if options.quick else PARTICLES
    field = torch.rand(options.rows, 4, device=options.device)
    sets = [torch.randint(0, options.rows, (count,), device=options.device) for _ in range(SETS)]
    deposits, seen = (torch.rand(count, 4, device=options.device) for _ in range(2))

    def deposit_and_gather(call):
        field.index_add_(0, sets[call % SETS], deposits)
        torch.index_select(field, 0, sets[call % SETS], out=seen)

    deposit_and_gather(0)
    if not torch.equal(seen, field[sets[0]]):
        raise RuntimeError("wrong rows")
    report.measure(f"{options.device}.job.particles", deposit_and_gather, burst=4, n=count, width=4)


def main():
    options = common.read(common.arguments(__doc__.splitlines()[0]))
    report = common.Report(options)
    torch.manual_seed(7)
    for rule in ("adam", "adagrad"):
        report.attempt(f"{options.device}.job.training.{rule}", lambda rule=rule: training(report, options, rule))
    report.attempt(f"{options.device}.job.particles", lambda: particles(report, options))
    report.finish()


if __name__ == "__main__":
    main()
