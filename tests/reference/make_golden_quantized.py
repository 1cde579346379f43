#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes codes, scales and values of quantized rows, for tests/quantized/quantized_golden_test.cpp.

    make_golden_quantized.py [DIRECTORY]   needs ml_dtypes; writes to golden_quantized/ next to this file unless told otherwise

The formulas, in float32 by NumPy, with ml_dtypes for the conversions:

    e4m3, e5m2          torchao's _quantize_affine_float8: quotient, clamp, cast
    per_row             torchao's _choose_scale_float8 for each row, then the same
    mxfp8, mxfp8_e5m2, mxfp4
                        torchao's to_mx with ScaleCalculationMode.FLOOR; if the scale is 2^-127, numbers are divided by it as
                        the OCP microscaling specification 1.0 says, and not by 2^-126
    nvfp4               torchao's nvfp4_quantize with a per-tensor scale

Left to ferry, because NumPy's and CUDA's bits differ or the formulas are silent: NaN of a quotient has the sign of the number;
numbers of a row with the scale 0 become 0; NaN becomes 6 in E2M1.
"""

import pathlib
import sys

import ml_dtypes
import numpy as np

WIDTH = 64
F = np.float32
TENSOR_SCALE = {"e4m3": F(0.0123), "e5m2": F(3e-4), "nvfp4": F(0.37)}


def rows():
    random = np.random.default_rng(42)
    result = [random.standard_normal(WIDTH).astype(F) * F(2.0) ** int(k) for k in (0, 0, 0, 5, -5, 20, -20, 60, -60, 100, -100)]
    bits = random.integers(0, 1 << 32, (6, WIDTH), dtype=np.uint64).astype(np.uint32).view(F)
    result += [np.where(np.isfinite(row), row, F(1)) for row in bits]
    exponents = random.integers(-12, 12, (6, WIDTH))
    result += [(random.integers(-64, 65, WIDTH) / 16).astype(F) * (F(2.0) ** e).astype(F) for e in exponents]  # many ties
    result += [random.integers(0, 1 << 23, WIDTH).astype(np.uint32).view(F) for _ in range(2)]  # below 2^-126
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.17549435e-38, 3.4028235e38, -3.4028235e38, 448, 449, 464, 465,
               480, 6, 7, 57344, 61440, 2.0 ** -118, 2.0 ** -119, 2.0 ** -120, 2.0 ** -127, 2.0 ** -125]
    for number in special:
        row = random.standard_normal(WIDTH).astype(F) if np.isnan(number) or np.isinf(number) else np.zeros(WIDTH, F)
        row[5] = F(number)
        result.append(row)
    result.append(np.full(WIDTH, F(-0.0)))
    result.append(np.full(WIDTH, F(3.0)))
    for numbers in ([np.nan, np.inf, -np.inf], [np.inf, -np.inf, 0.0], [3.4e38, 1e-45, -1.0]):
        row = np.tile(np.array(numbers + [1.0], F), WIDTH // 4)
        result.append(row)
    negative = np.ones(WIDTH, F)
    negative[40] = np.array([0xFFC00001], np.uint32).view(F)[0]
    result.append(negative)
    return np.stack(result)


def signed(values, like):
    """NaN with the sign of the number."""
    return np.where(np.isnan(values), np.copysign(F(np.nan), like), values).astype(F)


def fp8(values, dtype):
    most = F(ml_dtypes.finfo(dtype).max)
    return np.where(np.isnan(values), values, np.clip(values, -most, most)).astype(F).astype(dtype).view(np.uint8)


def fp4(values):
    codes = np.clip(np.where(np.isnan(values), F(6), values), F(-6), F(6)).astype(F).astype(ml_dtypes.float4_e2m1fn)
    return np.where(np.isnan(values), 7, codes.view(np.uint8) & 0xF).astype(np.uint8)


def quotient(values, step):
    step = np.broadcast_to(step, values.shape)
    return np.where(step == 0, np.copysign(F(0), values), signed(values / step, values)).astype(F)


def scaled_by_table(values, dtype, name):
    codes = fp8(quotient(values, TENSOR_SCALE[name]), dtype)
    return codes, None, codes.view(dtype).astype(F) * TENSOR_SCALE[name]


def scaled_by_rows(values, dtype):
    scale = np.abs(values).max(1, keepdims=True) / F(ml_dtypes.finfo(dtype).max)
    codes = fp8(quotient(values, scale), dtype)
    return codes, scale.astype(F).view(np.uint8), codes.view(dtype).astype(F) * scale


def microscaled(values, exponent, encode, decode):
    blocks = values.reshape(len(values), -1, 32)
    largest = np.abs(blocks).max(2, keepdims=True)
    code = np.clip(((largest.view(np.int32) >> 23) & 0xFF) - exponent, 0, 254)
    code = np.where(np.isnan(largest), 255, code).astype(np.uint8)
    step = code.view(ml_dtypes.float8_e8m0fnu).astype(F)
    # A scale of NaN divides as infinity does.
    codes = encode(signed(np.where(code == 255, blocks / F(np.inf), blocks / step), blocks))
    return codes.reshape(values.shape), code.reshape(len(values), -1), (decode(codes) * step).reshape(values.shape)


def nvfp4(values):
    table = TENSOR_SCALE["nvfp4"]
    blocks = values.reshape(len(values), -1, 16)
    largest = np.abs(blocks).max(2, keepdims=True)
    scale = np.clip(largest / F(6) / table, F(2.0 ** -6), F(448)).astype(ml_dtypes.float8_e4m3fn)
    step = table * scale.astype(F)
    codes = fp4(quotient(blocks, step))
    return codes.reshape(values.shape), scale.view(np.uint8).reshape(len(values), -1), (value4(codes) * step).reshape(values.shape)


def value4(codes):
    return codes.view(ml_dtypes.float4_e2m1fn).astype(F)


def packed(codes):
    return codes[:, 0::2] | codes[:, 1::2] << 4


def all_of(values):
    e4m3, e5m2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
    yield "e4m3", *scaled_by_table(values, e4m3, "e4m3")
    yield "e5m2", *scaled_by_table(values, e5m2, "e5m2")
    yield "per_row_e4m3", *scaled_by_rows(values, e4m3)
    yield "per_row_e5m2", *scaled_by_rows(values, e5m2)
    yield "mxfp8", *microscaled(values, 8, lambda x: fp8(x, e4m3), lambda c: c.view(e4m3).astype(F))
    yield "mxfp8_e5m2", *microscaled(values, 15, lambda x: fp8(x, e5m2), lambda c: c.view(e5m2).astype(F))
    codes, scales, numbers = microscaled(values, 2, fp4, value4)
    yield "mxfp4", packed(codes), scales, numbers
    codes, scales, numbers = nvfp4(values)
    yield "nvfp4", packed(codes), scales, numbers


def hash_of(numbers):
    """FNV-1a of the bits of floats; NaN counts as 0x7fc00000."""
    value = 0xCBF29CE484222325
    for byte in np.where(np.isnan(numbers), F(np.nan), numbers).astype(F).tobytes():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def write(path, rows):
    path.write_text("\n".join(" ".join(rows[i:i + 11]) for i in range(0, len(rows), 11)) + "\n", encoding="utf-8")


def main():
    here = pathlib.Path(__file__).resolve().parent
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "golden_quantized"
    directory.mkdir(parents=True, exist_ok=True)
    values = rows()
    words = ["".join(f"{bits:08x}" for bits in row) for row in values.view(np.uint32)]
    write(directory / "rows.txt", words)
    with np.errstate(all="ignore"):
        for name, codes, scales, numbers in all_of(values):
            lines = [f"{codes[r].tobytes().hex()} {scales[r].tobytes().hex() if scales is not None else '-'} {hash_of(numbers[r])}"
                     for r in range(len(values))]
            write(directory / f"{name}.txt", lines)
    print(f"{len(values)} rows by ml_dtypes {ml_dtypes.__version__} in {directory}")


if __name__ == "__main__":
    main()
