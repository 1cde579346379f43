// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/checkpoint_array.hpp>

#include <ferry/error.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ferry::detail {

dtype floating_dtype(std::string_view name) {
  for (const auto& [known, type] : checkpoint_dtypes)
    if (known == name && type.kind >= dtype_kind::real && type.kind < dtype_kind::e2m1) return type;
  return {};
}

std::byte* checkpoint_array::in_place(std::uint64_t offset) const {
  return is_dense() && read_device == nullptr && apart == nullptr ? data + offset : nullptr;
}

std::size_t checkpoint_array::most_scratch_bytes(std::size_t bytes) const {
  if (bytes == 0 || write_device == nullptr || is_dense()) return 0;
  return static_cast<std::size_t>((bytes / row_bytes + 2) * row_stride);
}

void checkpoint_array::read(std::uint64_t offset, std::size_t bytes, std::byte* target,
                            std::vector<std::byte>& scratch) const {
  if (bytes == 0) return;
  if (apart != nullptr) return apart->read(offset, bytes, target);
  if (read_device != nullptr && is_dense()) return read_device(target, data + offset, bytes);
  const std::byte* present = data;
  std::uint64_t begin = 0;
  if (read_device != nullptr) {
    begin = read_span(offset, bytes, scratch);
    present = scratch.data();
  }
  for_each_run(offset, bytes, [&](std::uint64_t position, std::size_t copied, std::size_t count) {
    std::memcpy(target + copied, present + (position - begin), count);
  });
}

void checkpoint_array::write(std::uint64_t offset, std::size_t bytes, const std::byte* source,
                             std::vector<std::byte>& scratch) const {
  if (bytes == 0) return;
  if (write_device != nullptr && is_dense()) return write_device(data + offset, source, bytes);
  std::byte* present = data;
  std::uint64_t begin = 0;
  if (write_device != nullptr) {
    begin = read_span(offset, bytes, scratch);
    present = scratch.data();
  }
  for_each_run(offset, bytes, [&](std::uint64_t position, std::size_t copied, std::size_t count) {
    std::memcpy(present + (position - begin), source + copied, count);
  });
  if (write_device != nullptr) write_device(data + begin, scratch.data(), scratch.size());
}

std::uint64_t checkpoint_array::read_span(std::uint64_t offset, std::size_t bytes,
                                          std::vector<std::byte>& scratch) const {
  const auto memory_offset = [this](std::uint64_t position) {
    return position / row_bytes * row_stride + position % row_bytes;
  };
  const std::uint64_t first = memory_offset(offset);
  scratch.resize(static_cast<std::size_t>(memory_offset(offset + bytes - 1) + 1 - first));
  read_device(scratch.data(), data + first, scratch.size());
  return first;
}

checkpoint_array describe_array(std::string name, const array_note& array, bool has_dense_rows,
                                std::string_view dtype, std::size_t element_bytes, const std::string& owner) {
  if (array.rank == 0 || !has_dense_rows)
    throw invalid_argument("ferry::io::checkpoint: '" + owner + "': " + array.describe() +
                           (array.rank == 0
                                ? " is an empty handle without extents"
                                : " has rows whose elements are not adjacent; ferry::copy it first"));
  manifest_array schema;
  schema.name = std::move(name);
  schema.dtype = dtype;
  schema.element_bytes = static_cast<std::uint32_t>(element_bytes);
  std::uint64_t row_bytes = element_bytes;
  for (std::size_t i = 0; i < array.rank; ++i) {
    schema.extents.push_back(static_cast<std::uint64_t>(array.extents[i]));
    if (i != 0) row_bytes *= schema.extents.back();
  }
  return array_in_memory(std::move(schema), row_bytes, std::string(array.label));
}

checkpoint_array array_in_memory(manifest_array schema, std::uint64_t row_bytes, std::string label,
                                 void* data, std::shared_ptr<void> owner) {
  constexpr std::uint64_t usual_chunk = std::uint64_t{1} << 22, longest_row = std::uint64_t{1} << 16,
                          usual_unit = std::uint64_t{1} << 12;
  std::uint64_t unit = row_bytes == 0 || row_bytes > longest_row ? schema.element_bytes : row_bytes;
  unit *= std::max<std::uint64_t>(1, usual_unit / unit);
  schema.unit_bytes = static_cast<std::uint32_t>(unit);
  schema.chunk_bytes = std::max<std::uint64_t>(1, usual_chunk / unit) * unit;
  checkpoint_array array;
  array.schema = std::move(schema);
  array.label = std::move(label);
  array.row_bytes = array.row_stride = row_bytes;
  array.data = static_cast<std::byte*>(data);
  array.owner = std::move(owner);
  return array;
}

int chunk_threads() {
  constexpr int most = 16;
  const int threads = Kokkos::is_initialized()
                          ? static_cast<int>(Kokkos::DefaultHostExecutionSpace().concurrency())
                          : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(threads, 1, most);
}

}  // namespace ferry::detail
