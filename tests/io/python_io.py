#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python half of python_io_test.cpp: NumPy, ml_dtypes and safetensors against ferry.

    python_io.py FOLDER   checks the files that ferry wrote there, then writes files for ferry

Next to each array lies a file .raw with its elements in row-major order. Ends with 77 where the packages are missing.
"""

import sys
from pathlib import Path

try:
    import ml_dtypes
    import numpy as np
    import safetensors
    import safetensors.numpy
    from numpy.lib import format as npy
    from safetensors import safe_open
except ImportError as missing:
    print(missing)
    sys.exit(77)

NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


# Of ml_dtypes. NumPy takes them for records of a byte, and its safetensors can't load them.
BYTES = {"float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0"}


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" or name in BYTES else np.dtype(name)


def check(folder):
    """Files "ferry_<dtype>.npy" and ferry.safetensors."""
    found = sorted(folder.glob("ferry_*.npy"))
    assert len(found) >= 13, found
    for path in found:
        name = path.stem.split("_", 1)[1]
        raw = path.with_suffix(".raw").read_bytes()
        array = np.load(path)
        if name == "bfloat16":
            assert array.dtype == np.dtype("V2"), array.dtype
            array = array.view(ml_dtypes.bfloat16)
        if name in BYTES:
            assert array.dtype == np.dtype("V1"), array.dtype
            array = array.view(dtype_of(name))
        if name == "struct":
            array = array.view(np.dtype([("x", "<f4"), ("id", "<i8")], align=True))
        else:
            assert array.dtype == dtype_of(name), (path, array.dtype)
        assert array.flags.c_contiguous and array.shape == (1031, 3), (path, array.shape)
        assert array.tobytes() == raw, path
        mapped = np.load(path, mmap_mode="r")
        assert mapped.shape == array.shape and mapped.tobytes() == raw, path
        with open(path, "rb") as file:  # NumPy writes the same bytes
            original = npy.read_magic(file)
            assert original == (1, 0)
            assert file.seek(0) == 0 and len(file.read()) % 64 == (len(raw) % 64), path
    tensors = safetensors.numpy.load_file(folder / "ferry.safetensors")
    with safe_open(folder / "ferry.safetensors", "np") as file:
        assert file.metadata() == {"made by": "ferry \u2708"}, file.metadata()
        assert set(file.keys()) == set(tensors)
        part = file.get_slice("float64")[100:200]
        assert part.tobytes() == tensors["float64"][100:200].tobytes()
    with open(folder / "ferry_fp8.safetensors", "rb") as file:
        parts = dict(safetensors.deserialize(file.read()))
    assert set(parts) == {*BYTES, "float4_e2m1fn_x2"}, set(parts)
    for name, part in parts.items():
        assert part["dtype"] == BYTES.get(name, "F4"), part["dtype"]
        assert part["shape"] == [1031, 3 if name in BYTES else 6], part["shape"]
        assert bytes(part["data"]) == (folder / f"ferry_{name}.raw").read_bytes(), name
    assert len(tensors) == len(found) - 1 - len(BYTES), (len(tensors), len(found))
    for name, array in tensors.items():
        assert array.dtype == dtype_of(name) and array.shape == (1031, 3), (name, array.dtype)
        assert array.tobytes() == (folder / f"ferry_{name}.raw").read_bytes(), name


def write(folder):
    """Files "numpy_<dtype>_<version><order>.npy" and python.safetensors."""
    random = np.random.default_rng()
    tensors = {}
    for name in NUMBERS + ["bfloat16", "bool"]:
        dtype = dtype_of(name)
        for version in (1, 2, 3):
            for order in "CF":
                shape = (33, 5, 7) if order == "F" else (257, 3)
                size = int(np.prod(shape)) * dtype.itemsize
                # Any bits: also not a number, in any of its forms.
                bits = random.integers(0, 2 if name == "bool" else 256, size, np.uint8)
                array = bits.view(dtype).reshape(shape)
                path = folder / f"numpy_{name}_{version}{order}.npy"
                with open(path, "wb") as to:
                    npy.write_array(to, np.asfortranarray(array) if order == "F" else array, version=(version, 0))
                path.with_suffix(".raw").write_bytes(array.tobytes())
                tensors[name] = array
    safetensors.numpy.save_file(tensors, folder / "python.safetensors")
    arrays = {}
    for name in BYTES:
        array = random.integers(0, 256, (257, 3), np.uint8).view(dtype_of(name))
        np.save(folder / f"numpy_{name}.npy", array)
        (folder / f"numpy_{name}.raw").write_bytes(array.tobytes())
        arrays[name] = array
    safetensors.numpy.save_file(arrays, folder / "python_fp8.safetensors")
    for name, array in tensors.items():
        (folder / f"python_{name}.raw").write_bytes(array.tobytes())


def main():
    folder = Path(sys.argv[1])
    check(folder)
    write(folder)


if __name__ == "__main__":
    main()
