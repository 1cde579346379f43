#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains on the batches that word_embeddings --dump wrote, with PyTorch, and writes the curve of the losses.

    word_embeddings --dump batches
    torch_curve.py batches --curve torch_curve.csv [--every 50] [--lr 0.01] [--device cpu]

The model is that of main.cpp: two torch.nn.Embedding with sparse gradients, the logistic loss, torch.optim.SparseAdam.
"""

import argparse
import pathlib

import numpy
import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", type=pathlib.Path)
    parser.add_argument("--curve", type=pathlib.Path, required=True)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args()

    def load(name):
        return torch.from_numpy(numpy.load(chosen.dump / f"{name}.npy")).to(chosen.device)

    first = load("u")
    centres, contexts, noise = (load(name).long() for name in ("centres", "contexts", "noise"))
    u = torch.nn.Embedding.from_pretrained(first, freeze=False, sparse=True)
    v = torch.nn.Embedding.from_pretrained(torch.zeros_like(first), freeze=False, sparse=True)
    # One optimizer for each table, as the switchers have it.
    optimizers = [torch.optim.SparseAdam(table.parameters(), lr=chosen.lr) for table in (u, v)]
    softplus = torch.nn.functional.softplus

    lines, total = [], 0.0
    for batch in range(len(centres)):
        centre = u(centres[batch])
        right = (centre * v(contexts[batch])).sum(1)
        wrong = (centre.unsqueeze(1) * v(noise[batch].view(len(centre), -1))).sum(2)
        loss = (softplus(-right) + softplus(wrong).sum(1)).mean()
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        total += loss.item()
        if (batch + 1) % chosen.every == 0:
            lines.append(f"{batch + 1},{total / chosen.every:.6f}")
            total = 0.0
    about = (chosen.dump / "about.txt").read_text().strip()
    chosen.curve.write_text("\n".join([about, "batches,loss", *lines]) + "\n")
    print(f"PyTorch {torch.__version__}: {len(lines)} points in {chosen.curve}")


if __name__ == "__main__":
    main()
