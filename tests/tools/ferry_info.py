#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ferry-info and checks what it prints against this machine, as Python sees it.

    ferry_info.py PROGRAM
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

VERDICTS = {"good", "note", "warning", "failure"}
RATES = {"allocation_gb_per_s", "to_device_gb_per_s", "from_device_gb_per_s"}


def run(*arguments, expect=0, **environment):
    done = subprocess.run(arguments, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    assert done.returncode == expect, f"{arguments} exited with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done


def meminfo(key):
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return None


def check_facts(found):
    for key in ("ferry", "kokkos", "backend", "execution_space", "host_execution_space"):
        assert isinstance(found[key], str) and found[key], key
    assert found["backend"] in ("host", "cuda")
    assert found["devices"] and found["devices"][found["device"]]["name"]
    for device in found["devices"]:
        assert all(isinstance(value, bool) for value in device["access"].values())
        if found["backend"] == "cuda":
            assert device["memory_bytes"] > 0 and device["multiprocessors"] > 0
    host = found["host"]
    assert host["memory_bytes"] == meminfo("MemTotal")
    assert 0 < host["available_bytes"] <= host["memory_bytes"]
    assert host["usable_processors"] == len(os.sched_getaffinity(0))
    assert host["page_bytes"] == resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unlimited = resource.RLIM_INFINITY
    assert host["memlock_bytes"] == (None if soft == unlimited else soft)
    assert host["memlock_hard_bytes"] == (None if hard == unlimited else hard)
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if setting.exists():
        assert f"[{host['huge_pages']['setting']}]" in setting.read_text()
    nodes = {int(path.name[4:]) for path in Path("/sys/devices/system/node").glob("node[0-9]*")}
    assert {node["number"] for node in host["numa_nodes"]} == nodes
    assert found["checks"]
    for check in found["checks"]:
        assert check["verdict"] in VERDICTS and check["name"] and check["found"], check
        assert check["verdict"] == "good" or check["advice"], check


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        apart = {"XDG_CACHE_HOME": folder, "FERRY_PROFILE": ""}
        quiet = json.loads(run(program, "--json", "--no-rates", **apart).stdout)
        check_facts(quiet)
        assert quiet["rates"]["spaces"] == [] and quiet["rates"]["skipped"]
        assert quiet["profile"]["measured"] == []

        measured = json.loads(run(program, "--json", "--mib", "8", **apart).stdout)
        check_facts(measured)
        assert measured["rates"]["skipped"] is None
        spaces = {space["name"]: space for space in measured["rates"]["spaces"]}
        assert set(spaces) == {"pinned_space", "mapped_space", "pageable_space"}
        for space in spaces.values():
            assert space["to_device_gb_per_s"] > 0 and space["from_device_gb_per_s"] > 0, space
            assert RATES <= set(space) and space["made_of"], space

        text = run(program, "--mib", "8", **apart).stdout
        for word in (measured["ferry"], measured["devices"][0]["name"], "huge pages", "memlock limit", "pinned_space", "checks"):
            assert word in text, word

        # A broken profile is reported; the rest still is.
        broken = Path(folder, "profile.json")
        broken.write_text("no profile")
        found = json.loads(run(program, "--json", "--no-rates", FERRY_PROFILE=str(broken)).stdout)
        assert str(broken) in found["profile"]["origin"], found["profile"]

        # A limit of this process shows.
        def lower():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]))

        limited = subprocess.run([program, "--json", "--no-rates"], capture_output=True, text=True, preexec_fn=lower, check=True)
        limited = json.loads(limited.stdout)
        assert limited["host"]["memlock_bytes"] == 65536
        assert [check["verdict"] for check in limited["checks"] if check["name"] == "memlock limit"] == ["note"]

        # A tool that fences, and one processor for more threads.
        if quiet["backend"] == "host":
            crowded = json.loads(run("taskset", "-c", str(min(os.sched_getaffinity(0))), program, "--json", "--no-rates",
                                     OMP_NUM_THREADS="2", **apart).stdout)
            assert crowded["host"]["usable_processors"] == 1
            assert [check["verdict"] for check in crowded["checks"] if check["name"] == "processors"] == ["warning"]
            run("taskset", "-c", str(min(os.sched_getaffinity(0))), program, "--strict", "--no-rates", expect=2,
                OMP_NUM_THREADS="2", **apart)

    assert measured["ferry"] in run(program, "--version").stdout
    assert "--json" in run(program, "--help").stdout
    for wrong in (["--mib", "0"], ["--device", "-1"], ["--bogus"]):
        done = subprocess.run([program, *wrong], capture_output=True, text=True, check=False)
        assert done.returncode not in (0, 1) and wrong[0] in done.stderr + done.stdout, done


if __name__ == "__main__":
    main()
