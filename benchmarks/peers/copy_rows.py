#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Blocks of paged caches between the host and the device with PyTorch: what ferry::copy_rows is measured against.

  copy_rows.<memory>.<direction>.<bytes>B   random rows of up to 64 tables, 512 MiB in all. To the device: index_select into
                                            a page-locked stage, one copy, index_copy_; from the device the other way round
"""

import torch

import common


def blocks(report, options, row_bytes, total):
    tables = min(64, total // row_bytes)
    count = max(1, total // row_bytes // tables)
    rows, width = 2 * count, row_bytes // 4
    host = torch.rand(tables, rows, width)
    device = torch.full((tables, rows, width), -1.0, device=options.device)
    stage = torch.empty(tables, count, width, pin_memory=report.on_device)
    arrived = torch.empty(tables, count, width, device=options.device)
    sets = [(torch.randperm(rows)[:count], torch.randperm(rows)[:count]) for _ in range(8)]
    moved = [(reads, writes, reads.to(options.device), writes.to(options.device)) for reads, writes in sets]

    def to_device(i):
        reads, _, _, writes = moved[i % len(moved)]
        report.wait()  # the stage is free
        torch.index_select(host, 1, reads, out=stage)
        arrived.copy_(stage, non_blocking=True)
        device.index_copy_(1, writes, arrived)

    def from_device(i):
        _, writes, reads, _ = moved[i % len(moved)]
        torch.index_select(device, 1, reads, out=arrived)
        stage.copy_(arrived, non_blocking=True)
        report.wait()
        host.index_copy_(1, writes, stage)

    payload = tables * count * row_bytes
    for direction, work in (("to_device", to_device), ("from_device", from_device)):
        report.measure(f"copy_rows.torch.{direction}.{row_bytes}B", work, payload, burst=1, tables=tables, rows=count)
        work(0)
        report.wait()
        reads, writes = sets[0]
        left, right = (host[:, reads], device[:, writes.to(options.device)]) if direction == "to_device" else (
            host[:, writes], device[:, reads.to(options.device)])
        if not torch.equal(left, right.cpu()):
            raise SystemExit(f"{direction}: wrong elements")


def main():
    options = common.read(common.arguments(__doc__.splitlines()[0]))
    report = common.Report(options)
    torch.manual_seed(7)
    options.repeats, options.warm_up = min(options.repeats, 5), min(options.warm_up, 2)
    total = 2**21 if options.quick else 2**29
    for row_bytes in (512, 8192, 32768, 131072, 524288):
        report.attempt(f"copy_rows.{row_bytes}B", lambda row_bytes=row_bytes: blocks(report, options, row_bytes, total))
    report.finish()


if __name__ == "__main__":
    main()
