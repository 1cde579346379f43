#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden files of the tests of ferry/io: needs numpy, ml_dtypes and safetensors.

But for 8-bit floating-point numbers, the values are those of the function `values` in tests/io/io_kit.hpp: element i of an array is i * 3 % 11 - 4, or without the
- 4 for unsigned types and booleans.
"""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import safetensors.numpy
from numpy.lib import format as npy

HERE = Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
HERE = HERE if HERE.is_dir() else HERE.parent


def values(shape, dtype):
    size = int(np.prod(shape, dtype=np.int64))
    signed = np.arange(size, dtype=np.int64) * 3 % 11
    if np.dtype(dtype).kind not in "ub":
        signed = signed - 4
    return signed.astype(dtype).reshape(shape)


def write(name, array, version=(1, 0)):
    with open(HERE / name, "wb") as to:
        npy.write_array(to, array, version=version)


def main():
    write("f4.npy", values((5, 3), np.float32))
    write("f4_fortran.npy", np.asfortranarray(values((5, 3), np.float32)))
    write("f8_fortran_3d.npy", np.asfortranarray(values((4, 3, 5), np.float64)), (2, 0))
    write("f2.npy", values((5, 3), np.float16))
    write("bf16.npy", values((5, 3), ml_dtypes.bfloat16))
    write("b1.npy", values((5, 3), np.bool_))
    for name in ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"]:  # every code, and one more
        write(name + ".npy", (np.arange(257) % 256).astype(np.uint8).view(getattr(ml_dtypes, name)))
    for name in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]:
        write(name + ".npy", values((7,), name))
    write("f4_big.npy", values((5, 3), ">f4"))
    write("scalar.npy", np.float32(3).reshape(()))
    write("empty.npy", np.zeros((0, 3), np.float32))
    point = np.dtype([("x", "<f4"), ("id", "<i8")], align=True)
    records = np.zeros(4, point)
    records["x"] = values((4,), np.float32)
    records["id"] = values((4,), np.int64)
    write("struct.npy", records)
    unicode = np.dtype([("größe", "<f4"), ("n", "<i4", (2,))])
    write("struct_v3.npy", np.zeros(2, unicode), (3, 0))
    objects = np.array([None, 1], dtype=object)
    with open(HERE / "objects.npy", "wb") as to:
        npy.write_array(to, objects, allow_pickle=True)

    tensors = {
        "w": values((5, 3), np.float32),
        "bias": values((3,), np.float64),
        "half": values((5, 3), np.float16),
        "brain": values((5, 3), ml_dtypes.bfloat16),
        "flags": values((7,), np.bool_),
        "i8": values((7,), np.int8),
        "u8": values((7,), np.uint8),
        "i16": values((7,), np.int16),
        "u16": values((7,), np.uint16),
        "i32": values((7,), np.int32),
        "u32": values((7,), np.uint32),
        "i64": values((7,), np.int64),
        "u64": values((7,), np.uint64),
        "größe \"x\"\n": values((1,), np.float32),
        "one": np.array(-4, np.float32),
        "none": np.zeros((0, 3), np.float32),
        "cube": values((4, 3, 5), np.float32),
    }
    safetensors.numpy.save_file(tensors, HERE / "all.safetensors", {"format": "pt"})


if __name__ == "__main__":
    main()
