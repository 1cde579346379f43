// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/detail/library.hpp>
#include <ferry/io/detail/read_array.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
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

  /// The pages are read at random offsets: the system reads no others with them.
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

namespace ferry::io {

/// A read-only table over the pages of a file, which may be larger than the memory: see map_npy and
/// safetensors_file::map. Verbs take it where they take a table in pageable_space that they only read, gather
/// above all. Move-only. It must outlive the work in flight that reads it.
///
/// Rows are read from the disk when they are first used, and then come from the system's page cache. A file
/// that another program shortens meanwhile, and a disk that fails, end the process with SIGBUS, as for every
/// mapped file.
template <Element T>
class file_table {
 public:
  using value_type = const T;           ///< elements
  using memory_space = pageable_space;  ///< the page cache is ordinary host memory
  using extents_type = dynamic_rank;    ///< extents are known at run time

  /// For the functions that map files. The array lies inside of the pages and is aligned.
  file_table(std::string label, const detail::stored_array& stored,
             std::shared_ptr<const detail::mapping> pages)
      : label_(std::make_shared<const std::string>(std::move(label))),
        shape_(shape<dynamic_rank>::make(stored.sizes(), *label_, sizeof(T))),
        pages_(std::move(pages)),
        data_(reinterpret_cast<const T*>(pages_->data() + stored.offset)),
        offset_(static_cast<std::size_t>(stored.offset)),
        accesses_(std::make_shared<detail::access_tracker>()) {
    if (detail::is_read_at_random(pages_->bytes(), shape_.width() * sizeof(T))) pages_->read_at_random();
  }

  /// Element (i, j, ...), one index per extent, for host code. assert() checks the indices.
  template <class... Indices>
  const T& operator()(Indices... indices) const {
    return detail::host_element<pageable_space, const T>(data_, shape_, indices...);
  }

  /// The first `rows` rows, and rows [begin, end), as arguments of verbs: see tensor.
  /// @{
  template <std::integral Rows>
  [[nodiscard]] auto first(Rows rows) const& {
    return detail::first_rows<pageable_space, const T>(label_, data_, shape_, accesses_, rows);
  }
  template <std::integral Begin, std::integral End>
  [[nodiscard]] auto rows_between(Begin begin, End end) const& {
    return detail::rows_between<pageable_space, const T>(label_, data_, shape_, accesses_, begin, end);
  }
  template <std::integral Rows>
  void first(Rows) && {
    detail::refuse_brief_slice<Rows>();
  }
  template <std::integral Begin, std::integral End>
  void rows_between(Begin, End) && {
    detail::refuse_brief_slice<Begin>();
  }
  /// @}

  /// Starts to read the rows of a later gather from the disk, several at a time, and returns while the disk
  /// works. `indices` is an array of integers in memory of the host; those outside of the table are ignored.
  /// Rows in the page cache cost some time and gain nothing.
  template <ArrayLike Indices>
  void prefetch(const Indices& indices) const {
    detail::read_rows_ahead(*pages_, offset_, shape_.rows(), shape_.width() * sizeof(T), indices);
  }
  /// Starts to read rows [begin, end) from the disk. Throws out_of_range as rows_between.
  template <std::integral Begin, std::integral End>
  void prefetch(Begin begin, End end) const {
    const auto part = rows_between(begin, end);
    const std::size_t offset = offset_ + static_cast<std::size_t>(part.data() - data_) * sizeof(T);
    pages_->read_ahead(offset, offset + part.size() * sizeof(T));
  }

  /// The first element.
  [[nodiscard]] const T* data() const noexcept { return data_; }
  /// The first extent.
  [[nodiscard]] std::size_t rows() const noexcept { return shape_.rows(); }
  /// Elements of a row: the product of the extents after the first.
  [[nodiscard]] std::size_t width() const noexcept { return shape_.width(); }
  /// Extent i, 1 for i >= rank().
  [[nodiscard]] std::size_t extent(std::size_t i) const noexcept { return shape_.extent(i); }
  /// Number of extents.
  [[nodiscard]] std::size_t rank() const noexcept { return shape_.rank(); }
  /// Number of elements, rows() * width().
  [[nodiscard]] std::size_t size() const noexcept { return shape_.size(); }
  /// The name in messages.
  [[nodiscard]] const std::string& label() const noexcept { return *label_; }
  /// The label, shared.
  [[nodiscard]] const std::shared_ptr<const std::string>& shared_label() const noexcept { return label_; }
  /// A view for kernels that reach pageable memory.
  [[nodiscard]] tensor_view<const T, pageable_space> view() const noexcept { return {data_, shape_}; }
  /// Reads in flight, which verbs record.
  [[nodiscard]] const std::shared_ptr<detail::access_tracker>& accesses() const noexcept { return accesses_; }

 private:
  std::shared_ptr<const std::string> label_;
  shape<dynamic_rank> shape_;
  std::shared_ptr<const detail::mapping> pages_;
  const T* data_ = nullptr;
  std::size_t offset_ = 0;  ///< in the file
  std::shared_ptr<detail::access_tracker> accesses_;
};

}  // namespace ferry::io

namespace ferry {

namespace detail {

template <class T>
inline constexpr bool owns_elements<io::file_table<T>> = true;

/// The table over an array of a file. Throws invalid_argument if kernels can't read the file's bytes.
template <class T>
io::file_table<T> map_stored(const file& source, const std::string& label, const stored_array& stored) {
  require_loadable<T, false>(source, stored);
  const auto refuse = [&](const std::string& why) {
    throw invalid_argument(joined("ferry::io::", source.verb(), ": ", source.path(), ": ", stored.name,
                                  (stored.name.empty() ? "" : ": "), why, "; load it instead"));
  };
  std::size_t long_extents = 0;
  for (const std::size_t extent : stored.sizes()) long_extents += extent == 1 ? 0 : 1;
  if (stored.column_major && long_extents > 1) refuse("the array is column-major");
  if (stored.offset % alignof(T) != 0)
    refuse(joined("the elements begin at byte ", stored.offset, ", and need an address of ", alignof(T)));
  return io::file_table<T>(label, stored, std::make_shared<const mapping>(source));
}

}  // namespace detail

/// A table over a file's pages, with its reads in flight.
template <class T>
struct array_traits<io::file_table<T>> {
  /// See ferry::array_traits.
  /// @{
  using value_type = const T;
  using memory_space = pageable_space;
  static constexpr std::size_t static_width = dyn;
  static detail::array_ref<const T, pageable_space> ref(const io::file_table<T>& array) {
    auto reference = detail::dense_ref<const T, pageable_space>(array.data(), array);
    reference.label = array.shared_label();
    reference.accesses = array.accesses();
    return reference;
  }
  /// @}
};

}  // namespace ferry

namespace ferry::io {

/// A read-only table over the pages of a .npy file, which may be larger than the memory. Nothing is read but
/// the header.
///
///   auto features = ferry::io::map_npy<float>("features.npy");
///   ferry::gather(exec, features, indices, batch).wait();
///
///   T      the element type, which must be the file's, see load_npy
///   label  the table's name; without it, the path
///
/// A gather travels on path::staged, the default, or on path::direct if `exec` reaches pageable memory.
/// Throws io_error as load_npy; invalid_argument for other elements, a column-major file of several rows, and
/// for elements that are not aligned in the file: load_npy takes both.
/// @{
template <Element T>
[[nodiscard]] file_table<T> map_npy(const std::string& path, const std::string& label) {
  const auto source = detail::file::open_to_read("map_npy", path);
  return detail::map_stored<T>(source, label, detail::read_npy_header(source));
}
template <Element T>
[[nodiscard]] file_table<T> map_npy(const std::string& path) {
  return map_npy<T>(path, path);
}
/// @}

}  // namespace ferry::io
