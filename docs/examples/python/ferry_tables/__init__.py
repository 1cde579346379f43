# SPDX-License-Identifier: Apache-2.0
"""Tables of ferry for PyTorch, CuPy and NumPy: rows in device, pinned, mapped or pageable memory.

Arrays come and go by DLPack, without copies. Indices are int64, rows are float32. Errors are IndexError (a row that the
table does not have), ValueError (shapes, types, strides), MemoryError and OSError.
"""

import atexit
import sys

from . import _ferry

__all__ = ["Table", "Optimizer", "load", "backend"]

backend = _ferry.backend()  # "cuda", or "host"
atexit.register(_ferry._finalize)

_CPU, _CUDA, _MANAGED = 1, 2, 13  # device types of DLPack


def _current_stream(*arrays):
    """The number of the stream that the first array's library uses now; 1, the default stream, for host memory."""
    for array in arrays:
        library = type(array).__module__.partition(".")[0]
        if library == "torch" and array.is_cuda:
            return sys.modules["torch"].cuda.current_stream(array.device).cuda_stream or 1
        if library == "cupy":
            return sys.modules["cupy"].cuda.get_current_stream().ptr or 1
    return 1


def _number(stream, *arrays):
    if stream is None:
        return _current_stream(*arrays)
    for attribute in ("cuda_stream", "ptr"):  # torch's and CuPy's streams
        stream = getattr(stream, attribute, stream)
    return int(stream) or 1


def _capsule(array, stream):
    """An array's DLPack capsule. Its library makes `stream` wait for what it has given its own stream so far."""
    if hasattr(array, "detach"):
        array = array.detach()
    arguments = {"stream": stream} if array.__dlpack_device__()[0] == _CUDA else {}
    try:
        return array.__dlpack__(max_version=(1, 1), **arguments)
    except TypeError:  # from before DLPack 1.0
        return array.__dlpack__(**arguments)


def _empty_like(array, rows, width):
    """Uninitialised float32 rows of the array's library, next to the array."""
    library = type(array).__module__.partition(".")[0]
    if library == "torch":
        torch = sys.modules["torch"]
        return torch.empty((rows, width), dtype=torch.float32, device=array.device)
    arrays = sys.modules["cupy"] if library == "cupy" else __import__("numpy")
    return arrays.empty((rows, width), dtype="float32")


class Table:
    """rows x width floats in `space`: "device", "pinned", "mapped" or "pageable"."""

    def __init__(self, rows, width, *, space="mapped", label="table", _table=None):
        self._table = _table or _ferry.make_table(space, label, rows, width)
        self.space = space

    @property
    def shape(self):
        return self._table.rows, self._table.width

    @property
    def address(self):
        return self._table.address

    def __len__(self):
        return self._table.rows

    def __repr__(self):
        return f"<ferry table {self._table.describe()}>"

    def zeros(self):
        self._table.zeros()
        return self

    def uniform(self, low, high, *, seed):
        self._table.uniform(low, high, seed)
        return self

    # Verbs. They run on `stream`, by default the current one of the arrays' library. With wait=False they return a
    # ticket, which keeps the arrays: wait() raises what was wrong, then(stream) makes another stream come later.

    def gather(self, indices, out=None, *, stream=None, wait=True):
        """out[p] = table[indices[p]]. Returns out, which is made like the indices where none is given."""
        if out is None:
            out = _empty_like(indices, len(indices), self._table.width)
        ticket = self._run(self._table.gather, stream, indices, out)
        if not wait:
            return out, ticket
        ticket.wait()
        return out

    def scatter(self, indices, rows, *, stream=None, wait=True):
        """table[indices[p]] = rows[p]. Of rows that are named twice the last one stays."""
        return self._write(self._table.scatter, indices, rows, stream, wait)

    def scatter_add(self, indices, rows, *, stream=None, wait=True):
        """table[indices[p]] += rows[p], in the order of p."""
        return self._write(self._table.scatter_add, indices, rows, stream, wait)

    def _write(self, verb, indices, rows, stream, wait):
        ticket = self._run(verb, stream, indices, rows)
        if not wait:
            return ticket
        ticket.wait()

    @staticmethod
    def _run(verb, stream, indices, rows):
        number = _number(stream, rows, indices)
        return verb(number, _capsule(indices, number), _capsule(rows, number))

    # The whole table for another library, without a copy: torch.from_dlpack(table), numpy.from_dlpack(table). Host
    # memory that the GPU reaches is page-locked or managed memory to DLPack, which few libraries take; on("cuda") and
    # on("cpu") show it as theirs.

    def __dlpack_device__(self):
        return self._table.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy:
            raise BufferError("a table is shared, not copied")
        device = dl_device or self._table.device
        if device[0] == _CUDA and stream is None:
            stream = 1
        versioned = max_version is not None and max_version[0] >= 1
        # Without a stream, which readers on the host have none of, the call waits for verbs in flight.
        return self._table.share(versioned, stream if device[0] in (_CUDA, _MANAGED) else None,
                                 None if dl_device is None else (int(device[0]), int(device[1])))

    def on(self, device):
        """This table, shown as memory of "cuda" or "cpu"."""
        return _Shown(self, (_CPU, 0) if device == "cpu" or backend == "host" else (_CUDA, 0))

    def save(self, path):
        """Writes a .npy file."""
        self._table.save(str(path))


class _Shown:
    def __init__(self, table, device):
        self._shown = table
        self._device = device

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self._shown.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device or self._device,
                                      copy=copy)


class Optimizer:
    """A rule, "sgd", "adagrad" or "sparse_adam" of torch.optim, with its state for one table, next to it."""

    def __init__(self, table, rule, *, lr):
        self._optimizer = table._table.optimizer(rule, lr)
        self.table = table

    @property
    def lr(self):
        return self._optimizer.lr

    @lr.setter
    def lr(self, lr):
        self._optimizer.lr = lr

    def step(self, indices, gradients, *, stream=None, wait=True):
        """One step on the rows that the indices name, in place; gradients of the same row are summed."""
        ticket = Table._run(self._optimizer.step, stream, indices, gradients)
        if not wait:
            return ticket
        ticket.wait()


def load(path, *, space="mapped", label=None):
    """A table with the content of a .npy file of float32."""
    return Table(0, 0, space=space, _table=_ferry.load_table(space, label or str(path), str(path)))
