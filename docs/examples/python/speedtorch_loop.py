#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SpeedTorch's loop: a table that is too large for the GPU, of which each step trains some rows.

There it takes a ModelFactory and an OptimizerFactory, four calls a step, and loses updates of rows that a batch names
twice. Here the table and its Adam state lie in host memory that the GPU reaches; the step changes the rows in place.
"""

import sys

import ferry_tables as ferry
import torch

rows, width, batch, steps = (int(each) for each in sys.argv[1:5] or (1_000_000, 128, 16_384, 200))
device = "cuda" if ferry.backend == "cuda" else "cpu"
table = ferry.Table(rows, width, space="mapped", label="embedding").uniform(-0.5, 0.5, seed=1)
adam = ferry.Optimizer(table, "sparse_adam", lr=0.05)
goal = torch.randn(rows, generator=torch.Generator().manual_seed(2)).to(device)  # what each row shall sum to

for step in range(steps):
    indices = torch.randint(rows, (batch,), device=device)
    weights = table.gather(indices).requires_grad_()  # SpeedTorch: beforeForwardPass
    loss = ((weights.sum(1) - goal[indices]) ** 2).mean()
    loss.backward()
    adam.step(indices, weights.grad)  # SpeedTorch: optimizer.step() and afterOptimizerStep, twice
    if step % max(1, steps // 10) == 0:
        print(f"step {step}: loss {loss.item():.4f}")

table.save("embedding.npy")  # SpeedTorch: saveCupy; numpy.load reads it
assert ferry.load("embedding.npy").shape == (rows, width)
