// SPDX-License-Identifier: Apache-2.0

#include <ferry/io/detail/read_array.hpp>

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/detail/file_elements.hpp>
#include <ferry/io/file_table.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ferry::detail {

std::string dtype::name() const {
  // In the order of dtype_kind.
  static constexpr std::array names{
      "bool",    "int",           "uint",        "float",          "bfloat16",
      "complex", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "pairs of float4_e2m1fn"};
  if (kind >= dtype_kind::foreign) return "records of " + std::to_string(bytes) + " bytes";
  const bool has_sizes = kind == dtype_kind::integer || kind == dtype_kind::unsigned_integer ||
                         kind == dtype_kind::real || kind == dtype_kind::complex;
  return names[static_cast<std::size_t>(kind)] + (has_sizes ? std::to_string(bytes * 8) : "");
}

void require_extents(const char* verb, const array_note& array) {
  if (array.rank == 0)
    throw invalid_argument(
        joined("ferry::io::", verb, ": ", (array.label.empty() ? "an array" : "'" + array.label + "'"),
               " is an empty handle without extents: it was moved from, or never given any"));
}

std::string file_verb(const char* verb, bool is_captured) {
  const std::string name = std::string("ferry::io::") + verb;
  if (!is_captured) return name;
  throw invalid_argument(name +
                         ": the instance is being captured into a graph, whose work runs only when the "
                         "graph is launched; end the capture first");
}

bool is_stored_as(const dtype& stored, const dtype& expected) {
  const auto is_record = [](const dtype& type) { return type.kind == dtype_kind::record; };
  const auto may_be_record = [](const dtype& type) {
    return type.kind == dtype_kind::brain || type.kind == dtype_kind::e4m3 || type.kind == dtype_kind::e5m2 ||
           type.kind == dtype_kind::e8m0 || type.kind == dtype_kind::e2m1;
  };
  if (stored == expected) return true;
  if (stored.bytes != expected.bytes) return false;
  return (is_record(stored) && may_be_record(expected)) ||
         (is_record(expected) && (may_be_record(stored) || stored.kind == dtype_kind::foreign));
}

void refuse_elements(const file& source, const stored_array& stored, const dtype& expected, bool converts) {
  throw invalid_argument(
      "ferry::io::" + source.verb() + ": " + source.path() + ": " +
      (stored.name.empty() ? "its elements are " : "the elements of " + stored.name + " are ") +
      stored.elements.name() + " (" + stored.type_text + "), not " + expected.name() +
      (converts ? ", and there is no conversion between these"
                : "; ferry::io::convert_dtype{} as the last argument of a load converts numbers"));
}

array_shape transposed(const array_shape& array) {
  array_shape turned = array;
  const auto rank = static_cast<std::ptrdiff_t>(turned.rank);
  std::reverse(turned.extents.begin(), turned.extents.begin() + rank);
  std::reverse(turned.strides.begin(), turned.strides.begin() + rank);
  return turned;
}

bool needs_transposed(const stored_array& stored, const array_shape& array) {
  return stored.column_major && !(transposed(array).is_contiguous() && array.is_contiguous());
}

namespace {

/// As NumPy, takes every byte but 0 as true.
void make_booleans(void* elements, std::size_t count) {
  auto* const bytes = static_cast<unsigned char*>(elements);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
}

/// Takes no memory: others are in the array by now.
void read_converted(const stored_reader& reader, std::uint64_t offset, std::byte* elements,
                    std::size_t count) {
  std::array<std::byte, (std::size_t{1} << 15)> buffer;
  const std::size_t stored_bytes = reader.stored.elements.bytes;
  const std::size_t at_once = buffer.size() / stored_bytes;
  for (std::size_t converted = 0; converted < count; converted += at_once) {
    const std::size_t some = std::min(at_once, count - converted);
    reader.source.read_at(buffer.data(), some * stored_bytes, offset + converted * stored_bytes);
    reader.converter(buffer.data(), elements + converted * reader.element_bytes, some);
  }
}

}  // namespace

void stored_reader::operator()(void* elements, std::int64_t first, std::int64_t count) const {
  const std::uint64_t offset = stored.offset + static_cast<std::uint64_t>(first) * stored.elements.bytes;
  const auto size = static_cast<std::size_t>(count);
  if (converter != nullptr) return read_converted(*this, offset, static_cast<std::byte*>(elements), size);
  source.read_at(elements, size * element_bytes, offset);
  if (booleans) make_booleans(elements, size);
}

void require_same_extents(const file& source, const stored_array& stored, const array_note& array) {
  bool same = stored.rank == array.rank;
  for (std::size_t i = 0; same && i < stored.rank; ++i)
    same = stored.extents[i] == static_cast<std::size_t>(array.extents[i]);
  if (same) return;
  std::string shape = "[";
  for (const std::size_t extent : stored.sizes())
    shape += (shape.size() == 1 ? "" : " x ") + std::to_string(extent);
  throw invalid_argument("ferry::io::" + source.verb() + ": " + source.path() + ": " +
                         (stored.name.empty() ? "its array is " : stored.name + " is ") + shape + "], and " +
                         array.describe() + " has other extents");
}

const char the_library_is_not_linked_so_link_the_target_ferry_io_or_compile_src_ferry_io_cpp = 1;

mapping::mapping(const file& source) : bytes_(static_cast<std::size_t>(source.size())) {
  if (bytes_ == 0) return;
  data_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, source.descriptor(), 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    source.fail_by_errno(joined("map ", bytes_, " bytes"));
  }
}

mapping::~mapping() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

const std::byte* mapping::data() const noexcept { return static_cast<const std::byte*>(data_); }

void mapping::read_at_random() const noexcept {
  if (data_ != nullptr) ::madvise(data_, bytes_, MADV_RANDOM);
}

void mapping::read_ahead(std::size_t begin, std::size_t end) const noexcept {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  begin = begin / page * page;
  if (data_ == nullptr || begin >= end) return;
  ::madvise(static_cast<std::byte*>(data_) + begin, end - begin, MADV_WILLNEED);
}

bool is_read_at_random(std::size_t file_bytes, std::size_t row_bytes) {
  constexpr std::size_t with_each_page = std::size_t{128} << 10;
  const auto pages = static_cast<std::size_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto page = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_PAGESIZE)));
  return row_bytes < with_each_page && file_bytes / page > pages / 2;
}

void read_rows_ahead(const mapping& pages, std::size_t offset, std::size_t row_bytes,
                     std::vector<std::uint64_t> rows) {
  std::sort(rows.begin(), rows.end());
  // Rows of one page, and of pages next to each other, are one range.
  constexpr std::size_t page = 4096;
  struct range {
    std::size_t begin, end;
  };
  std::vector<range> ranges;
  for (const std::uint64_t row : rows) {
    const std::size_t begin = (offset + row * row_bytes) / page * page;
    const std::size_t end = (offset + (row + 1) * row_bytes + page - 1) / page * page;
    if (!ranges.empty() && begin <= ranges.back().end)
      ranges.back().end = end;
    else
      ranges.push_back({begin, end});
  }
  parallel(static_cast<std::int64_t>(ranges.size()), 256, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = first; i < first + count; ++i) {
      const range& span = ranges[static_cast<std::size_t>(i)];
      pages.read_ahead(span.begin, std::min(span.end, pages.bytes()));
    }
  });
}

}  // namespace ferry::detail
