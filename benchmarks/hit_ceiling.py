#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The hit rate that no choice of rows by the counts of past batches can exceed, over that of the most popular rows.

Batches by Zipf's law as in cache.cpp. The rows named most often so far are cached; their share of the next batch is
computed from the law, not sampled. Needs NumPy and 1 GB.
"""
import argparse

import numpy

EXPONENT = 1.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=16 * 2**30 // 512)
    parser.add_argument("--batches", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    rows, power = chosen.rows, 1 - EXPONENT
    draws = numpy.random.default_rng(chosen.seed)
    last = (rows + 1.0) ** power - 1
    upto = ((numpy.arange(rows) + 2.0) ** power - 1) / last
    share = numpy.diff(upto, prepend=0.0)
    for n in (131072, 1048576):
        counts = numpy.zeros(rows, numpy.int32)
        for _ in range(chosen.batches):
            ranks = (1 + draws.random(n) * last) ** (1 / power)
            counts += numpy.bincount(numpy.minimum(ranks.astype(numpy.int64) - 1, rows - 1), minlength=rows).astype(numpy.int32)
        named = numpy.count_nonzero(counts)
        for percent in (1, 10):
            cached = rows * percent // 100
            most = numpy.argpartition(-counts, cached - 1)[:cached] if named > cached else numpy.nonzero(counts)[0]
            ideal, reached = upto[cached - 1], share[most].sum()
            print(f"n {n}, {percent} % of the rows: ideal {ideal:.4f}, {named} rows named, at most {reached:.4f}: {reached / ideal:.3f}")


if __name__ == "__main__":
    main()
