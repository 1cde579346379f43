#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a safetensors file with quantized tables, named and shaped as four exporters do, decodes it by the formulas of these
formats, and compares what the program prints.

    check.py PROGRAM
"""

import json
import math
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

FP4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def as_float(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def e4m3(code):
    exponent, mantissa = code >> 3 & 15, code & 7
    magnitude = mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
    return math.copysign(magnitude, -1.0 if code & 128 else 1.0)


def e2m1(code):
    return math.copysign(FP4[code & 7], -1.0 if code & 8 else 1.0)


def bfloat16(number):
    return struct.pack("<f", number)[2:]


def codes(number):
    """Bytes none of which is NaN as E4M3."""
    return bytes(random.choice([c for c in range(256) if c & 127 != 127]) for _ in range(number))


def nibbles(row):
    return [nibble for byte in row for nibble in (byte & 15, byte >> 4)]


def rows_of(data, width):
    return [data[begin:begin + width] for begin in range(0, len(data), width)]


def tables():
    """Yields (tensors by name, label, rows of numbers)."""
    rows, width = 5, 48
    weight, scales = codes(rows * width), [2.0 ** random.randint(-8, -3) * 1.5 for _ in range(rows)]
    yield ({"rows.weight": ("F8_E4M3", [rows, width], weight),
            "rows.weight_scale": ("BF16", [rows, 1], b"".join(map(bfloat16, scales)))}, "rows",
           [[as_float(e4m3(c) * scale) for c in row] for row, scale in zip(rows_of(weight, width), scales)])

    weight, scales, factor = codes(rows * width // 2), bytes(random.randrange(1, 127) for _ in range(rows * width // 16)), as_float(0.003)
    numbers = []
    for row, own in zip(rows_of(weight, width // 2), rows_of(scales, width // 16)):
        numbers.append([as_float(e2m1(c) * as_float(factor * e4m3(own[i // 16]))) for i, c in enumerate(nibbles(row))])
    yield ({"nvfp4.weight": ("U8", [rows, width // 2], weight), "nvfp4.weight_scale": ("F8_E4M3", [rows, width // 16], scales),
            "nvfp4.weight_scale_2": ("F32", [], struct.pack("<f", factor))}, "nvfp4", numbers)

    experts, rows, width = 2, 3, 64
    blocks, scales = codes(experts * rows * width // 2), bytes(random.randrange(110, 130) for _ in range(experts * rows * width // 32))
    numbers = []
    for row, own in zip(rows_of(blocks, width // 2), rows_of(scales, width // 32)):
        numbers.append([e2m1(c) * 2.0 ** (own[i // 32] - 127) for i, c in enumerate(nibbles(row))])
    yield ({"mxfp4_blocks": ("U8", [experts, rows, width // 32, 16], blocks),
            "mxfp4_scales": ("U8", [experts, rows, width // 32], scales)}, "mxfp4", numbers)

    rows, width = 200, 256
    weight, scales = codes(rows * width), [as_float(random.uniform(1e-4, 1e-3)) for _ in range(2 * 2)]
    yield ({"blocks.weight": ("F8_E4M3", [rows, width], weight),
            "blocks.weight_scale_inv": ("F32", [2, 2], struct.pack("<4f", *scales))}, "blocks",
           [[as_float(e4m3(c) * scales[r // 128 * 2 + i // 128]) for i, c in enumerate(row)]
            for r, row in enumerate(rows_of(weight, width))])


def write(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    random.seed(1)
    tensors, expected = {}, {}
    for own, label, numbers in tables():
        tensors |= own
        expected |= {f"{label}[{len(numbers) - 1}]": numbers[-1], f"{label}[0]": numbers[0]}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "model.safetensors", tensors)
        ran = subprocess.run([sys.argv[1], str(Path(folder) / "model.safetensors")], text=True, capture_output=True, check=False)
    printed = {words[0]: [as_float(float(word)) for word in words[1:]] for words in (line.split() for line in ran.stdout.splitlines()) if words}
    wrong = [name for name, numbers in expected.items() if printed.get(name) != numbers]
    if ran.returncode != 0 or wrong or len(printed) != len(expected):
        sys.exit(f"wrong rows: {wrong}\n{ran.stdout[:2000]}{ran.stderr}")
    print(f"{len(expected)} rows of {len(expected) // 2} tables are right")


if __name__ == "__main__":
    main()
