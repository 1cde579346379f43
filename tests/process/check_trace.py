#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program that writes a trace, and checks the file by the rules of the Trace Event Format.

    check_trace.py PROGRAM

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

CATEGORIES = {"verb", "transfer", "kernel", "enqueue", "wait", "region", "loader"}
FIRST_TRACK = 1 << 23
VERBS = {"ferry::gather", "ferry::scatter", "ferry::copy", "ferry::step", "ferry::make_plan"}


def run(program, how, trace, expect=0):
    environment = {name: value for name, value in os.environ.items() if name != "FERRY_TRACE"}
    if trace is not None:
        environment["FERRY_TRACE"] = str(trace)
    done = subprocess.Popen([program, how], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = done.communicate(timeout=120)
    assert done.returncode == expect, f"{how}: exited with {done.returncode}\n{out}{err}"
    return done.pid, err


def check_nesting(events):
    """Complete events of one row are apart or inside of each other."""
    open_ends = []
    for event in sorted(events, key=lambda one: (one["ts"], -one["dur"])):
        begin, end = event["ts"], event["ts"] + event["dur"]
        while open_ends and open_ends[-1] <= begin + 0.0005:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1] + 0.0015, event
        open_ends.append(end)


def check_events(events, process):
    """The format. The result is the complete events."""
    assert isinstance(events, list)
    rows = collections.defaultdict(list)
    named = {}
    for event in events:
        assert event["ph"] in ("X", "M"), event
        assert event["pid"] == process and isinstance(event["tid"], int), event
        assert isinstance(event["name"], str) and event["name"], event
        assert isinstance(event["args"], dict), event
        if event["ph"] == "M":
            assert event["name"] == "thread_name" and event["tid"] not in named, event
            named[event["tid"]] = event["args"]["name"]
            continue
        assert event["cat"] in CATEGORIES, event
        assert isinstance(event["ts"], float) and event["ts"] >= 0, event
        assert isinstance(event["dur"], float) and event["dur"] >= 0, event
        if "bytes" in event["args"]:
            assert event["args"]["bytes"] >= 0 and event["args"]["from"] and event["args"]["to"], event
        own_row = event["tid"] >= FIRST_TRACK and event["name"] != "ferry::loader::transfer"
        assert ("stream" in event["args"]) == own_row, event
        rows[event["tid"]].append(event)
    assert set(rows) <= set(named), (set(rows), named)
    for row in rows.values():
        check_nesting(row)
    return [event for row in rows.values() for event in row]


def count(events, name, category):
    return sum(event["name"] == name and event["cat"] == category for event in events)


def check_device(events):
    """On a device, each kernel and transfer that a thread enqueued has run in a stream."""
    enqueued = collections.Counter(event["name"] for event in events if event["cat"] == "enqueue")
    ran = collections.Counter(event["name"] for event in events if "stream" in event["args"])
    assert enqueued == ran, (enqueued, ran)


def check_loader(events):
    """Two epochs of 7 batches of two prefetchers: each batch is made, travels where there is a device, and is waited
    for, in this order."""
    stages = collections.defaultdict(dict)
    for event in events:
        if event["cat"] == "loader":
            of = (event["args"]["epoch"], event["args"]["batch"], event["args"]["samples"])
            stages[event["name"]].setdefault(of, []).append(event)
    wanted = {(epoch, batch, 50 if batch < 6 else 20) for epoch in range(2) for batch in range(7)}
    made, waited = stages["ferry::loader::make"], stages["ferry::loader::wait"]
    assert set(made) == set(waited) == wanted, (set(made), set(waited))
    travels = any("stream" in event["args"] for event in events)
    sent = stages["ferry::loader::transfer"]
    assert set(sent) == (wanted if travels else set()), set(sent)
    (user,) = {event["tid"] for each in waited.values() for event in each}
    assert user not in {event["tid"] for stage in (made, sent) for each in stage.values() for event in each}
    for of in wanted:
        for stage in (made, waited) + ((sent,) if travels else ()):
            assert len(stage[of]) == 2, of
        ends = sorted(event["ts"] + event["dur"] for event in waited[of])
        begun = sorted(event["ts"] + event["dur"] for event in made[of])
        assert begun[0] <= ends[0] + 0.002 and begun[1] <= ends[1] + 0.002, of
        if travels:
            assert max(event["ts"] for event in sent[of]) >= begun[0] - 0.002, of
    assert len({event["tid"] for each in sent.values() for event in each}) == (2 if travels else 0)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        process, _ = run(program, "threads", trace)
        events = check_events(json.loads(trace.read_text()), process)
        check_device(events)
        assert count(events, "ferry::gather", "verb") == 60
        assert count(events, "ferry::gather::direct", "kernel") == 60
        assert count(events, "ferry::wait", "wait") >= 60
        waits = [event["args"] for event in events if event["name"] == "ferry::wait" and event["args"].get("verb") == "gather"]
        assert len(waits) == 60 and all(wait["table"] == "table" for wait in waits), waits
        assert count(events, "call", "region") == 60
        for thread in range(3):
            (region,) = [event for event in events if event["name"] == f"thread {thread}"]
            inside = [event for event in events if event["tid"] == region["tid"] and event["name"] == "ferry::gather"]
            assert len(inside) == 20
            for event in inside:
                assert region["ts"] <= event["ts"] and event["ts"] + event["dur"] <= region["ts"] + region["dur"] + 0.002
                assert event["args"] == {"path": "direct", "from": "mapped_space", "to": "device_space",
                                         "bytes": 300 * 16 * 4, "table": "table", "rows": 2000, "positions": 300,
                                         "plan": "no"}, event

        process, _ = run(program, "verbs", Path(folder, "%p.json"))
        events = check_events(json.loads(Path(folder, f"{process}.json").read_text()), process)
        check_device(events)
        assert VERBS <= {event["name"] for event in events if event["cat"] == "verb"}
        paths = {event["args"]["path"] for event in events if event["name"] == "ferry::gather" and event["args"]}
        assert paths == {"direct", "ordered", "staged", "cooperative"}, paths
        staged = [event for event in events if event["name"] == "ferry::gather::staged" and event["cat"] == "transfer"]
        assert staged and any(event["args"].get("bytes") == 300 * 16 * 4 for event in staged), staged
        plans = [event["args"] for event in events if event["name"] == "ferry::make_plan"]
        assert plans and all(plan == {"rows": 2000, "positions": 300} for plan in plans), plans
        (copied,) = [event for event in events if event["name"] == "ferry::copy"]
        assert copied["args"]["bytes"] == 1 << 20

        process, _ = run(program, "loader", trace)
        events = check_events(json.loads(trace.read_text()), process)
        check_device(events)
        check_loader(events)

        # Ends without Kokkos::finalize.
        process, _ = run(program, "exit", trace)
        events = check_events(json.loads(trace.read_text()), process)
        assert count(events, "ferry::gather", "verb") == 3

        # A killed program leaves all but the latest events, and readers need no closing bracket.
        process, _ = run(program, "kill", trace, expect=-9)
        text = trace.read_text()
        events = check_events(json.loads(text[: text.rindex("\n")].rstrip(",") + "\n]"), process)
        assert count(events, "ferry::gather", "verb") > 1000

        # A child writes nothing into its parent's file.
        process, _ = run(program, "fork", trace)
        events = check_events(json.loads(trace.read_text()), process)
        assert count(events, "ferry::gather", "verb") == 3 and count(events, "child", "region") == 0

        # Labels that are no JSON, and regions outside of Kokkos' life.
        process, _ = run(program, "nothing", trace)
        events = check_events(json.loads(trace.read_text()), process)
        assert [event["name"] for event in events] == ['before "Kokkos"?\\ ?', "after Kokkos"], events

        # A file that can't be written does not stop the program.
        _, err = run(program, "threads", Path(folder, "none", "trace.json"))
        assert "FERRY_TRACE" in err and err.count("can't write") == 1, err

        trace.unlink()
        run(program, "threads", None)
        assert not trace.exists()


if __name__ == "__main__":
    main()
