#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole arrays between the host and the device with PyTorch: what ferry::copy is measured against.

  copy.<memory>.to_device.1GiB.<way>, copy.<memory>.from_device.1GiB.<way>   one GiB
  copy.round_trip.<memory>.<way>   fifty images of 3 x 3840 x 2160 floats to the device and back, SpeedTorch's workload

`to` makes a new tensor in every call, as .to() does; `copy_` fills one that is ready. Tensors in page-locked memory are
copied without blocking; from the device .to() knows pageable memory alone, so `pinned.to` comes back by copy_.
"""

import torch

import common


def expect(name, left, right):
    if not torch.equal(left, right):
        raise SystemExit(f"{name}: wrong elements")


def one_way(report, options, memory, elements):
    pinned = memory == "pinned"
    here = torch.rand(elements, pin_memory=pinned)
    back = torch.empty(elements, pin_memory=pinned).fill_(-1)
    there = torch.empty(elements, device=options.device)
    payload = elements * 4
    setting = {"gib": payload / 2**30}
    name = f"copy.{memory}"
    kept = {}

    def to(_):
        kept["there"] = here.to(options.device, non_blocking=pinned)

    def to_ready(_):
        there.copy_(here, non_blocking=pinned)

    def back_to_new(_):
        kept["here"] = there.to("cpu")

    def back_to_ready(_):
        back.copy_(there, non_blocking=pinned)

    report.measure(f"{name}.to_device.1GiB.to", to, payload, burst=1, **setting)
    expect(name, kept["there"].cpu(), here)
    kept.clear()
    report.measure(f"{name}.to_device.1GiB.copy_", to_ready, payload, burst=1, **setting)
    report.measure(f"{name}.from_device.1GiB.copy_", back_to_ready, payload, burst=1, **setting)
    report.wait()
    expect(name, back, here)
    if not pinned:
        report.measure(f"{name}.from_device.1GiB.to", back_to_new, payload, burst=1, **setting)
        expect(name, kept["here"], here)


def round_trip(report, options, memory, shape):
    pinned = memory == "pinned"
    here = torch.rand(shape, pin_memory=pinned)
    back = torch.empty(shape, pin_memory=pinned).fill_(-1)
    there = torch.empty(shape, device=options.device)
    payload = 2 * here.numel() * 4
    setting = {"gib": payload / 2**31, "images": shape[0]}
    name = f"copy.round_trip.{memory}"
    kept = {}

    def by_to(_):
        device = here.to(options.device, non_blocking=pinned)
        if pinned:
            back.copy_(device, non_blocking=True)
        else:
            kept["here"] = device.to("cpu")

    def by_copy(_):
        there.copy_(here, non_blocking=pinned)
        back.copy_(there, non_blocking=pinned)

    report.measure(f"{name}.to", by_to, payload, burst=1, **setting)
    report.wait()
    expect(name, back if pinned else kept["here"], here)
    kept.clear()
    back.fill_(-1)
    report.measure(f"{name}.copy_", by_copy, payload, burst=1, **setting)
    report.wait()
    expect(name, back, here)


def main():
    parser = common.arguments(__doc__.splitlines()[0])
    options = common.read(parser)
    report = common.Report(options)
    torch.manual_seed(7)
    elements, shape = (2**28, (50, 3, 3840, 2160)) if not options.quick else (2**20, (2, 3, 36, 64))
    for memory in ("pageable", "pinned") if report.on_device else ("pageable",):
        report.attempt(f"copy.{memory}", lambda memory=memory: one_way(report, options, memory, elements))
    options.repeats, options.warm_up = min(options.repeats, 5), min(options.warm_up, 2)
    for memory in ("pageable", "pinned") if report.on_device else ("pageable",):
        report.attempt(f"copy.round_trip.{memory}", lambda memory=memory: round_trip(report, options, memory, shape))
    report.finish()


if __name__ == "__main__":
    main()
