#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lookups of rows in mxfp8, as servers of language models do them: a Triton kernel on page-locked memory.

    quantized.py [--gigabytes 32] [--json REPORT.json]

The table has rows of 256 codes (e4m3) and an array of 8 scales (ue8m0) for each row, in page-locked memory or, for
`scales_device`, on the GPU. The kernel's grid is near the number of multiprocessors, and its programs stride over the
batch. It decodes to bfloat16. A figure quantized.mapped.mxfp8.256.<scales>.n<rows> is bench_quantized's of that name: the
best of several grids; `.sorted` has the batch's rows in ascending order, and the sort is not counted.
"""

import cupy
import numpy
import torch
import triton
import triton.language as tl

import common

WIDTH, BLOCK, SETS = 256, 32, 8
SIZES = (16, 256, 1024, 16_384, 131_072, 1_048_576)


@triton.jit
def lookup(codes, scales, indices, out, count, ROWS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, WIDTH)
    for first in range(tl.program_id(0) * ROWS, count, tl.num_programs(0) * ROWS):
        places = first + tl.arange(0, ROWS)
        inside = places < count
        rows = tl.load(indices + places, mask=inside, other=0)
        code = tl.load(codes + rows[:, None] * WIDTH + columns[None, :], mask=inside[:, None], other=0)
        scale = tl.load(scales + rows[:, None] * (WIDTH // BLOCK) + columns[None, :] // BLOCK, mask=inside[:, None], other=0)
        factor = (scale.to(tl.int32) << 23).to(tl.float32, bitcast=True)
        value = code.to(tl.float8e4nv, bitcast=True).to(tl.float32) * factor
        tl.store(out + places[:, None].to(tl.int64) * WIDTH + columns[None, :], value.to(tl.bfloat16), mask=inside[:, None])


def expected(codes, scales, rows):
    """The rows decoded by PyTorch on the CPU."""
    numbers = codes[rows].view(torch.float8_e4m3fn).to(torch.float32)
    factors = torch.exp2(scales[rows].to(torch.float32) - 127).repeat_interleave(BLOCK, dim=1)
    return (numbers * factors).to(torch.bfloat16)


def page_locked_bytes(rows, width):
    """Rows of bytes in page-locked memory of that size. PyTorch's allocator would round it to a power of two."""
    memory = cupy.cuda.alloc_pinned_memory(rows * width)
    return torch.from_numpy(numpy.frombuffer(memory, dtype=numpy.uint8, count=rows * width).reshape(rows, width))


def page_locked(gigabytes):
    """Codes and scales of about so many bytes. One column in 16 differs from row to row; the rest only has to be there."""
    rows = int(gigabytes * 2**30) // WIDTH
    codes = page_locked_bytes(rows, WIDTH).fill_(0x35)
    scales = page_locked_bytes(rows, WIDTH // BLOCK).fill_(126)
    codes[:, ::16] = (torch.arange(rows) % 120).to(torch.uint8)[:, None]
    scales[:, 0] = (torch.arange(rows) % 7 + 120).to(torch.uint8)
    return codes, scales


def measure(report, options, name, codes, scales, host):
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    for count in SIZES:
        sets = [torch.randint(0, codes.shape[0], (count,), device="cuda") for _ in range(SETS)]
        out = torch.empty(count, WIDTH, dtype=torch.bfloat16, device="cuda")
        for order in ("", ".sorted"):
            batches = [batch.sort().values for batch in sets] if order else sets
            figure = f"quantized.{name}.n{count}{order}"
            for rows, grid in ((1, processors), (4, processors), (4, 2 * processors), (8, 4 * processors)):

                def call(i, rows=rows, grid=grid, batches=batches):
                    lookup[(grid,)](codes, scales, batches[i % SETS], out, count, ROWS=rows, WIDTH=WIDTH, BLOCK=BLOCK)

                call(1)
                torch.cuda.synchronize()
                some = batches[1][:64].cpu()
                if not torch.equal(out[:64].cpu(), expected(*host, some)):
                    raise SystemExit(f"{figure}: wrong rows")
                report.measure(f"{figure}.rows{rows}_grid{grid}", call, count * 264, burst=1, n=count, rows=codes.shape[0])
            ways = [entry for entry in report.figures if entry["name"].startswith(f"{figure}.rows")]
            best = min(ways, key=lambda entry: entry["wall_ms"]["median"])
            report.figures.append({**best, "name": figure, "setting": {**best["setting"], "way": best["name"]}})


def main():
    parser = common.arguments(__doc__)
    parser.add_argument("--gigabytes", type=float, default=32)
    options = common.read(parser)
    report = common.Report(options)
    codes, scales = page_locked(1 / 16 if options.quick else options.gigabytes)
    host = codes, scales
    measure(report, options, "mapped.mxfp8.256.scales_mapped", codes, scales, host)
    measure(report, options, "mapped.mxfp8.256.scales_device", codes, scales.cuda(), host)
    report.finish(triton=triton.__version__)


if __name__ == "__main__":
    main()
