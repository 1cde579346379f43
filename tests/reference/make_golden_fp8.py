#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what ml_dtypes makes of numbers of 8 and 4 bits, for tests/tensor/fp8_test.cpp.

    make_golden_fp8.py [DIRECTORY]   needs ml_dtypes; writes to golden_fp8/ next to this file unless told otherwise

A file for each format holds the value of each code (bits of a float), the codes of floats at and next to every tie and
at other edges, and FNV-1a hashes of the codes of many numbers: of all 65536 halves, and of 2^20 floats of any bits and
2^20 floats of magnitudes from 2^-20 to 2^21, a hash for each 65536. The floats are formulas, the same here and in the
test. ml_dtypes does not saturate, except to numbers of 4 bits. Left out are NaN to 4 bits, for which ml_dtypes has the
codes of zeros, and floats below 2^-126 to e8m0, which it rounds up from 1.25 * 2^-127.
"""

import pathlib
import sys

import ml_dtypes
import numpy as np

FORMATS = {"float8_e4m3fn": 256, "float8_e5m2": 256, "float8_e8m0fnu": 256, "float4_e2m1fn": 16}
COUNT = 1 << 20
BLOCK = 1 << 16


def scrambled(count):
    """The finalizer of SplitMix64, of 0 to count - 1."""
    key = np.arange(count, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


def any_floats():
    return scrambled(COUNT).astype(np.uint32).view(np.float32)


def middle_floats():
    key = scrambled(2 * COUNT)[COUNT:]
    exponents = ((key >> np.uint64(32)) % np.uint64(41) + np.uint64(107)).astype(np.uint32)
    return ((key.astype(np.uint32) & np.uint32(0x807FFFFF)) | exponents << np.uint32(23)).view(np.float32)


def halves():
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def is_compared(name, floats):
    if name == "float4_e2m1fn":
        return ~np.isnan(floats)
    if name == "float8_e8m0fnu":
        magnitude = np.abs(floats)
        return ~((magnitude > 0) & (magnitude < np.float32(2.0**-126)))
    return np.full(floats.shape, True)


def codes_of(name, floats):
    with np.errstate(all="ignore"):
        return floats.astype(getattr(ml_dtypes, name)).view(np.uint8)


def hash_of(name, floats):
    value = 0xCBF29CE484222325
    for code in codes_of(name, floats)[is_compared(name, floats)].tobytes():
        value = ((value ^ code) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def edges(values):
    """Every value and every tie of two neighbours, with the floats next to them, of both signs."""
    finite = np.unique(np.abs(values[np.isfinite(values)]).astype(np.float64))
    with np.errstate(all="ignore"):
        ties = (finite[:-1] + finite[1:]) / 2
        end = finite[-1] + (finite[-1] - finite[-2]) / 2
        points = np.concatenate([finite, ties, [end, 2 * finite[-1], 0.0]]).astype(np.float32)
        limits = np.finfo(np.float32)
        points = np.concatenate([
            points, np.nextafter(points, np.float32(0)), np.nextafter(points, np.float32(np.inf)),
            np.array([np.inf, np.nan, limits.max, limits.tiny, limits.smallest_subnormal, 0.1, 1.0, 1e5], np.float32)])
    points = points[~np.isnan(points)]
    both = np.concatenate([points, -points, np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)])
    return np.unique(both.view(np.uint32)).view(np.float32)


def write(path, name, count):
    values = np.arange(count, dtype=np.uint8).view(getattr(ml_dtypes, name)).astype(np.float32)
    lists = [("values", [f"{bits:08x}" for bits in values.view(np.uint32)])]
    floats = edges(values)
    floats = floats[is_compared(name, floats)]
    words = [f"{bits:08x}:{code:02x}" for bits, code in zip(floats.view(np.uint32), codes_of(name, floats))]
    lists.append(("edges", words))
    for label, many in (("halves", halves()), ("any", any_floats()), ("middle", middle_floats())):
        lists.append((label, [hash_of(name, many[i:i + BLOCK]) for i in range(0, len(many), BLOCK)]))
    lines = [f"# ml_dtypes {ml_dtypes.__version__}"] + [f"{label} {len(words)} {' '.join(words)}" for label, words in lists]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    here = pathlib.Path(__file__).resolve().parent
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "golden_fp8"
    directory.mkdir(parents=True, exist_ok=True)
    for name, count in FORMATS.items():
        write(directory / f"{name}.txt", name, count)
    print(f"{len(FORMATS)} formats of ml_dtypes {ml_dtypes.__version__} in {directory}")


if __name__ == "__main__":
    main()
