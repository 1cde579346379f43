#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The hit rate that no choice of rows by the counts of past batches can exceed, over that of the most popular rows.

Batches by Zipf's law as in cache.cpp. The rows named most often so far are cached; their share of the next batch is
computed from the law, not sampled. Then the same for steps, which move each different row once: the different rows of a
batch over those that are not cached. Needs NumPy and 1 GB.
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
    draws = numpy.random.default_rng(chosen.seed)

    def batch(n: int, rows: int) -> numpy.ndarray:
        """Ranks of rows, the most popular first."""
        power = 1 - EXPONENT
        ranks = (1 + draws.random(n) * ((rows + 1.0) ** power - 1)) ** (1 / power)
        return numpy.minimum(ranks.astype(numpy.int64) - 1, rows - 1)

    def counted(n: int, rows: int) -> numpy.ndarray:
        counts = numpy.zeros(rows, numpy.int32)
        for _ in range(chosen.batches):
            counts += numpy.bincount(batch(n, rows), minlength=rows).astype(numpy.int32)
        return counts

    def named_most(counts: numpy.ndarray, cached: int) -> numpy.ndarray:
        if numpy.count_nonzero(counts) <= cached:
            return numpy.nonzero(counts)[0]
        return numpy.argpartition(-counts, cached - 1)[:cached]

    rows = chosen.rows
    upto = ((numpy.arange(rows) + 2.0) ** (1 - EXPONENT) - 1) / ((rows + 1.0) ** (1 - EXPONENT) - 1)
    share = numpy.diff(upto, prepend=0.0)
    for n in (131072, 1048576):
        counts = counted(n, rows)
        for percent in (1, 10):
            cached = rows * percent // 100
            ideal, reached = upto[cached - 1], share[named_most(counts, cached)].sum()
            print(f"n {n}, {percent} % of the rows: ideal {ideal:.4f}, {numpy.count_nonzero(counts)} rows named, "
                  f"at most {reached:.4f}: {reached / ideal:.3f}")

    rows, n = chosen.rows // 3, 131072  # two moments next to each row
    counts = counted(n, rows)
    different = numpy.unique(batch(n, rows))
    for percent in (1, 10):
        cached = rows * percent // 100
        is_cached = numpy.zeros(rows, bool)
        is_cached[named_most(counts, cached)] = True
        print(f"steps, {percent} % of {rows} rows: {different.size} different rows, {different.size / (different >= cached).sum():.2f} "
              f"times those that the most popular leave, {different.size / (~is_cached[different]).sum():.2f} times those left by counts")


if __name__ == "__main__":
    main()
