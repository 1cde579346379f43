// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/detail/library.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The pages of a whole file, read-only. They are brought to memory when they are read, and are the page
/// cache's: the system may drop them at any time. The file may be closed and removed meanwhile.
class mapping {
 public:
  explicit mapping(const file& source);
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;
  ~mapping();

  [[nodiscard]] const std::byte* data() const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// The pages are read at random places: the system reads no others with them.
  void read_at_random() const noexcept;
  /// Starts to read bytes [begin, end) into memory. A hint.
  void read_ahead(std::size_t begin, std::size_t end) const noexcept;

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// True if the system should read only the pages that rows lie on. By default it reads 128 KiB with each
/// missing page. That warms up a file that fits into memory, and wastes most of the disk's rate and of the
/// page cache for single rows of a file that does not.
bool is_read_at_random(std::size_t file_bytes, std::size_t row_bytes);

/// Starts to read rows of a mapped file, by several threads.
void read_rows_ahead(const mapping& pages, std::size_t offset, std::size_t row_bytes,
                     std::vector<std::uint64_t> rows);

/// Starts to read the ones of `indices` among the `rows` rows, in the file's order, by several threads.
template <class Indices>
void read_rows_ahead(const mapping& pages, std::size_t offset, std::size_t rows, std::size_t row_bytes,
                     const Indices& indices) {
  const auto list = make_ref(indices);
  using index = std::remove_cv_t<std::remove_reference_t<decltype(*list.data)>>;
  static_assert(
      IndexElement<index> && decltype(list)::memory_space::is_host_accessible,
      "ferry: prefetch reads the indices on the host; give it an array of int32, uint32, int64 or uint64 in memory of the host.");
  if (list.accesses != nullptr) list.accesses->wait_for_writes();
  if (row_bytes == 0) return;
  std::vector<std::uint64_t> row_numbers;
  row_numbers.reserve(static_cast<std::size_t>(list.rows()));
  for (std::int64_t i = 0; i < list.rows(); ++i) {
    const index row = list.data[i * list.strides[0]];
    if (std::cmp_greater_equal(row, 0) && std::cmp_less(row, rows))
      row_numbers.push_back(static_cast<std::uint64_t>(row));
  }
  read_rows_ahead(pages, offset, row_bytes, std::move(row_numbers));
}

}  // namespace ferry::detail
