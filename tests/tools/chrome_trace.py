#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program with the tool library that writes a trace, and checks the file by the rules of the Trace Event Format.

    chrome_trace.py PROGRAM LIBRARY

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU: an array of events; each has a phase,
process, thread and name; a complete event ("X") has a category, a begin and a duration in microseconds, and arguments;
events of one thread nest.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CATEGORIES = {"region", "kernel", "copy", "fence"}
VERBS = {"ferry::gather", "ferry::scatter", "ferry::copy", "ferry::step", "ferry::make_plan"}


def run(how, trace, expect=0, options=""):
    environment = dict(os.environ)
    environment.pop("KOKKOS_TOOLS_LIBS", None)
    if trace is not None:
        environment.update(KOKKOS_TOOLS_LIBS=sys.argv[2], FERRY_CHROME_TRACE=str(trace), FERRY_CHROME_TRACE_OPTIONS=options)
    done = subprocess.Popen([sys.argv[1], how], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = done.communicate(timeout=120)
    assert done.returncode == expect, f"{how}: exited with {done.returncode}\n{out}{err}"
    return done.pid, err


def check_nesting(events):
    """Complete events of one thread are apart or inside of each other."""
    open_ends = []
    for event in sorted(events, key=lambda one: (one["ts"], -one["dur"])):
        begin, end = event["ts"], event["ts"] + event["dur"]
        while open_ends and open_ends[-1] <= begin + 0.0005:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1] + 0.0015, event
        open_ends.append(end)


def check_events(events, process):
    """The format. The result is the complete events, then those without length."""
    assert isinstance(events, list)
    threads = collections.defaultdict(list)
    named, marks = {}, []
    for event in events:
        assert event["pid"] == process and isinstance(event["tid"], int), event
        assert isinstance(event["name"], str) and event["name"], event
        assert isinstance(event["args"], dict), event
        if event["ph"] == "M":
            assert event["name"] == "thread_name" and event["tid"] not in named, event
            named[event["tid"]] = event["args"]["name"]
            continue
        assert isinstance(event["ts"], float) and event["ts"] >= 0, event
        if event["ph"] == "X":
            assert event["cat"] in CATEGORIES, event
            assert isinstance(event["dur"], float) and event["dur"] >= 0, event
            threads[event["tid"]].append(event)
        else:
            assert event["ph"] in ("i", "C"), event
            marks.append(event)
    assert set(threads) <= set(named), (set(threads), named)
    for thread in threads.values():
        check_nesting(thread)
    return [event for thread in threads.values() for event in thread], marks


def read(trace, process):
    return check_events(json.loads(trace.read_text()), process)


def count(events, name, category):
    return sum(event["name"] == name and event["cat"] == category for event in events)


def inside(region, events):
    return [event for event in events if event["tid"] == region["tid"] and region["ts"] <= event["ts"]
            and event["ts"] + event.get("dur", 0) <= region["ts"] + region["dur"] + 0.002]


def check_threads(events, marks):
    assert count(events, "ferry::gather", "region") == 60
    assert count(events, "ferry::gather::direct", "kernel") == 60
    assert count(events, "ferry::wait::gather", "region") == 60
    assert count(events, "call", "region") == 60
    for thread in range(3):
        (region,) = [event for event in events if event["name"] == f"thread {thread}"]
        gathers = [event for event in inside(region, events) if event["name"] == "ferry::gather"]
        assert len(gathers) == 20
        for gather in gathers:
            (mark,) = inside(gather, marks)
            assert mark["name"] == "table: 300 positions, 2000 rows", mark
            (kernel,) = [event for event in inside(gather, events) if event["cat"] == "kernel"]
            assert kernel["args"]["pattern"] == "for", kernel


def check_kokkos(events, marks):
    (outer,) = [event for event in events if event["name"] == "outer"]
    within = inside(outer, events)
    assert count(within, "fill", "kernel") == 1 and count(within, "total", "kernel") == 1
    assert count(within, "at the end", "fence") >= 1
    copies = [event for event in within if event["cat"] == "copy"]
    assert [one["args"]["bytes"] for one in copies] == [8000] and copies[0]["args"]["source"] == "source", copies
    assert copies[0]["name"] == 'sums "quoted"?\\ ?', copies
    assert [mark["name"] for mark in inside(outer, marks)] == ["a fact"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        process, _ = run("threads", trace)
        check_threads(*read(trace, process))
        process, _ = run("threads", trace, options="fences")
        check_threads(*read(trace, process))

        process, _ = run("kokkos", trace)
        events, marks = read(trace, process)
        check_kokkos(events, marks)
        assert not any(mark["ph"] == "C" for mark in marks)
        process, _ = run("kokkos", trace, options="fences,allocations")
        events, marks = read(trace, process)
        check_kokkos(events, [mark for mark in marks if mark["name"] == "a fact"])
        made = [mark for mark in marks if mark["name"] == "allocate" and mark["args"]["label"] == "source"]
        ended = [mark for mark in marks if mark["name"] == "deallocate" and mark["args"]["label"] == "source"]
        assert len(made) == len(ended) == 1 and made[0]["args"]["bytes"] == ended[0]["args"]["bytes"] >= 8000
        held = [mark["args"]["bytes"] for mark in marks if mark["ph"] == "C" and mark["name"] == made[0]["args"]["space"]]
        assert max(held) >= 8000 and min(held) >= 0, held

        process, _ = run("verbs", Path(folder, "%p.json"))
        events, marks = read(Path(folder, f"{process}.json"), process)
        assert VERBS <= {event["name"] for event in events if event["cat"] == "region"}
        staged = [event for event in events if event["name"] == "ferry::gather::staged" and event["cat"] == "copy"]
        assert staged and any(event["args"]["bytes"] == 300 * 16 * 4 for event in staged), staged
        assert {"ferry::pinned_space"} == {event["args"]["from"] for event in staged}, staged
        copied = [event for event in events if event["name"].startswith("ferry::copy::") and event["cat"] == "copy"]
        assert sum(event["args"]["bytes"] for event in copied) == 1 << 20, copied
        assert any(mark["name"].startswith("table: 300 positions of a plan") for mark in marks), marks

        # Two epochs of 7 batches of two prefetchers: workers make them, one thread waits.
        process, _ = run("loader", trace)
        events, _ = read(trace, process)
        made = [event for event in events if event["name"] == "ferry::loader::make"]
        waited = [event for event in events if event["name"] == "ferry::loader::wait"]
        assert len(made) == len(waited) == 28, (len(made), len(waited))
        (user,) = {event["tid"] for event in waited}
        assert user not in {event["tid"] for event in made}

        # Ends without Kokkos::finalize.
        process, _ = run("exit", trace)
        assert count(read(trace, process)[0], "ferry::gather", "region") == 3

        # A killed program leaves all but the latest events, and readers need no closing bracket.
        process, _ = run("kill", trace, expect=-9)
        text = trace.read_text()
        events, _ = check_events(json.loads(text[: text.rindex("\n")].rstrip(",") + "\n]"), process)
        assert count(events, "ferry::gather", "region") > 1000

        # A child writes nothing into its parent's file.
        process, _ = run("fork", trace)
        events, _ = read(trace, process)
        assert count(events, "ferry::gather", "region") == 3 and count(events, "child", "region") == 0

        # Regions outside of Kokkos' life, which the library does not see.
        process, _ = run("nothing", trace)
        assert not [event for event in read(trace, process)[0] if event["cat"] == "region"]

        # A file that can't be written does not stop the program.
        _, err = run("threads", Path(folder, "none", "trace.json"))
        assert err.count("ferry_chrome_trace: can't write") == 1, err

        trace.unlink()
        run("threads", None)
        assert not trace.exists()


if __name__ == "__main__":
    main()
