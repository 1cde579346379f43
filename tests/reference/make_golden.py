#!/usr/bin/env python3
"""Writes trajectories of torch.optim's SGD, Adagrad and Adam for tests/optim/golden_test.cpp.

    make_golden.py [DIRECTORY]      needs PyTorch; writes to golden/ beside this file unless told otherwise

Each file is plain text: lines `name value`, then `start`, `gradient <step>` and `weight <step>` followed by the table's rows.
All rows are touched in each step, in double on the CPU. Numbers are hexadecimal, so that they are exact.
"""

import pathlib
import sys

import torch

ROWS, WIDTH, STEPS = 3, 5, 50

CASES = {
    "sgd_plain": ("sgd", torch.optim.SGD, {"lr": 0.05}),
    "sgd_momentum": ("sgd", torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "dampening": 0.1}),
    "sgd_nesterov": ("sgd", torch.optim.SGD, {"lr": 0.02, "momentum": 0.8, "weight_decay": 0.01, "nesterov": True}),
    "sgd_maximize": ("sgd", torch.optim.SGD, {"lr": 0.01, "momentum": 0.5, "weight_decay": 0.02, "maximize": True}),
    "adagrad_plain": ("adagrad", torch.optim.Adagrad, {"lr": 0.01}),
    "adagrad_decay": ("adagrad", torch.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.05, "weight_decay": 0.01}),
    "adagrad_initial": ("adagrad", torch.optim.Adagrad,
                        {"lr": 0.05, "initial_accumulator_value": 0.5, "eps": 1e-3, "maximize": True}),
    "adam_plain": ("adam", torch.optim.Adam, {"lr": 0.01}),
    "adam_betas": ("adam", torch.optim.Adam, {"lr": 0.02, "betas": (0.8, 0.99), "eps": 1e-4}),
    "adam_decay": ("adam", torch.optim.Adam, {"lr": 0.005, "weight_decay": 0.01}),
    "adam_maximize": ("adam", torch.optim.Adam,
                      {"lr": 0.01, "betas": (0.5, 0.9), "weight_decay": 0.02, "maximize": True}),
}


def rows_of(table):
    return "\n".join(" ".join(float(value).hex() for value in row) for row in table.tolist())


def write(path, rule, make, options, seed):
    generator = torch.Generator().manual_seed(seed)
    weight = torch.nn.Parameter(2.0 * torch.rand(ROWS, WIDTH, dtype=torch.float64, generator=generator) - 1.0)
    optimizer = make([weight], foreach=False, **options)
    lines = [f"# torch {torch.__version__}", f"rule {rule}", f"rows {ROWS}", f"width {WIDTH}", f"steps {STEPS}"]
    for name, value in options.items():
        for number, part in enumerate(value if isinstance(value, tuple) else (value,)):
            lines.append(f"{name if not isinstance(value, tuple) else f'{name}{number}'} {float(part).hex()}")
    lines += ["start", rows_of(weight.detach())]
    for step in range(1, STEPS + 1):
        gradient = 2.0 * torch.rand(ROWS, WIDTH, dtype=torch.float64, generator=generator) - 1.0
        # Gradients that a float holds exactly, so that float tables see the same ones.
        gradient = gradient.to(torch.float32).to(torch.float64)
        weight.grad = gradient.clone()
        optimizer.step()
        lines += [f"gradient {step}", rows_of(gradient), f"weight {step}", rows_of(weight.detach())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    here = pathlib.Path(__file__).resolve().parent
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "golden"
    directory.mkdir(parents=True, exist_ok=True)
    for seed, (name, (rule, make, options)) in enumerate(CASES.items()):
        write(directory / f"{name}.txt", rule, make, options, seed)
        print(f"{name}: {STEPS} steps by torch {torch.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
