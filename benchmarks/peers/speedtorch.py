#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SpeedTorch's own switchers on page-locked tables: what ferry's counterparts of them are measured against.

The package is SpeedTorch 0.1.6 (PyPI), unchanged; it needs CuPy and PyTorch. --speedtorch names the folder that its
wheel was unpacked in, where it is not installed:

  pip download --no-deps SpeedTorch==0.1.6 && python3 -m zipfile -e SpeedTorch-0.1.6-*.whl FOLDER

The figures, each for tables of --gigabytes (rows of --width floats):

  speedtorch.model.before_forward_pass.pinned.<GB>GB       ModelFactory: --n random rows to the model's weight
  speedtorch.model.after_optimizer_step.pinned.<GB>GB      and back
  speedtorch.optimizer.before_forward_pass.pinned.<GB>GB   OptimizerFactory: the rows of both of SparseAdam's moments
  speedtorch.optimizer.after_optimizer_step.pinned.<GB>GB  and back

  .device_indices   the same call with indices that are CuPy arrays; its loop has NumPy arrays
  .pooled           NumPy arrays, with CuPy's memory pool put back: as released, SpeedTorch turns it off for the whole
                    process when it makes a page-locked table, so each gather allocates device memory

Every call takes other rows. As in its loop, after_optimizer_step follows before_forward_pass of the same batch, which
is then not timed. Each call includes SpeedTorch's own waits for the device.
"""

import ctypes
import importlib
import importlib.metadata
import sys
import warnings

import numpy as np
import torch

import common

SETS = 8
HOST_MEMORY = 1  # the CUDA runtime's cudaMemoryTypeHost
CHUNK = 1 << 18  # rows that are filled at once
SALTS = {"model": 0, "exp_avg": 1, "exp_avg_sq": 2}


def values(arrays, rows, width, salt):
    """What a table holds: whole numbers that float32 has exactly. Two neighbours name their row and their column."""
    columns = arrays.arange(width, dtype=rows.dtype)
    half_of_row = (rows[:, None] >> (13 * (columns & 1))[None, :]) & 8_191
    return (half_of_row * 512 + ((columns + 129 * salt) & 511)[None, :]).astype("float32")


def require(name, right):
    if not right:
        raise SystemExit(f"{name}: wrong rows")


class Library:
    """The package as released, next to the CuPy that it uses."""

    def __init__(self, folder):
        if folder:
            sys.path.insert(0, folder)
        self.cupy = importlib.import_module("cupy")
        # CuPy of today warns at each exchange by capsules, the only one that SpeedTorch knows. The calls still work.
        warnings.filterwarnings("ignore", message=".*from_dlpack")
        self.package = importlib.import_module("SpeedTorch")

    def version(self):
        try:
            return importlib.metadata.version("SpeedTorch")
        except importlib.metadata.PackageNotFoundError:
            return "unknown"

    def use_pool(self):
        self.cupy.cuda.set_allocator(self.cupy.get_default_memory_pool().malloc)


class PinnedTable:
    """A table of SpeedTorch's, filled on the GPU and read on the host without CuPy."""

    def __init__(self, cupy, array, salt):
        kind = cupy.cuda.runtime.pointerGetAttributes(array.data.ptr).type
        if kind != HOST_MEMORY:
            raise SystemExit(f"SpeedTorch's table lies in memory of type {kind}, not in page-locked memory")
        self.cupy, self.array, self.salt = cupy, array, salt
        raw = (ctypes.c_byte * array.nbytes).from_address(int(array.data.ptr))
        self.host = np.frombuffer(raw, dtype=np.float32).reshape(array.shape)

    def fill(self):
        for first in range(0, len(self.array), CHUNK):
            rows = self.cupy.arange(first, min(first + CHUNK, len(self.array)), dtype="int64")
            self.array[first : first + len(rows)] = values(self.cupy, rows, self.array.shape[1], self.salt)
        self.cupy.cuda.Device().synchronize()

    def expected(self, rows):
        return values(np, rows, self.array.shape[1], self.salt)


class Words(torch.nn.Module):
    """What the loop trains: one weight, as large as a batch."""

    def __init__(self, rows, width):
        super().__init__()
        self.embeddings = torch.nn.Embedding(rows, width, sparse=True)


class ModelSwitcher:
    """ModelFactory and its one table."""

    name, tables = "model", ("model",)

    def __init__(self, library, rows, options):
        self.model = Words(options.n, options.width).to("cuda")
        self.switcher = library.package.ModelFactory(
            self.model.embeddings, total_classes=rows, embed_dimension=options.width, CPUPinn=True
        )
        self.switcher.zerosInit()

    def arrays(self):
        return [self.switcher.CUPYcorpus]

    def visiting(self):
        return [self.model.embeddings.weight.data]

    def replace(self, tensors):
        (self.model.embeddings.weight.data,) = tensors


class OptimizerSwitcher:
    """OptimizerFactory and the moments of SparseAdam."""

    name, tables = "optimizer", ("exp_avg", "exp_avg_sq")

    def __init__(self, library, rows, options):
        model = Words(options.n, options.width).to("cuda")
        self.weight = model.embeddings.weight
        self.optimizer = torch.optim.SparseAdam(model.parameters(), lr=1e-3)
        self.switcher = library.package.OptimizerFactory(
            self.optimizer,
            total_classes=rows,
            embed_dimension=options.width,
            model=model,
            variable_name="embeddings",
            CPUPinn=True,
        )
        self.switcher.optInit()
        if tuple(self.switcher.optVarList) != self.tables:
            raise RuntimeError(f"SpeedTorch keeps {self.switcher.optVarList}")

    def arrays(self):
        return self.switcher.CUPYcorpi

    def visiting(self):
        return [self.optimizer.state[self.weight][table] for table in self.tables]

    def replace(self, tensors):
        for table, tensor in zip(self.tables, tensors):
            self.optimizer.state[self.weight][table] = tensor


def check(name, cupy, kind, tables, random):
    """One batch there and back by the package; every element of it, and rows that must not have changed."""
    count, (rows, width) = len(kind.visiting()[0]), tables[0].host.shape
    shuffled = random.permutation(rows)  # equal rows would be written in any order
    batch, others = shuffled[:count], shuffled[count : count + 1_000]

    kind.switcher.beforeForwardPass(batch)
    torch.cuda.synchronize()
    for table, sent in zip(tables, kind.visiting()):
        require(f"{name}.before_forward_pass", np.array_equal(sent.cpu().numpy(), table.expected(batch)))
    kind.replace([-1 - sent for sent in kind.visiting()])
    kind.switcher.afterOptimizerStep(batch)
    torch.cuda.synchronize()
    cupy.cuda.Device().synchronize()
    for table in tables:
        require(f"{name}.after_optimizer_step", np.array_equal(table.host[batch], -1 - table.expected(batch)))
        require(f"{name}.after_optimizer_step", np.array_equal(table.host[others], table.expected(others)))


def time_switcher(report, options, library, make, gigabytes, random):
    cupy, rows = library.cupy, int(gigabytes * 1e9) // (options.width * 4)
    kind = make(library, rows, options)
    name, end = f"speedtorch.{kind.name}", f"pinned.{gigabytes:g}GB"
    tables = [PinnedTable(cupy, array, SALTS[table]) for array, table in zip(kind.arrays(), kind.tables)]
    for table in tables:
        table.fill()
    check(name, cupy, kind, tables, random)

    host_sets = [random.integers(0, rows, options.n) for _ in range(SETS)]
    device_sets = [cupy.asarray(one) for one in host_sets]
    payload = options.n * options.width * 4 * len(tables)
    setting = {
        "rows": rows,
        "n": options.n,
        "width": options.width,
        "row_bytes": options.width * 4,
        "table_gib": rows * options.width * 4 / 2**30,
        "tables": len(tables),
    }
    switcher = kind.switcher
    for way, sets in (("", host_sets), (".device_indices", device_sets), (".pooled", host_sets)):
        if way == ".pooled":
            library.use_pool()  # until the next table is made

        def before_forward_pass(call, sets=sets):
            switcher.beforeForwardPass(sets[call % SETS])

        def after_optimizer_step(call, sets=sets):
            switcher.afterOptimizerStep(sets[call % SETS])

        more = {**setting, "indices": "device" if sets is device_sets else "host"}
        report.measure(f"{name}.before_forward_pass.{end}{way}", before_forward_pass, payload, burst=1, **more)
        report.measure(
            f"{name}.after_optimizer_step.{end}{way}",
            after_optimizer_step,
            payload,
            burst=1,
            prepare=before_forward_pass,
            **more,
        )


def main():
    parser = common.arguments(__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, nargs="*", default=[0.5, 10.0], help="sizes of a table")
    parser.add_argument("--speedtorch", metavar="FOLDER", help="folder that holds the package SpeedTorch")
    options = common.read(parser)
    folder = vars(options).pop("speedtorch")
    if options.quick:
        options.gigabytes = [0.01]
    if options.device != "cuda":
        raise SystemExit("SpeedTorch needs a GPU")
    report = common.Report(options)
    torch.manual_seed(7)
    random = np.random.default_rng(7)
    library = Library(folder)
    for gigabytes in options.gigabytes:
        for make in (ModelSwitcher, OptimizerSwitcher):
            report.attempt(
                f"speedtorch.{make.name}.pinned.{gigabytes:g}GB",
                lambda make=make, gigabytes=gigabytes: time_switcher(report, options, library, make, gigabytes, random),
            )
    report.finish(speedtorch=library.version(), cupy=library.cupy.__version__)


if __name__ == "__main__":
    main()
