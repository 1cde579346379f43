#!/usr/bin/env python3
"""PyTorch's sparse optimizers on the rows of a batch: what ferry's fused steps are measured against.

The figures are named <device>.<optimizer>.<gradient>: `coalesced` gradients are sorted and free of repeats before the
clock starts, as a plan that is ready; `uncoalesced` ones are sorted inside the step, as indices given to ferry. The rows
are distinct in both, in random order, and other ones in each call.
"""

import torch

import common

RULES = {
    "SGD": (torch.optim.SGD, {"lr": 0.1}),
    "Adagrad": (torch.optim.Adagrad, {"lr": 0.1}),
    "SparseAdam": (torch.optim.SparseAdam, {"lr": 0.1}),
}
SETS = 4  # each set of gradients holds a whole batch


def make_gradients(options, coalesced):
    made = []
    for _ in range(SETS):
        rows = torch.randperm(options.rows, device=options.device)[: options.n].unsqueeze(0)
        values = torch.rand(options.n, options.width, device=options.device)
        gradient = torch.sparse_coo_tensor(rows, values, (options.rows, options.width))
        made.append(gradient.coalesce() if coalesced else gradient)
    return made


def check(options, rule, settings):
    """One step must have moved the named rows and no others."""
    weight = torch.rand(options.rows, options.width, device=options.device).requires_grad_()
    before = weight.detach().clone()
    gradient = make_gradients(options, True)[0]
    weight.grad = gradient
    rule([weight], **settings).step()
    moved = (weight.detach() != before).any(dim=1).nonzero().squeeze(1)
    if not torch.equal(moved, gradient.indices().squeeze(0)):
        raise SystemExit(f"{rule.__name__}: the step moved {len(moved)} rows, not those of the gradient")


def main():
    options = common.read(common.arguments(__doc__.splitlines()[0]))
    report = common.Report(options)
    torch.manual_seed(7)
    for name, (rule, settings) in RULES.items():
        check(options, rule, settings)
        for kind in ("coalesced", "uncoalesced"):
            gradients = make_gradients(options, kind == "coalesced")
            weight = torch.rand(options.rows, options.width, device=options.device).requires_grad_()
            optimizer = rule([weight], **settings)

            def step(call, weight=weight, gradients=gradients, optimizer=optimizer):
                weight.grad = gradients[call % SETS]
                optimizer.step()

            report.attempt(
                f"{options.device}.{name}.{kind}",
                lambda name=name, kind=kind, step=step: report.measure(
                    f"{options.device}.{name}.{kind}", step, rows=options.rows, n=options.n, width=options.width
                ),
            )
    report.finish()


if __name__ == "__main__":
    main()
