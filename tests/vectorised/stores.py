#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails unless the kernels of a PTX file that are named store whole packets: 16 bytes at a time, and no element alone."""

import re
import sys

ENTRY = re.compile(r"\.entry (\w+)\((.*?)\n\}\n", re.S)
STORE = re.compile(r"^\s*(?:@!?%p\d+ )?st\.((?:[\w:]+\.)*?)(v8\.|v4\.|v2\.)?[bfsu](\d+)\s", re.M)
ELSEWHERE = re.compile(r"\b(?:shared|local|param)\b")


def stores_of(listing, kernel):
    """Sizes in bytes of the stores to global memory of each kernel whose mangled name holds the word."""
    found = {}
    for entry in ENTRY.finditer(listing):
        if kernel in entry[1]:
            found[entry[1]] = [
                int(store[3]) // 8 * {None: 1, "v2.": 2, "v4.": 4, "v8.": 8}[store[2]]
                for store in STORE.finditer(entry[2])
                if not ELSEWHERE.search(store[1])
            ]
    return found


def stores_packets(sizes):
    return bool(sizes) and all(size == 16 for size in sizes)


def self_test():
    whole = ".visible .entry _Z4step(\n)\n{\n\tst.global.v4.f32 \t[%rd1], {%f1, %f2, %f3, %f4};\n\tst.shared.u64 \t[x], %rd2;\n}\n"
    assert stores_of(whole, "step") == {"_Z4step": [16]}
    assert stores_of(whole, "other") == {}
    assert all(map(stores_packets, stores_of(whole, "step").values()))
    halves = whole.replace("v4.f32", "v2.u64")
    assert all(map(stores_packets, stores_of(halves, "step").values()))
    single = whole.replace("}\n", "\t@%p1 st.global.f32 \t[%rd1+4], %f2;\n}\n", 1)
    assert stores_of(single, "step")["_Z4step"][-1] == 4
    assert not any(map(stores_packets, stores_of(single, "step").values()))
    hinted = single.replace("st.global.f32", "st.global.L1::no_allocate.f32")
    assert stores_of(hinted, "step") == stores_of(single, "step")
    assert not stores_packets([])


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    path, kernel = sys.argv[1:]
    with open(path, encoding="utf-8") as listing:
        found = stores_of(listing.read(), kernel)
    for name, sizes in found.items():
        print(f"{'packets' if stores_packets(sizes) else 'NOT PACKETS'}: stores of {sizes} bytes: {name[:150]}")
    if not found or not all(map(stores_packets, found.values())):
        sys.exit("some of them do not")


main()
