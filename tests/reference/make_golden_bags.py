#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what torch.nn.EmbeddingBag and its autograd give, for tests/bags/torch_test.cpp.

    make_golden_bags.py [DIRECTORY]      needs PyTorch; writes to golden_bags/ next to this file unless told otherwise

Everything is computed in double on the CPU. Table, weights, gradients and batches are formulas, the same here and in the
test. The table holds few different numbers, so maxima tie, and in one case some are NaN. A file holds the batch's pooled
rows, the gradients of the table and of the weights of the positions, and the table after some steps of training, each with
a batch of its own, as hexadecimal numbers, which are exact.
"""

import pathlib
import sys

import torch

ROWS, WIDTH, BAGS, STEPS = 11, 5, 13, 4
MASK = (1 << 64) - 1


def scrambled(key):
    """The finalizer of SplitMix64."""
    key = (key + 0x9E3779B97F4A7C15) & MASK
    key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) & MASK
    return key ^ (key >> 31)


def number(step, row, column, kinds=4096):
    """In [-1, 1), one of `kinds` numbers, exact in single precision."""
    return (scrambled((step * 1009 + row) * 1013 + column) % kinds - kinds // 2) * 2.0 / kinds


def array(step, rows, columns, kinds=4096):
    return torch.tensor([[number(step, r, c, kinds) for c in range(columns)] for r in range(rows)], dtype=torch.float64)


def batch(step):
    """Offsets with their end, and indices. Every third bag or so is empty, one is long."""
    offsets = [0]
    for bag in range(BAGS):
        length = scrambled(step * 31337 + bag) % 6
        offsets.append(offsets[-1] + (0 if length == 5 else 40 if bag == 7 else length))
    return offsets, [scrambled(step * 7919 + 1000003 * p) % ROWS for p in range(offsets[-1])]


CASES = {
    "sum": {"mode": "sum"},
    "mean": {"mode": "mean"},
    "max": {"mode": "max"},
    "max_nan": {"mode": "max", "nan": True},
    "sum_weights": {"mode": "sum", "weights": True},
    "sum_padding": {"mode": "sum", "padding": 3},
    "mean_padding": {"mode": "mean", "padding": 0},
    "max_padding": {"mode": "max", "padding": 5},
    "mean_sparse_adam": {"mode": "mean", "adam": True},
    "sum_weights_sparse_adam": {"mode": "sum", "weights": True, "adam": True},
}


def words(values):
    return " ".join("nan" if value != value else float(value).hex() for value in values.flatten().tolist())


def run(case):
    table = array(0, ROWS, WIDTH, kinds=16)
    if case.get("nan"):
        for row in range(0, ROWS, 4):
            table[row, row % WIDTH] = float("nan")
    adam = case.get("adam", False)
    bags = torch.nn.EmbeddingBag(ROWS, WIDTH, mode=case["mode"], sparse=adam, padding_idx=case.get("padding"),
                                 include_last_offset=True, dtype=torch.float64)
    with torch.no_grad():
        bags.weight.copy_(table)
    optimizer = torch.optim.SparseAdam(bags.parameters(), lr=0.05) if adam else torch.optim.SGD(bags.parameters(), lr=0.5)
    shown = {}
    for step in range(1, STEPS + 1):
        offsets, indices = batch(step)
        weights = None
        if case.get("weights"):
            weights = array(50 + step, len(indices), 1).flatten().requires_grad_()
        pooled = bags(torch.tensor(indices), torch.tensor(offsets), weights)
        optimizer.zero_grad()
        pooled.backward(array(100 + step, BAGS, WIDTH))
        if step == 1:
            gradient = bags.weight.grad
            shown["pooled"] = pooled.detach()
            shown["gradient"] = gradient.to_dense() if gradient.is_sparse else gradient.clone()
            if weights is not None:
                shown["weight_gradient"] = weights.grad.clone()
        optimizer.step()
    shown["trained"] = bags.weight.detach()
    return shown


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "golden_bags"
    folder.mkdir(parents=True, exist_ok=True)
    for name, case in CASES.items():
        lines = [f"# torch {torch.__version__}", f"mode {case['mode']}"]
        lines += [f"{key} {int(case[key])}" for key in ("weights", "padding", "nan", "adam") if key in case]
        lines += [f"{what} {values.numel()}\n{words(values)}" for what, values in run(case).items()]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
