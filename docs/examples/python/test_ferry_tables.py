#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the extension: python3 test_ferry_tables.py [-v]. What needs a GPU, PyTorch or CuPy is skipped without."""

import gc
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

try:
    import torch
except ImportError:
    torch = None
try:
    import cupy
except ImportError:
    cupy = None

import ferry_tables as ferry

GPU = ferry.backend == "cuda"
SPACES = ("device", "pinned", "mapped", "pageable")
HOST_SPACES = SPACES[1:] if GPU else SPACES
STREAMS = []  # ferry remembers streams: they must live as long as it
LONG_SLEEP = 1_000_000_000  # cycles of the GPU's clock: about half a second


def filled(space, rows=50, width=7, seed=3):
    """A table and its content."""
    table = ferry.Table(rows, width, space=space).uniform(-1.0, 1.0, seed=seed)
    everything = np.empty((rows, width), np.float32)
    table.gather(np.arange(rows), everything)
    return table, everything


class WithNumPy(unittest.TestCase):
    def test_gather_and_scatter(self):
        random = np.random.default_rng()
        for space in SPACES:
            table, content = filled(space)
            indices = random.integers(0, 50, 33)
            np.testing.assert_array_equal(table.gather(indices), content[indices])
            rows = random.standard_normal((33, 7), dtype=np.float32)
            table.scatter(indices, rows)
            for index, row in zip(indices, rows):
                content[index] = row
            np.testing.assert_array_equal(table.gather(np.arange(50)), content)
            table.scatter_add(indices[:1], rows[:1])
            content[indices[0]] += rows[0]
            np.testing.assert_array_equal(table.gather(np.arange(50)), content)

    def test_the_table_is_shared_not_copied(self):
        for space in HOST_SPACES:
            table, content = filled(space)
            seen = np.from_dlpack(table.on("cpu"))
            self.assertEqual(seen.__array_interface__["data"][0], table.address)
            np.testing.assert_array_equal(seen, content)
            table.scatter(np.array([3]), np.full((1, 7), 9, np.float32))
            self.assertEqual(seen[3, 6], 9.0)
            seen[4] = 5.0
            np.testing.assert_array_equal(table.gather(np.array([4])), np.full((1, 7), 5, np.float32))
            del table
            gc.collect()
            self.assertEqual(seen[4, 0], 5.0)  # the array keeps the memory

    def test_step(self):
        for space in SPACES:
            for rule in ("sgd", "adagrad", "sparse_adam"):
                table, content = filled(space)
                optimizer = ferry.Optimizer(table, rule, lr=0.5)
                gradients = np.ones((3, 7), np.float32)
                optimizer.step(np.array([1, 8, 1]), gradients)
                after = table.gather(np.arange(50))
                changed = np.flatnonzero((after != content).any(1))
                np.testing.assert_array_equal(changed, [1, 8])
                expected = {"sgd": (1.0, 0.5), "adagrad": (0.5, 0.5), "sparse_adam": (0.5, 0.5)}[rule]
                np.testing.assert_allclose(content[1] - after[1], expected[0], rtol=1e-5)  # gradients of a row are summed
                np.testing.assert_allclose(content[8] - after[8], expected[1], rtol=1e-5)
                self.assertEqual(optimizer.lr, 0.5)
                optimizer.lr = 0.0
                optimizer.step(np.array([2]), gradients[:1])
                np.testing.assert_array_equal(table.gather(np.array([2])), after[2:3])

    def test_save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.npy"
            for space in SPACES:
                table, content = filled(space)
                table.save(path)
                np.testing.assert_array_equal(np.load(path), content)
                np.testing.assert_array_equal(ferry.load(path, space=space).gather(np.arange(50)), content)
            np.save(path, content.astype(np.float64))
            with self.assertRaises(ValueError):
                ferry.load(path)
            np.save(path, content[0])
            with self.assertRaisesRegex(ValueError, "a table has 2"):
                ferry.load(path)
            with self.assertRaises(OSError):
                ferry.load(Path(folder) / "nothing.npy")

    def test_errors_are_pythons(self):
        table, content = filled("mapped")
        with self.assertRaisesRegex(IndexError, "50"):
            table.gather(np.array([0, 50]))
        with self.assertRaises(IndexError):
            table.scatter(np.array([-1]), np.zeros((1, 7), np.float32))
        with self.assertRaisesRegex(ValueError, "int32 is no array of int64"):
            table.gather(np.zeros(2, np.int32))
        with self.assertRaisesRegex(ValueError, "float64"):
            table.scatter(np.array([0]), np.zeros((1, 7)))
        with self.assertRaisesRegex(ValueError, "strides"):
            table.scatter(np.array([0, 1]), np.zeros((7, 2), np.float32).T)
        with self.assertRaisesRegex(ValueError, "7"):
            table.scatter(np.array([0]), np.zeros((1, 6), np.float32))
        with self.assertRaisesRegex(ValueError, "moon"):
            ferry.Table(2, 2, space="moon")
        with self.assertRaisesRegex(ValueError, "no rule"):
            ferry.Optimizer(table, "magic", lr=1.0)
        with self.assertRaises(MemoryError):
            ferry.Table(1 << 30, 1 << 20, space="pinned")
        np.testing.assert_array_equal(table.gather(np.arange(50)), content)  # nothing was half-written

    def test_read_only_arrays_are_read_and_never_written(self):
        table, content = filled("mapped")
        indices = np.array([3, 4])
        rows = np.zeros((2, 7), np.float32)
        indices.flags.writeable = rows.flags.writeable = False
        np.testing.assert_array_equal(table.gather(indices), content[[3, 4]])
        table.scatter(indices, rows)
        with self.assertRaisesRegex(ValueError, "read-only"):
            table.gather(indices, rows)

    def test_a_ticket_keeps_its_arrays(self):
        table, content = filled("mapped")
        out, ticket = table.gather(np.arange(50), np.empty((50, 7), np.float32), wait=False)
        gc.collect()
        ticket.wait()
        self.assertTrue(ticket.ready())
        np.testing.assert_array_equal(out, content)

    def test_references_do_not_leak(self):
        table, _ = filled("mapped")
        indices, rows = np.arange(50), np.zeros((50, 7), np.float32)
        before = sys.getrefcount(indices), sys.getrefcount(rows)
        for _ in range(10):
            table.gather(indices, rows)
            table.scatter(indices, rows)
            with self.assertRaises(ValueError):
                table.gather(indices, rows[:3])
        table.__dlpack__()  # a capsule that nobody takes
        gc.collect()
        self.assertEqual((sys.getrefcount(indices), sys.getrefcount(rows)), before)


@unittest.skipIf(torch is None, "no PyTorch")
class WithTorch(unittest.TestCase):
    def test_shared_both_ways(self):
        table, content = filled("pageable")
        seen = torch.from_dlpack(table.on("cpu"))
        self.assertEqual(seen.data_ptr(), table.address)
        self.assertTrue(torch.equal(seen, torch.from_numpy(content)))
        out = torch.empty(2, 7)
        self.assertIs(table.gather(torch.tensor([5, 6]), out), out)
        self.assertTrue(torch.equal(out, seen[5:7]))

    def test_sparse_adam_is_torchs(self):
        table, content = filled("mapped")
        weight = torch.nn.Parameter(torch.from_numpy(content.copy()))
        theirs = torch.optim.SparseAdam([weight], lr=0.01)
        ours = ferry.Optimizer(table, "sparse_adam", lr=0.01)
        for _ in range(5):
            indices = torch.randint(50, (20,))
            gradients = torch.randn(20, 7)
            weight.grad = torch.sparse_coo_tensor(indices[None], gradients, (50, 7))
            theirs.step()
            ours.step(indices, gradients)
        rows = table.gather(torch.arange(50))
        torch.testing.assert_close(rows, weight.detach(), rtol=1e-5, atol=1e-6)

    def test_gradients_flow(self):
        table, _ = filled("mapped")
        weights = table.gather(torch.tensor([1, 2])).requires_grad_()
        (weights * 3).sum().backward()
        before = table.gather(torch.tensor([1]))
        ferry.Optimizer(table, "sgd", lr=1.0).step(torch.tensor([1, 2]), weights.grad)
        torch.testing.assert_close(table.gather(torch.tensor([1])), before - 3)

    def test_speedtorch_loop(self):
        with tempfile.TemporaryDirectory() as folder:
            here = Path(__file__).resolve().parent
            run = subprocess.run([sys.executable, str(here / "speedtorch_loop.py"), "300", "16", "256", "200"],
                                 cwd=folder, env={**os.environ, "PYTHONPATH": str(here)}, capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            losses = [float(line.split()[-1]) for line in run.stdout.splitlines()]
            self.assertLess(losses[-1], losses[0] / 10)


@unittest.skipUnless(GPU and torch is not None and torch.cuda.is_available(), "no GPU, or PyTorch without it")
class OnTheGpu(unittest.TestCase):
    def setUp(self):
        torch.cuda.synchronize()

    def test_devices_of_the_spaces(self):
        devices = {space: ferry.Table(2, 2, space=space).__dlpack_device__() for space in SPACES}
        self.assertEqual(devices["device"], (2, 0))
        self.assertEqual(devices["pinned"], (3, 0))
        self.assertIn(devices["mapped"], [(13, 0), (3, 0)])
        self.assertEqual(devices["pageable"], (1, 0))

    def test_every_space_that_the_gpu_reaches_is_shared_with_torch(self):
        for space in ("device", "pinned", "mapped"):
            table, content = filled(space)
            seen = torch.from_dlpack(table.on("cuda"))
            self.assertEqual(seen.data_ptr(), table.address)
            self.assertEqual(seen.device.type, "cuda")
            # By a kernel: a copy between devices would take host memory for what PyTorch says that it is.
            self.assertTrue(torch.equal((seen + 0).cpu(), torch.from_numpy(content)))
            seen[3] = 8.0
            self.assertTrue(bool((table.gather(torch.tensor([3], device="cuda")) == 8.0).all()))
            del table
            gc.collect()
            self.assertEqual((seen[3] + 0)[0].item(), 8.0)
        with self.assertRaises(ValueError):
            ferry.Table(2, 2, space="pageable").on("cuda").__dlpack__()

    def test_batches_of_both_sides(self):
        for space in SPACES:
            table, content = filled(space)
            for indices in (torch.tensor([4, 0]), torch.tensor([4, 0], device="cuda")):
                for out in (torch.empty(2, 7), torch.empty(2, 7, device="cuda")):
                    pointer = out.data_ptr()
                    table.gather(indices, out)
                    self.assertEqual(out.data_ptr(), pointer)
                    self.assertTrue(torch.equal(out.cpu(), torch.from_numpy(content[[4, 0]])))
            with self.assertRaises(IndexError):
                table.gather(torch.tensor([50], device="cuda"))

    # The races: work that sleeps on one stream, and a reader on another. Without the order that DLPack's `stream` gives
    # the reader is early, which shows that the ordered half of each test would fail without it. A first round loads
    # all kernels.

    def race(self, run):
        """run(sleep, ordered) returns what the reader saw and the stream of the writer."""
        for kind in ("warm", "unordered", "ordered"):
            cycles = LONG_SLEEP
            while True:
                torch.cuda.synchronize()
                seen, writer = run(lambda: kind == "warm" or torch.cuda._sleep(cycles), kind != "unordered")
                still_sleeps = not writer.query()
                torch.cuda.synchronize()
                if still_sleeps or kind != "unordered":
                    break
                self.assertLess(cycles, 64 * LONG_SLEEP, "the sleep was too short to show a race")
                cycles *= 4  # the host was busy
            self.assertEqual(seen(), 0.0 if kind == "unordered" else 7.0, kind)

    def test_ferry_waits_for_torch(self):
        table = ferry.Table(5, 7, space="device")
        indices = torch.tensor([3], device="cuda")
        theirs, ours = torch.cuda.Stream(), torch.cuda.Stream()

        def run(sleep, ordered):
            table.zeros()
            rows = torch.zeros(1, 7, device="cuda")
            torch.cuda.synchronize()
            with torch.cuda.stream(theirs):
                sleep()
                rows.fill_(7.0)
                capsule = rows.__dlpack__(stream=ours.cuda_stream if ordered else -1, max_version=(1, 1))
            unordered_indices = indices.__dlpack__(stream=-1, max_version=(1, 1))
            table._table.scatter(ours.cuda_stream, unordered_indices, capsule).wait()
            return lambda: table.gather(indices)[0, 0].item(), theirs

        self.race(run)

    def test_torch_waits_for_ferry(self):
        source = ferry.Table(1, 7, space="device")
        indices = torch.tensor([0], device="cuda")
        source.scatter(indices, torch.full((1, 7), 7.0, device="cuda"))
        ours, theirs = torch.cuda.Stream(), torch.cuda.Stream()

        def run(sleep, ordered):
            out = torch.zeros(1, 7, device="cuda")
            torch.cuda.synchronize()
            with torch.cuda.stream(ours):
                sleep()
            _, ticket = source.gather(indices, out, stream=ours, wait=False)
            if ordered:
                ticket.then(theirs.cuda_stream)
            with torch.cuda.stream(theirs):
                copied = out.clone()
            theirs.synchronize()
            self.ticket = ticket  # a ticket waits when it dies
            return lambda: copied[0, 0].item(), ours

        self.race(run)

    def test_a_shared_table_comes_after_the_verbs_on_it(self):
        indices = torch.tensor([0], device="cuda")
        rows = torch.full((1, 7), 7.0, device="cuda")
        ours, theirs = torch.cuda.Stream(), torch.cuda.Stream()

        def run(sleep, ordered):
            self.kept = self.ticket = None  # memory that is freed waits for the whole device
            table = ferry.Table(1, 7, space="device").zeros()
            torch.cuda.synchronize()
            with torch.cuda.stream(ours):
                sleep()
            self.ticket = table.scatter(indices, rows, stream=ours, wait=False)
            with torch.cuda.stream(theirs):
                if ordered:
                    shared = torch.from_dlpack(table.on("cuda"))
                else:
                    shared = torch.from_dlpack(table.on("cuda").__dlpack__(stream=-1, max_version=(1, 0)))
                copied = shared.clone()
            theirs.synchronize()
            self.kept = table, shared  # a table waits for the work on it when it dies
            return lambda: copied[0, 0].item(), ours

        self.race(run)

    def test_pinned_tensors_of_torch(self):
        table, content = filled("mapped")
        out = torch.empty(2, 7).pin_memory()
        table.gather(torch.tensor([1, 2]).pin_memory(), out)
        self.assertTrue(torch.equal(out, torch.from_numpy(content[[1, 2]])))

    @unittest.skipIf(cupy is None, "no CuPy")
    def test_cupy(self):
        for space in ("device", "mapped"):
            table, content = filled(space)
            seen = cupy.from_dlpack(table if space == "device" else table.on("cuda"))
            self.assertEqual(seen.data.ptr, table.address)
            np.testing.assert_array_equal(cupy.asnumpy(seen), content)
            indices = cupy.array([9, 9, 1])
            np.testing.assert_array_equal(cupy.asnumpy(table.gather(indices)), content[[9, 9, 1]])
            stream = cupy.cuda.Stream(non_blocking=True)
            STREAMS.append(stream)
            with stream:
                table.scatter(indices[:1], cupy.full((1, 7), 4, cupy.float32))
            stream.synchronize()
            self.assertEqual(float(seen[9, 0]), 4.0)


if __name__ == "__main__":
    unittest.main()
