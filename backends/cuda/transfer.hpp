// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture.hpp"
#include "detail/copy_streams.hpp"
#include "detail/device_use.hpp"
#include "detail/page_locking.hpp"
#include "device.hpp"
#include "error.hpp"

#include "../host/transfer.hpp"

#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <cstddef>

namespace ferry::cuda {

struct transfer_functions {
  static void copy_async(const Kokkos::Cuda& exec, const char*, void* target, const void* source,
                         std::size_t bytes) {
    const device_guard guard(exec);
    copy_pieces(target, source, bytes, cudaMemcpyDefault, exec.cuda_stream());
  }
  /// Copies memory of another device to memory of the instance's own: over their link if they have one,
  /// else the runtime takes it through host memory.
  static void copy_from_device_async(const Kokkos::Cuda& exec, const char* label, void* target,
                                     const void* source, int from_device, std::size_t bytes) {
    const int device = exec.cuda_device();
    if (from_device < 0 || from_device == device) return copy_async(exec, label, target, source, bytes);
    static_cast<void>(device_use::get().connect(device, from_device));
    const device_guard guard(exec);
    check(cudaMemcpyPeerAsync(target, device, source, from_device, bytes, exec.cuda_stream()),
          "cudaMemcpyPeerAsync");
  }
  /// Copies rows at equal distances: one 2-d or 3-d transfer, or a 2-d one for each slice.
  static void copy_pitched_async(const Kokkos::Cuda& exec, const char* label, const pitched_block& block) {
    if (block.rows * block.slices == 1)
      return copy_async(exec, label, block.target, block.source, block.row_bytes);
    const device_guard guard(exec);
    const cudaStream_t stream = exec.cuda_stream();
    if (spans_pieces(block.target, bytes_from(block, block.target_pitch, block.target_slice)) ||
        spans_pieces(block.source, bytes_from(block, block.source_pitch, block.source_slice))) {
      for (std::size_t s = 0; s < block.slices; ++s)
        for (std::size_t r = 0; r < block.rows; ++r)
          copy_pieces(
              static_cast<char*>(block.target) + s * block.target_slice + r * block.target_pitch,
              static_cast<const char*>(block.source) + s * block.source_slice + r * block.source_pitch,
              block.row_bytes, cudaMemcpyDefault, stream);
      return;
    }
    if (block.slices > 1 && has_whole_slices(block)) {
      cudaMemcpy3DParms parts{};
      parts.srcPtr = make_cudaPitchedPtr(const_cast<void*>(block.source), block.source_pitch, block.row_bytes,
                                         block.source_slice / block.source_pitch);
      parts.dstPtr = make_cudaPitchedPtr(block.target, block.target_pitch, block.row_bytes,
                                         block.target_slice / block.target_pitch);
      parts.extent = make_cudaExtent(block.row_bytes, block.rows, block.slices);
      parts.kind = cudaMemcpyDefault;
      check(cudaMemcpy3DAsync(&parts, stream), "cudaMemcpy3DAsync");
      return;
    }
    for (std::size_t s = 0; s < block.slices; ++s)
      check(cudaMemcpy2DAsync(static_cast<char*>(block.target) + s * block.target_slice, block.target_pitch,
                              static_cast<const char*>(block.source) + s * block.source_slice,
                              block.source_pitch, block.row_bytes, block.rows, cudaMemcpyDefault, stream),
            "cudaMemcpy2DAsync");
  }
  /// The number of transfers that copy_pitched_async needs; 0 if it can't copy the block.
  static std::size_t pitched_transfers(const Kokkos::Cuda& exec, const pitched_block& block) {
    if (block.rows * block.slices == 1) return 1;
    const auto most = static_cast<std::size_t>(attribute(cudaDevAttrMaxPitch, exec.cuda_device()));
    if (block.target_pitch > most || block.source_pitch > most) return 0;
    return has_whole_slices(block) ? 1 : block.slices;
  }
  static void copy_past_caches(void* target, const void* source, std::size_t bytes) {
    host::copy_past_caches(target, source, bytes);
  }
  /// Copies a batch. Its copies may run in any order; the batch as a whole runs in the order of the stream.
  static void copy_batch_async(const Kokkos::Cuda& exec, const char* label, void* const* target,
                               const void* const* source, const std::size_t* bytes, std::size_t count) {
    const device_guard guard(exec);
#if CUDART_VERSION >= 13000
    const cudaStream_t stream = exec.cuda_stream();
    bool in_pieces = true;
    for (std::size_t i = 0; i < count; ++i)
      in_pieces = in_pieces && !spans_pieces(target[i], bytes[i]) && !spans_pieces(source[i], bytes[i]);
    if (count > 1 && in_pieces && stream != nullptr && stream != cudaStreamLegacy) {  // which takes none
      cudaMemcpyAttributes attributes{};
      attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
      std::size_t first = 0;
      check(cudaMemcpyBatchAsync(target, source, bytes, count, &attributes, &first, 1, stream),
            "cudaMemcpyBatchAsync");
      return;
    }
#endif
    for (std::size_t i = 0; i < count; ++i) copy_async(exec, label, target[i], source[i], bytes[i]);
  }
  /// Reads device memory that no work in flight writes. Ordered with no instance: the caller must have waited
  /// for earlier writes. Blocks.
  static void read(void* host, const void* device, std::size_t bytes) {
    copy_now(host, device, bytes, cudaMemcpyDeviceToHost, device_with(device));
  }
  /// Writes device memory that no work in flight uses. Blocks; work that is enqueued later sees the data.
  static void write(void* device, const void* host, std::size_t bytes) {
    copy_now(device, host, bytes, cudaMemcpyHostToDevice, device_with(device));
  }

 private:
  /// The bytes from the first to the last of one side.
  static std::size_t bytes_from(const pitched_block& block, std::size_t pitch, std::size_t slice) {
    return (block.slices - 1) * slice + (block.rows - 1) * pitch + block.row_bytes;
  }
  /// True if slices begin whole rows apart, as a 3-d transfer needs.
  static bool has_whole_slices(const pitched_block& block) {
    return block.slices == 1 ||
           (block.target_slice % block.target_pitch == 0 && block.source_slice % block.source_pitch == 0);
  }
  /// The device that has this memory.
  static int device_with(const void* memory) {
    const int usual = default_device();
    if (!device_use::get().has_several_devices()) return usual;
    const device_guard guard(usual);
    const capture_pause pause(true);
    cudaPointerAttributes known{};
    check(cudaPointerGetAttributes(&known, memory), "cudaPointerGetAttributes");
    return known.type == cudaMemoryTypeDevice ? known.device : usual;
  }
  static void copy_pieces(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind,
                          cudaStream_t stream) {
    for (std::size_t offset = 0, part = 0; offset < bytes; offset += part) {
      auto* const part_target = static_cast<std::byte*>(target) + offset;
      const auto* const part_source = static_cast<const std::byte*>(source) + offset;
      part = within_piece(part_target, within_piece(part_source, bytes - offset));
      check(cudaMemcpyAsync(part_target, part_source, part, kind, stream), "cudaMemcpyAsync");
    }
  }
  /// Copies on a stream of ferry and waits. cudaMemcpy, and a copy on cudaStreamPerThread, would first wait
  /// for all work of the legacy default stream. A capture_pause keeps the copy out of any capture of the
  /// process.
  static void copy_now(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind, int device) {
    const device_guard guard(device);
    const capture_pause pause(true);
    const copy_stream stream(device);
    copy_pieces(target, source, bytes, kind, stream.native());
    check(cudaStreamSynchronize(stream.native()), "cudaStreamSynchronize");
  }
};

}  // namespace ferry::cuda
