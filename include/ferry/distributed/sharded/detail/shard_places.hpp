// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/sharding.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

namespace ferry::kernels {

/// Ranks whose shards one kernel can read. Their places are arguments of the kernel.
inline constexpr int most_shards = 64;

/// The places of the rows of a sharded table: how many units after the beginning of the lowest shard.
template <class Spread>
struct shard_places {
  Spread spread;
  std::int64_t rows;
  int ranks;
  int only;             ///< the shard that has all rows, -1 for none
  std::int64_t stride;  ///< units from a row of a shard to the next
  std::int64_t begin[most_shards];

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t row) const {
    const int owner = only >= 0 ? only : spread.owner(row, rows, ranks);
    return begin[owner] + spread.local_row(row, rows, ranks) * stride;
  }
};

/// A source of rows of a sharded table for the kernels that gather. Its rows are the places of the rows, so
/// the table's stride is one unit.
template <class Source, class Spread>
struct rows_of_shards {
  Source source;
  shard_places<Spread> places;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t item, bool record) const {
    const std::int64_t row = source.row(item, record);
    return row < 0 ? row : places(row);
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t item) const { return source.position(item); }
};

/// A sharding whose owners the host finds, as kernels read it: a number for each row, of its place in the
/// shard of its owner and the owner.
struct listed_sharding {
  static constexpr int owner_bits = 20;
  const std::uint64_t* numbers = nullptr;

  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t row, std::int64_t, int) const {
    return static_cast<int>(numbers[row] & ((std::uint64_t{1} << owner_bits) - 1));
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t, int) const {
    return static_cast<std::int64_t>(numbers[row] >> owner_bits);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// A sharding as kernels call it.
template <class Spread>
using kernel_sharding = std::conditional_t<runs_in_kernels<Spread>, Spread, kernels::listed_sharding>;

/// The numbers of a table's rows in the memory of each device whose kernels look for owners: 8 bytes for each
/// row, made when they first do.
class owner_lists {
 public:
  template <class Exec, class Table>
  kernels::listed_sharding local_list(const Exec& exec, const Table& table) {
    using list = tensor<std::uint64_t, near_space<Exec>>;
    const std::lock_guard lock(guard_);
    std::shared_ptr<void>& memory = lists_[execution_backend<Exec>::device_of(exec)];
    if (memory == nullptr) {
      std::vector<std::uint64_t> numbers(table.rows());
      for (std::size_t r = 0; r < numbers.size(); ++r) {
        const auto row = static_cast<std::int64_t>(r);
        numbers[r] = static_cast<std::uint64_t>(table.local_row(row))
                         << kernels::listed_sharding::owner_bits |
                     static_cast<std::uint64_t>(table.owner(row));
      }
      auto owners = std::make_shared<list>("owners of rows", memory_home(exec), numbers.size());
      if (!numbers.empty()) copy(exec, numbers, *owners).join();
      memory = std::move(owners);
    }
    return {static_cast<const list*>(memory.get())->data()};
  }

 private:
  std::mutex guard_;
  std::map<int, std::shared_ptr<void>> lists_;  ///< by device
};

/// The sharding of a table for kernels of the instance.
template <class Exec, class Table>
auto sharding_for_kernels([[maybe_unused]] const Exec& exec, const Table& table) {
  if constexpr (runs_in_kernels<typename Table::sharding_type>)
    return table.sharding();
  else if constexpr (requires { table.stored(); })
    return table.stored().owners().local_list(exec, table);
  else
    return table.owners().local_list(exec, table);
}

}  // namespace ferry::detail
