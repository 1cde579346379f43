#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""WholeGraph's gathers from a table over the memory of 1, 2, 4 ... devices and scatters to it, one process for each.

    wholegraph.py [--wheels FOLDER] [--devices 1,2,4] [--verbs gather scatter scatter_unique] [--json REPORT.json]

FOLDER holds the unpacked wheels pylibwholegraph, libwholegraph, librmm and rapids_logger (PyPI, written for 26.10);
without it they must be installed. Needs torch with CUDA and NCCL. A figure wholegraph.<N>.gather.<type>.<row>.<n> is
bench_ranks' ranks.<N>.gather.shared.<row>.<n>: random rows, as many rows of the table on each device, the time of a
call and its wait on the slowest process. A figure wholegraph.<N>.scatter.<type>.<row>.<n> is bench_processes'
processes.<N>.scatter.<row>.<n>.processes: random rows, some of them more than once, whose values WholeGraph writes in any
order; scatter_unique is that of distinct rows, over all processes. bench_processes' table has 8 GiB over all devices:
--gib 4 is the same on two. Types: continuous and chunked read the others' memory by a kernel,
distributed exchanges rows by NCCL.
"""

import ctypes
import math
import os
import sys
import time
from pathlib import Path

import common
import torch

SETS = 16
SIZES = (1024, 131_072, 1_048_576)
VERBS = ("gather", "scatter", "scatter_unique")


def load(wheels):
    """The module, with the libraries that its wheels leave to others."""
    if wheels:
        for path in (wheels / "rapids_logger/lib64/librapids_logger.so", wheels / "librmm/lib64/librmm.so"):
            ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
        sys.path.insert(0, str(wheels))
    import pylibwholegraph.torch as wholegraph

    return wholegraph


def timed(options, work):
    """Milliseconds of this process' calls; all begin together."""
    readings = []
    for call in range(options.warm_up + options.repeats):
        meet()
        begin = time.perf_counter()
        work(call)
        torch.cuda.synchronize()
        if call >= options.warm_up:
            readings.append((time.perf_counter() - begin) * 1e3)
    return readings


def slowest(readings):
    mine = torch.tensor(readings, dtype=torch.float64, device="cuda")
    torch.distributed.all_reduce(mine, op=torch.distributed.ReduceOp.MAX)
    return mine.tolist()


def on_all(right):
    """Whether it is right on every process."""
    alike = torch.tensor([int(right)], device="cuda")
    torch.distributed.all_reduce(alike, op=torch.distributed.ReduceOp.MIN)
    return bool(alike.item())


def meet():
    torch.cuda.synchronize()
    torch.distributed.barrier()
    torch.cuda.synchronize()


def random_rows(rows, n):
    return [torch.randint(0, rows, (n,), device="cuda") for _ in range(SETS)]


def distinct_rows(rows, n, rank, ranks):
    """Rows that no process names twice in one call, nor another one: a stride that has no factor of their number."""
    stride = 2_654_435_761
    while math.gcd(stride, rows) != 1:
        stride += 2
    order = [torch.randperm(n, device="cuda") + (call * ranks + rank) * n for call in range(SETS)]
    return [one % rows * (stride % rows) % rows for one in order]


def values_of(chosen, width, rest):
    """A row's values tell the row, so that any order of equal rows leaves the same."""
    values = torch.full((chosen.numel(), width), rest, device="cuda")
    values[:, 0] = (chosen % 65_536).float()
    return values


def gathered_right(table, chosen, width, rest):
    return on_all(torch.equal(table.gather(chosen), values_of(chosen, width, rest)))


def measure(options, wholegraph, comm, rank, ranks, kind, width):
    """(name, setting, readings or the reason why there are none) of each verb and size."""
    rows = int(options.gib * 2**30) // (4 * width) * ranks
    table = wholegraph.create_wholememory_tensor(comm, kind, "cuda", [rows, width], torch.float32, None)
    local, first = table.get_local_tensor()
    local.fill_(0.5)
    local[:, 0] = (torch.arange(local.shape[0], device="cuda") + first) % 65_536
    meet()
    for verb in sorted(options.verbs):  # gathers come first: they read what was filled in
        for n in (4096,) if options.quick else SIZES:
            name = f"wholegraph.{ranks}.{verb}.{kind}.{4 * width}B.{n}"
            unique = verb == "scatter_unique"
            if unique and n * ranks > rows:
                yield name, None, "the table has too few rows"
                continue
            sets = distinct_rows(rows, n, rank, ranks) if unique else random_rows(rows, n)
            if verb == "gather":
                right = gathered_right(table, sets[0], width, 0.5)
                work = lambda call: table.gather(sets[call % SETS])
            else:
                local.fill_(-1.0)
                values = values_of(sets[0], width, 0.25)
                meet()
                table.scatter(values, sets[0])
                meet()
                right = gathered_right(table, sets[0], width, 0.25)
                work = lambda call: table.scatter(values, sets[call % SETS])
            if not right:
                yield name, None, "elements are wrong"
                continue
            readings = slowest(timed(options, work))
            yield name, {"n": n, "row_bytes": 4 * width, "ranks": ranks, "rows": rows, "type": kind}, readings
    del local
    wholegraph.destroy_wholememory_tensor(table)


def process(rank, ranks, options, lists):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(options.port + ranks), NCCL_NVLS_ENABLE="0")
    wholegraph = load(options.wheels)
    torch.manual_seed(7 + rank)
    comm, _ = wholegraph.init_torch_env_and_create_wm_comm(rank, ranks, rank, ranks, wm_log_level="warn")
    for kind in options.types:
        for row_bytes in options.rows_bytes:
            try:
                for figure in measure(options, wholegraph, comm, rank, ranks, kind, row_bytes // 4):
                    if rank == 0:
                        lists.put(figure)
            except (RuntimeError, ValueError, TypeError, AttributeError) as error:
                if rank == 0:
                    lists.put((f"wholegraph.{ranks}.{kind}.{row_bytes}B", None, f"{type(error).__name__}: {error}"))
    if rank == 0:
        lists.put(None)
    torch.distributed.barrier()
    wholegraph.finalize()


def run(report, options, ranks):
    context = torch.multiprocessing.get_context("spawn")
    lists = context.Queue()
    group = [context.Process(target=process, args=(rank, ranks, options, lists)) for rank in range(ranks)]
    for each in group:
        each.start()
    try:
        while (figure := lists.get(timeout=120)) is not None:
            name, setting, readings = figure
            if setting is None:
                report.skipped.append({"name": name, "why": readings})
                print(f"{name:52s} skipped: {readings}", flush=True)
                continue
            times = common.summary(readings)
            payload = setting["n"] * setting["row_bytes"]
            rate = payload / times["median"] / 1e6
            report.figures.append({"name": name, "setting": setting, "ms": times, "wall_ms": times, "bytes": payload,
                                   "counts": "payload of one rank", "gb_per_s": rate, "verified": True})
            print(f"{name:52s} {times['median']:10.4f} ms {rate:10.2f} GB/s", flush=True)
    except Exception as error:  # a process ended without its figures
        report.skipped.append({"name": f"wholegraph.{ranks}", "why": f"{type(error).__name__}: {error}"})
        print(f"wholegraph.{ranks} ended: {type(error).__name__}", flush=True)
    for each in group:
        each.join(timeout=20)
        if each.is_alive():
            each.terminate()


def main():
    parser = common.arguments(__doc__.splitlines()[0])
    parser.add_argument("--wheels", type=Path, help="folder of the unpacked wheels")
    parser.add_argument("--devices", type=lambda text: [int(n) for n in text.split(",")], help="numbers of devices")
    parser.add_argument("--rows-bytes", type=lambda text: [int(n) for n in text.split(",")], default=[512])
    parser.add_argument("--types", nargs="*", default=["chunked", "continuous", "distributed"])
    parser.add_argument("--verbs", nargs="*", choices=VERBS, default=list(VERBS))
    parser.add_argument("--gib", type=float, default=8.0, help="GiB of the table on each device")
    parser.add_argument("--port", type=int, default=23450)
    options = common.read(parser)
    if options.quick:
        options.gib = 0.05
    report = common.Report(options)
    count = torch.cuda.device_count()
    for ranks in options.devices or sorted({n for n in (1, 2, 4, 8) if n <= count} | {count}):
        run(report, options, ranks)
    options.wheels = str(options.wheels)
    report.finish()


if __name__ == "__main__":
    main()
