#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes trajectories of torch.optim's rules for tests/optim/golden_test.cpp.

    make_golden.py [DIRECTORY]      needs PyTorch; writes to golden/ next to this file unless told otherwise

Sparse training, by torch's own dense optimizers in double on the CPU: in each step some rows are touched, and after it
the weights and the state of the others are put back to what they were. Step counts and what follows from them are one
for all rows. Start and gradients are formulas, the same here and in the test; a file holds the options and the weights
after some of the steps, as hexadecimal numbers, which are exact.
"""

import pathlib
import sys

import torch

ROWS, WIDTH, STEPS = 5, 4, 50
SHOWN = (1, 2, 3, 10, 25, 50)
MASK = (1 << 64) - 1


def scrambled(key):
    """The finalizer of SplitMix64."""
    key = (key + 0x9E3779B97F4A7C15) & MASK
    key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) & MASK
    return key ^ (key >> 31)


def number(step, row, column):
    """In [-1, 1), exact in single precision; step 0 is the start."""
    return (scrambled((step * 1009 + row) * 1013 + column) % 4096 - 2048) / 2048.0


def is_touched(step, row):
    return scrambled(step * 7919 + row) % 3 != 0


SGD, ADAM, ADAMW, RMS = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop
CASES = {
    "sgd_plain": ("sgd", SGD, {"lr": 0.05}),
    "sgd_momentum": ("sgd", SGD, {"lr": 0.05, "momentum": 0.9, "dampening": 0.1}),
    "sgd_nesterov": ("sgd", SGD, {"lr": 0.02, "momentum": 0.8, "weight_decay": 0.01, "nesterov": True}),
    "sgd_maximize": ("sgd", SGD, {"lr": 0.01, "momentum": 0.5, "weight_decay": 0.02, "maximize": True}),
    "adagrad_plain": ("adagrad", torch.optim.Adagrad, {"lr": 0.01}),
    "adagrad_decay": ("adagrad", torch.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.05, "weight_decay": 0.01}),
    "adagrad_initial": ("adagrad", torch.optim.Adagrad,
                        {"lr": 0.05, "initial_accumulator_value": 0.5, "eps": 1e-3, "maximize": True}),
    "adam_plain": ("adam", ADAM, {"lr": 0.01}),
    "adam_betas": ("adam", ADAM, {"lr": 0.02, "betas": (0.8, 0.99), "eps": 1e-4}),
    "adam_decay": ("adam", ADAM, {"lr": 0.005, "weight_decay": 0.01}),
    "adam_maximize": ("adam", ADAM, {"lr": 0.01, "betas": (0.5, 0.9), "weight_decay": 0.02, "maximize": True}),
    "adam_amsgrad": ("adam", ADAM, {"lr": 0.01, "betas": (0.9, 0.9), "amsgrad": True}),
    "adam_amsgrad_decay": ("adam", ADAM, {"lr": 0.02, "weight_decay": 0.05, "amsgrad": True, "maximize": True}),
    "adamw_plain": ("adamw", ADAMW, {"lr": 0.01}),
    "adamw_decay": ("adamw", ADAMW, {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-5, "weight_decay": 0.3}),
    "adamw_amsgrad": ("adamw", ADAMW, {"lr": 0.01, "betas": (0.9, 0.9), "amsgrad": True, "maximize": True}),
    "sparse_adam_plain": ("sparse_adam", torch.optim.SparseAdam, {"lr": 0.01}),
    "sparse_adam_eps": ("sparse_adam", torch.optim.SparseAdam,
                        {"lr": 0.02, "betas": (0.8, 0.99), "eps": 1e-2, "maximize": True}),
    "adadelta_plain": ("adadelta", torch.optim.Adadelta, {}),
    "adadelta_rho": ("adadelta", torch.optim.Adadelta, {"lr": 0.5, "rho": 0.7, "eps": 1e-3, "weight_decay": 0.1}),
    "adadelta_maximize": ("adadelta", torch.optim.Adadelta, {"lr": 2.0, "maximize": True}),
    "adamax_plain": ("adamax", torch.optim.Adamax, {}),
    "adamax_betas": ("adamax", torch.optim.Adamax,
                     {"lr": 0.02, "betas": (0.7, 0.9), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    "nadam_plain": ("nadam", torch.optim.NAdam, {}),
    "nadam_decay": ("nadam", torch.optim.NAdam,
                    {"lr": 0.02, "betas": (0.8, 0.99), "eps": 1e-4, "weight_decay": 0.1, "momentum_decay": 0.02}),
    "nadam_decoupled": ("nadam", torch.optim.NAdam,
                        {"lr": 0.01, "weight_decay": 0.2, "decoupled_weight_decay": True, "maximize": True}),
    "rmsprop_plain": ("rmsprop", RMS, {}),
    "rmsprop_alpha": ("rmsprop", RMS, {"lr": 0.02, "alpha": 0.8, "eps": 1e-3, "weight_decay": 0.05}),
    "rmsprop_momentum": ("rmsprop", RMS, {"lr": 0.005, "momentum": 0.9, "maximize": True}),
    "rmsprop_centered": ("rmsprop", RMS, {"lr": 0.005, "alpha": 0.9, "centered": True}),
    "rmsprop_all": ("rmsprop", RMS, {"lr": 0.003, "alpha": 0.95, "momentum": 0.5, "centered": True, "weight_decay": 0.1}),
    "rprop_plain": ("rprop", torch.optim.Rprop, {}),
    "rprop_etas": ("rprop", torch.optim.Rprop,
                   {"lr": 0.1, "etas": (0.25, 1.75), "step_sizes": (0.01, 0.5), "maximize": True}),
    "asgd_plain": ("asgd", torch.optim.ASGD, {}),
    "asgd_average": ("asgd", torch.optim.ASGD,
                     {"lr": 0.05, "lambd": 0.02, "alpha": 0.6, "t0": 10.0, "weight_decay": 0.1, "maximize": True}),
}


def words_of(table):
    return " ".join(float(value).hex() for row in table.tolist() for value in row)


def is_of_rows(value):
    return torch.is_tensor(value) and value.shape == (ROWS, WIDTH)


def write(path, rule, make, options):
    start = [[number(0, row, column) for column in range(WIDTH)] for row in range(ROWS)]
    weight = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    sparse = make is torch.optim.SparseAdam
    optimizer = make([weight], **options) if sparse else make([weight], foreach=False, **options)
    initial = {"sum": options.get("initial_accumulator_value", 0.0), "step_size": optimizer.defaults["lr"]}
    words = [f"rule {rule} rows {ROWS} width {WIDTH} steps {STEPS}"]
    for name, value in options.items():
        for place, part in enumerate(value if isinstance(value, tuple) else (value,)):
            words.append(f"{name}{place if isinstance(value, tuple) else ''} {float(part).hex()}")
    lines = [f"# torch {torch.__version__}", " ".join(words)]
    for step in range(1, STEPS + 1):
        touched = [is_touched(step, row) for row in range(ROWS)]
        gradient = torch.tensor([[number(step, row, column) if touched[row] else 0.0 for column in range(WIDTH)]
                                 for row in range(ROWS)], dtype=torch.float64)
        before = weight.detach().clone()
        state = {name: value.clone() for name, value in optimizer.state[weight].items() if is_of_rows(value)}
        weight.grad = gradient
        if sparse:
            which = torch.tensor([row for row in range(ROWS) if touched[row]], dtype=torch.int64)
            weight.grad = torch.sparse_coo_tensor(which.unsqueeze(0), gradient[which], (ROWS, WIDTH))
        optimizer.step()
        with torch.no_grad():
            for row in range(ROWS):
                if touched[row]:
                    continue
                weight[row] = before[row]
                for name, value in optimizer.state[weight].items():
                    if is_of_rows(value):
                        value[row] = state[name][row] if name in state else initial.get(name, 0.0)
        if step in SHOWN:
            lines.append(f"weight {step} {words_of(weight.detach())}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    here = pathlib.Path(__file__).resolve().parent
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "golden"
    directory.mkdir(parents=True, exist_ok=True)
    torch.set_default_dtype(torch.float64)  # of the scalars that some of the rules keep
    for name, (rule, make, options) in CASES.items():
        write(directory / f"{name}.txt", rule, make, options)
    print(f"{len(CASES)} trajectories of torch {torch.__version__} in {directory}")


if __name__ == "__main__":
    main()
