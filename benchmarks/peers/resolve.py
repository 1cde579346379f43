#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Slots of rows in device memory, those used last, with PyTorch's operations: what ferry::resolve is measured against.

  resolve.torch.tokens.hits<percent>  64 groups of 32768 rows of 656 bytes in page-locked memory, 8192 slots and 2048 positions each
"""

import torch

import common


class LastUsed:
    """Exact order of use by group: `used` has the number of the call in its upper bits, the position in the lower ones."""

    def __init__(self, host, groups, slots, device, stage_rows, pinned):
        self.host, self.groups, self.slots, self.device = host, groups, slots, device
        self.group_rows = host.shape[0] // groups
        self.slot_of = torch.full((host.shape[0],), -1, dtype=torch.int64, device=device)
        self.row_of = torch.full((groups * slots,), -1, dtype=torch.int64, device=device)
        self.used = torch.arange(groups * slots, device=device).view(groups, slots) - groups * slots
        self.hot = torch.zeros(groups * slots, host.shape[1], device=device)
        self.stage = torch.empty(stage_rows, host.shape[1], pin_memory=pinned)
        self.arrived = torch.empty(stage_rows, host.shape[1], device=device)
        self.calls = 0

    def resolve(self, rows):
        """rows: [groups, positions], each at most once. The slots, int64."""
        self.calls += 1
        flat = rows.reshape(-1)
        stamp = (self.calls << 32) + torch.arange(flat.numel(), device=self.device)
        slots = self.slot_of[flat]
        hit = slots >= 0
        self.used.view(-1).index_put_((slots[hit],), stamp[hit])
        new = flat[~hit]
        group = new // self.group_rows
        counts = torch.bincount(group, minlength=self.groups)
        number = torch.arange(new.numel(), device=self.device) - (counts.cumsum(0) - counts)[group]
        oldest = self.used.argsort(dim=1)
        free = oldest[group, number] + group * self.slots
        left = self.row_of[free]
        self.slot_of[left[left >= 0]] = -1
        self.slot_of[new] = free
        self.row_of[free] = new
        self.used.view(-1)[free] = stamp[~hit]
        count = new.numel()
        if count:
            torch.index_select(self.host, 0, new.cpu(), out=self.stage[:count])
            self.arrived[:count].copy_(self.stage[:count], non_blocking=True)
            self.hot.index_copy_(0, free, self.arrived[:count])
        return self.slot_of[flat].view(rows.shape)


def tokens(report, options, percent):
    groups, group_rows, slots, positions, width = (4, 512, 128, 32, 164) if options.quick else (64, 32768, 8192, 2048, 164)
    host = torch.rand(groups * group_rows, width, pin_memory=report.on_device)
    cache = LastUsed(host, groups, slots, options.device, groups * positions, report.on_device)
    kept = positions * percent // 100
    others = positions - kept
    order = torch.stack([torch.randperm(group_rows) + g * group_rows for g in range(groups)]).to(options.device)
    calls = slots // others + 2 if others else 4
    sets = []
    for call in range(calls):
        numbers = torch.arange(others) + call * others
        chosen = torch.cat([torch.arange(kept), kept + numbers % (group_rows - kept)])[torch.randperm(positions)]
        sets.append(order[:, chosen.to(options.device)])
    for rows in sets:
        found = cache.resolve(rows)
    if not torch.equal(cache.hot[found[0]].cpu(), host[sets[-1][0].cpu()]):
        raise RuntimeError("slots hold other rows")
    report.measure(f"resolve.torch.tokens.hits{percent}", lambda call: cache.resolve(sets[call % calls]),
                   groups * others * width * 4, burst=1, groups=groups, slots=slots, positions=positions)


def main():
    options = common.read(common.arguments(__doc__.splitlines()[0]))
    report = common.Report(options)
    torch.manual_seed(7)
    options.repeats = min(options.repeats, 7)
    for percent in (50, 90, 99):
        report.attempt(f"resolve.torch.tokens.hits{percent}", lambda percent=percent: tokens(report, options, percent))
    report.finish()


if __name__ == "__main__":
    main()
