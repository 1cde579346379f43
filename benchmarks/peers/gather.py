#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows gathered and scattered with PyTorch and CuPy: what ferry's verbs are measured against.

  <device>.index_select, <device>.index_copy_   a table of --rows rows where the device computes
  pinned.<GB>GB.cupy.*      CuPy's indexing of page-locked memory from the GPU, as SpeedTorch does it
  pinned.<GB>GB.uva.*       PyTorch's operators on the same memory, seen as a CUDA tensor
  pinned.<GB>GB.staged.*    PyTorch on the CPU into a page-locked buffer, then one copy

Page-locking is what takes long, so it is done once: smaller tables are the first rows of the largest.
"""

import ctypes

import numpy as np
import torch

import common

SETS = 8
PORTABLE, MAPPED = 1, 2  # flags of the CUDA runtime


def expect(name, left, right):
    if not torch.equal(left, right):
        raise SystemExit(f"{name}: wrong rows")


def on_device(report, options):
    table = torch.rand(options.rows, options.width, device=options.device)
    sets = [torch.randint(0, options.rows, (options.n,), device=options.device) for _ in range(SETS)]
    batch = torch.empty(options.n, options.width, device=options.device)
    payload = options.n * options.width * 4
    setting = {"rows": options.rows, "n": options.n, "width": options.width}

    torch.index_select(table, 0, sets[0], out=batch)
    expect("index_select", batch, table[sets[0]])
    report.measure(
        f"{options.device}.index_select",
        lambda call: torch.index_select(table, 0, sets[call % SETS], out=batch),
        payload,
        **setting,
    )
    report.measure(
        f"{options.device}.index_copy_", lambda call: table.index_copy_(0, sets[call % SETS], batch), payload, **setting
    )


class PinnedTable:
    """Page-locked memory that NumPy and PyTorch see on the host, CuPy and PyTorch on the GPU."""

    def __init__(self, cupy, rows, width):
        self.cupy = cupy
        bytes_of_all = rows * width * 4
        self.pointer = cupy.cuda.runtime.hostAlloc(bytes_of_all, PORTABLE | MAPPED)
        raw = (ctypes.c_byte * bytes_of_all).from_address(self.pointer)
        self.host = torch.from_numpy(np.frombuffer(raw, dtype=np.float32).reshape(rows, width))
        memory = cupy.cuda.UnownedMemory(self.pointer, bytes_of_all, None, 0)
        self.device = cupy.ndarray((rows, width), cupy.float32, cupy.cuda.MemoryPointer(memory, 0))
        self.host.fill_(0.5)

    def first(self, rows):
        """The first rows, as host tensor and CuPy array. Column 0 names the row; the rest only has to be there."""
        self.host[:rows, 0] = torch.arange(rows) % 65_536  # the scatters of another size have overwritten it
        return self.host[:rows], self.device[:rows]

    def free(self):
        self.device = self.host = None
        self.cupy.cuda.runtime.freeHost(self.pointer)


def rows_of(options, gigabytes):
    return int(gigabytes * 1e9) // (options.width * 4)


def over_the_link(report, options):
    import cupy

    table = PinnedTable(cupy, rows_of(options, max(options.gigabytes)), options.width)
    try:
        for gigabytes in options.gigabytes:
            first_rows_over_the_link(report, options, cupy, table, gigabytes)
    finally:
        table.free()
    return cupy.__version__


def first_rows_over_the_link(report, options, cupy, whole, gigabytes):
    rows = rows_of(options, gigabytes)
    host_table, table = whole.first(rows)
    sets = [torch.randint(0, rows, (options.n,), device="cuda") for _ in range(SETS)]
    host_sets = [one.cpu() for one in sets]
    cupy_sets = [cupy.from_dlpack(one) for one in sets]
    batch = torch.empty(options.n, options.width, device="cuda")
    cupy_batch = cupy.from_dlpack(batch)
    stage = torch.empty(options.n, options.width, pin_memory=True)
    uva = torch.from_dlpack(table)
    payload = options.n * options.width * 4
    prefix = f"pinned.{gigabytes:g}GB"
    setting = {
        "rows": rows,
        "n": options.n,
        "width": options.width,
        "row_bytes": options.width * 4,
        "table_gib": rows * options.width * 4 / 2**30,
    }

    def cupy_gather(call):
        cupy_batch[...] = table[cupy_sets[call % SETS]]

    def cupy_take(call):
        table.take(cupy_sets[call % SETS], axis=0, out=cupy_batch)

    def cupy_scatter(call):
        table[cupy_sets[call % SETS]] = cupy_batch

    def uva_gather(call):
        torch.index_select(uva, 0, sets[call % SETS], out=batch)

    def uva_scatter(call):
        uva.index_copy_(0, sets[call % SETS], batch)

    def staged_gather(call):
        torch.cuda.synchronize()  # the buffer's last copy
        torch.index_select(host_table, 0, host_sets[call % SETS], out=stage)
        batch.copy_(stage, non_blocking=True)

    # Both libraries use the default stream, so the events see the work of either.
    for name, work in (
        ("cupy.gather", cupy_gather),
        ("cupy.take", cupy_take),
        ("uva.gather", uva_gather),
        ("staged.gather", staged_gather),
        ("cupy.scatter", cupy_scatter),
        ("uva.scatter", uva_scatter),
    ):

        def check_and_measure(name=name, work=work):
            work(0)
            torch.cuda.synchronize()
            if name.endswith("gather") or name.endswith("take"):
                expect(f"{prefix}.{name}", batch[:, 0].cpu(), (host_sets[0] % 65_536).float())
            report.measure(f"{prefix}.{name}", work, payload, burst=1, **setting)

        report.attempt(f"{prefix}.{name}", check_and_measure)
    torch.cuda.synchronize()


def main():
    parser = common.arguments(__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, nargs="*", default=[0.5, 10.0], help="sizes of the pinned tables")
    options = common.read(parser)
    if options.quick:
        options.gigabytes = [0.05]
    report = common.Report(options)
    torch.manual_seed(7)
    on_device(report, options)
    versions = {}
    if report.on_device and options.gigabytes:
        report.attempt("pinned", lambda: versions.update(cupy=over_the_link(report, options)))
    report.finish(**versions)


if __name__ == "__main__":
    main()
