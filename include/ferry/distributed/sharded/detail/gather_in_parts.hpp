// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/gather.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>

/// Gathers of all rows of a table or a shard, in parts, by lists of row numbers that the host makes.
namespace ferry::detail {

template <class Exec>
using row_list = tensor<std::int64_t, wire_space<Exec>>;

/// Rows of a part: about 64 MiB, so that buffers stay small and the work of a part is long.
inline std::int64_t rows_of_part(std::int64_t rows, std::size_t row_bytes) {
  const auto most = static_cast<std::int64_t>((std::size_t{1} << 26) / std::max<std::size_t>(row_bytes, 64));
  return std::clamp<std::int64_t>(most, 1, std::max<std::int64_t>(rows, 1));
}

/// The list = numbers(begin), numbers(begin + 1) ... up to `end`, which it has room for.
template <class List, class Numbers>
auto fill_list(List& list, std::int64_t begin, std::int64_t end, const Numbers& numbers) {
  for (std::int64_t i = begin; i < end; ++i) list.data()[i - begin] = numbers(i);
  return list.first(static_cast<std::size_t>(end - begin));
}

template <class Table, class Array>
void require_same_extents(const char* verb, const Table& table, const Array& array) {
  require_dense_rows(verb, array);
  if (array.rows() != static_cast<std::int64_t>(table.rows()) ||
      array.width() != static_cast<std::int64_t>(table.width()))
    throw invalid_argument(
        joined("ferry::", verb, ": the extents of ", table.describe(), " and ", array.describe(), " differ"));
}

/// target = the rows of the shard of a rank, out of an array of all rows of the table. Blocks.
template <class Exec, class Array, class Table, class Target>
void gather_rows_of_shard(const Exec& exec, const Array& array, const Table& table, int rank,
                          Target& target) {
  const std::int64_t rows = table.rows_of(rank);
  const std::size_t row_bytes = table.width() * sizeof(typename Target::value_type);
  row_list<Exec> list("rows", rows_of_part(rows, row_bytes));
  const auto at_once = static_cast<std::int64_t>(list.rows());
  for (std::int64_t begin = 0; begin < rows; begin += at_once) {
    const std::int64_t end = std::min(begin + at_once, rows);
    auto part = target.rows_between(begin, end);
    gather_across(exec, array, fill_list(list, begin, end, row_numbers(table, rank)), part);
  }
}

/// Collective gathers of many rows of a sharded table, for arrays of T. All ranks gather equally often, so a
/// rank that can't store a part goes on, and reports it in the end.
template <class Exec, class T>
class gather_in_parts {
 public:
  gather_in_parts() = default;
  /// Takes all memory. All ranks pass the same `rows`, those of the largest gather; if `has_buffer`, parts
  /// pass a buffer of the instance's device.
  gather_in_parts(const Exec& exec, std::int64_t rows, std::size_t width, bool has_buffer)
      : list_("rows", rows_of_part(rows, width * sizeof(T))),
        buffer_(payload<T, near_space<Exec>>(exec, "rows of a part", has_buffer ? list_.rows() : 0, width)) {}

  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(list_.rows()); }
  /// part = rows numbers(begin), numbers(begin + 1) ... up to `end` of the table. Blocks.
  template <class Table, class Numbers, class Part>
  void gather_part(const Exec& exec, const Table& table, std::int64_t begin, std::int64_t end,
                   const Numbers& numbers, Part& part) {
    const auto list = fill_list(list_, begin, end, numbers);
    if (buffer_.rows() == 0) return gather(exec, table, list, part, bounds::unchecked{}).join();
    auto arrived = buffer_.first(list.rows());
    gather(exec, table, list, arrived, bounds::unchecked{}).join();
    try {
      if (failure_ == nullptr && end != begin) copy(exec, arrived, part).join();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  /// All ranks leave together: one that has left may write to the table.
  void finish(const communicator& comm, call_note note) const {
    collective call(comm, note.add(", end"));
    call.guarded([&] {
      if (failure_ != nullptr) std::rethrow_exception(failure_);
      call.agree();
      call.close();
    });
  }

 private:
  row_list<Exec> list_{};
  tensor<T, near_space<Exec>> buffer_{};
  std::exception_ptr failure_{};
};

/// True if rows between the device of Exec and an array in Space pass through host threads, which write whole
/// ranges four times as fast as single rows.
template <class Exec, class Space>
inline constexpr bool passes_host_threads = !is_host_exec<Exec> && std::is_same_v<Space, pageable_space>;

/// `sink` = all rows of a table; a rank whose sink has no rows gets none. Collective; blocks.
template <class Exec, class Table, class Sink>
void gather_all_rows(const char* verb, const Exec& exec, const Table& table, const Sink& sink,
                     const call_note& note) {
  const auto rows = static_cast<std::int64_t>(table.rows());
  gather_in_parts<Exec, typename Sink::value_type> parts;
  bool takes = true;
  collective call(table.comm(), note);
  call.guarded([&] {
    takes = call.is_whole() || sink.rows() != 0;
    if (takes) {
      require_same_extents(verb, table, sink);
      require_apart(verb, call, table, sink);
      require_array_device(verb, exec, sink);
    }
    parts = {exec, rows, table.width(), passes_host_threads<Exec, typename Sink::memory_space>};
    call.agree();
    call.close();
  });
  for (std::int64_t begin = 0; begin < rows; begin += parts.rows()) {
    const std::int64_t end = takes ? std::min(begin + parts.rows(), rows) : begin;
    auto part = sink;
    if (takes) {
      part.data += begin * sink.row_stride();
    } else {
      part.rank = 2;
      part.extents[1] = static_cast<std::int64_t>(table.width());
      part.make_dense();
    }
    part.extents[0] = end - begin;
    parts.gather_part(
        exec, table, begin, end, [](std::int64_t row) { return row; }, part);
  }
  parts.finish(table.comm(), note);
}

}  // namespace ferry::detail
