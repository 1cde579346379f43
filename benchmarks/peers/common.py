# SPDX-License-Identifier: Apache-2.0
"""Timing and reporting that the peers' scripts share. Reports have the layout of ferry's own."""

import argparse
import datetime
import json
import platform
import time

import torch


def arguments(text):
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--json", help="write the report to this file")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--burst", type=int, default=8, help="calls between two events of the device")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the small table")
    parser.add_argument("--n", type=int, default=131_072, help="rows of a batch")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that everything runs, not how fast")
    return parser


def read(parser):
    options = parser.parse_args()
    if options.quick:
        options.rows, options.n, options.repeats, options.warm_up = 20_000, 4_096, 3, 1
    return options


def summary(readings):
    ordered = sorted(readings)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return {"median": median, "min": ordered[0], "max": ordered[-1], "repeats": len(ordered), "readings": readings}


class Report:
    """Figures of one script: `wall_ms` is one call and the wait for it, `ms` one call of a burst by the device's events."""

    def __init__(self, options):
        self.options = options
        self.figures = []
        self.skipped = []
        self.on_device = options.device == "cuda"

    def wait(self):
        if self.on_device:
            torch.cuda.synchronize()

    def measure(self, name, call, payload=0, burst=None, prepare=lambda count: None, **setting):
        """`call(i)` does the work once; i counts up, so that each call can take other inputs. `prepare(i)` comes before
        each call, or before a burst of them for its first, and is not timed."""
        options, count = self.options, 0
        burst = options.burst if burst is None else burst
        for _ in range(options.warm_up):
            prepare(count)
            call(count)
            count += 1
        # As ferry's bench programs: a device that was idle reaches its clock first.
        until = time.perf_counter() + (0.05 if self.on_device and burst > 1 and not options.quick else 0)
        while time.perf_counter() < until:
            prepare(count)
            call(count)
            self.wait()
            count += 1
        wall = []
        for _ in range(options.repeats):
            prepare(count)
            self.wait()
            begin = time.perf_counter()
            call(count)
            self.wait()
            wall.append((time.perf_counter() - begin) * 1e3)
            count += 1
        device = wall
        if self.on_device:
            device = []
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            for _ in range(options.repeats):
                prepare(count)
                self.wait()
                first.record()
                for _ in range(burst):
                    call(count)
                    count += 1
                last.record()
                last.synchronize()
                device.append(first.elapsed_time(last) / burst)
        figure = {"name": name, "setting": {**setting, "burst": burst}, "ms": summary(device), "wall_ms": summary(wall)}
        if payload:
            figure.update(bytes=payload, counts="payload", gb_per_s=payload / figure["ms"]["median"] / 1e6)
        self.figures.append(figure)
        rate = f"{figure['gb_per_s']:10.2f} GB/s" if payload else ""
        print(f"{name:52s} {figure['ms']['median']:10.4f} ms {figure['wall_ms']['median']:10.4f} ms wall {rate}", flush=True)

    def fastest(self, name):
        """Of the figures called <name>.<way> the one that takes least, by the clock of who waits, under the name itself."""
        ways = [figure for figure in self.figures if figure["name"].startswith(f"{name}.")]
        if ways:
            best = min(ways, key=lambda figure: figure["wall_ms"]["median"])
            self.figures.append({**best, "name": name, "setting": {**best["setting"], "way": best["name"]}})
            print(f"{name:52s} is {best['name']}", flush=True)

    def attempt(self, name, work):
        """A peer that is not installed, or does not know the operation, is left out and named."""
        try:
            work()
        except (ImportError, AssertionError, AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            self.skipped.append({"name": name, "why": f"{type(error).__name__}: {error}"})
            print(f"{name:52s} skipped: {type(error).__name__}: {str(error)[:120]}", flush=True)

    def finish(self, **versions):
        about = {
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "versions": {"python": platform.python_version(), "torch": torch.__version__, **versions},
            "device": {
                "name": torch.cuda.get_device_name() if self.on_device else platform.processor(),
                "cuda": torch.version.cuda,
                "threads": torch.get_num_threads(),
            },
            "options": {key: value for key, value in vars(self.options).items() if key != "json"},
            "figures": self.figures,
            "skipped": self.skipped,
        }
        if self.options.json:
            with open(self.options.json, "w", encoding="utf-8") as file:
                json.dump(about, file, indent=2)
                file.write("\n")
