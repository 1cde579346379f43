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

std::size_t floating_dtype_bytes(std::string_view dtype) {
  if (dtype == "f8_e4m3" || dtype == "f8_e5m2" || dtype == "f8_e8m0") return 1;
  return dtype == "f64" ? 8 : dtype == "f32" ? 4 : dtype == "f16" || dtype == "bf16" ? 2 : 0;
}

std::byte* checkpoint_array::in_place(std::uint64_t offset) const {
  return is_dense() && read_device == nullptr && apart == nullptr ? data + offset : nullptr;
}

std::pair<std::uint64_t, std::size_t> checkpoint_array::span_of(std::uint64_t offset,
                                                                std::size_t bytes) const {
  const auto place = [this](std::uint64_t position) {
    return position / row_bytes * row_stride + position % row_bytes;
  };
  const std::uint64_t first = place(offset);
  return {first, static_cast<std::size_t>(place(offset + bytes - 1) + 1 - first)};
}

std::size_t checkpoint_array::most_scratch_bytes(std::size_t bytes) const {
  if (bytes == 0 || write_device == nullptr || is_dense()) return 0;
  return static_cast<std::size_t>((bytes / row_bytes + 2) * row_stride);
}

void checkpoint_array::read(std::uint64_t offset, std::size_t bytes, std::byte* target,
                            std::vector<std::byte>& scratch) const {
  if (bytes == 0) return;
  if (apart != nullptr) {
    apart->read(offset, bytes, target);
  } else if (read_device == nullptr) {
    for_each_run(offset, bytes, [&](std::uint64_t position, std::size_t place, std::size_t count) {
      std::memcpy(target + place, data + position, count);
    });
  } else if (is_dense()) {
    read_device(target, data + offset, bytes);
  } else {
    const auto [first, length] = span_of(offset, bytes);
    scratch.resize(length);
    read_device(scratch.data(), data + first, length);
    for_each_run(offset, bytes,
                 [&, begin = first](std::uint64_t position, std::size_t place, std::size_t count) {
                   std::memcpy(target + place, scratch.data() + (position - begin), count);
                 });
  }
}

void checkpoint_array::write(std::uint64_t offset, std::size_t bytes, const std::byte* source,
                             std::vector<std::byte>& scratch) const {
  if (bytes == 0) return;
  if (write_device == nullptr) {
    for_each_run(offset, bytes, [&](std::uint64_t position, std::size_t place, std::size_t count) {
      std::memcpy(data + position, source + place, count);
    });
  } else if (is_dense()) {
    write_device(data + offset, source, bytes);
  } else {
    const auto [first, length] = span_of(offset, bytes);
    scratch.resize(length);
    read_device(scratch.data(), data + first, length);
    for_each_run(offset, bytes,
                 [&, begin = first](std::uint64_t position, std::size_t place, std::size_t count) {
                   std::memcpy(scratch.data() + (position - begin), source + place, count);
                 });
    write_device(data + first, scratch.data(), length);
  }
}

void refuse_array(const array_note& array, const std::string& owner) {
  throw invalid_argument("ferry::io::checkpoint: '" + owner + "': " + array.describe() +
                         (array.rank == 0
                              ? " is an empty handle without extents"
                              : " has rows whose elements are not adjacent; ferry::copy it first"));
}

checkpoint_array describe_array(std::string name, const array_note& array, std::string_view dtype,
                                std::size_t element_bytes) {
  checkpoint_array description;
  description.schema.name = std::move(name);
  description.schema.dtype = dtype;
  description.schema.element_bytes = static_cast<std::uint32_t>(element_bytes);
  description.row_bytes = element_bytes;
  for (std::size_t i = 0; i < array.rank; ++i) {
    description.schema.extents.push_back(static_cast<std::uint64_t>(array.extents[i]));
    if (i != 0) description.row_bytes *= static_cast<std::uint64_t>(array.extents[i]);
  }
  description.row_stride = description.row_bytes;
  description.label = std::string(array.label);
  choose_chunks(description.schema, description.row_bytes);
  return description;
}

void choose_chunks(manifest_array& array, std::uint64_t row_bytes) {
  constexpr std::uint64_t usual_chunk = std::uint64_t{1} << 22, longest_row = std::uint64_t{1} << 16,
                          usual_unit = std::uint64_t{1} << 12;
  std::uint64_t unit = row_bytes == 0 || row_bytes > longest_row ? array.element_bytes : row_bytes;
  unit *= std::max<std::uint64_t>(1, usual_unit / unit);
  array.unit_bytes = static_cast<std::uint32_t>(unit);
  array.chunk_bytes = std::max<std::uint64_t>(1, usual_chunk / unit) * unit;
}

int chunk_threads() {
  constexpr int most = 16;
  const int threads = Kokkos::is_initialized()
                          ? static_cast<int>(Kokkos::DefaultHostExecutionSpace().concurrency())
                          : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(threads, 1, most);
}

}  // namespace ferry::detail
