// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/sharding.hpp>
#include <ferry/rows/detail/global_rows.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::sharding {

/// Rows dealt by an array that names the rank of each row, by a function of the row, or by load. A rank has
/// its rows in the order of their numbers.
///
///   const auto by_load = sharding::dealt::by_load(visits, 4);             // visits: a double for each row
///   const sharding::dealt by_owner(owners);                               // owners: an int for each row
///   const sharding::dealt odd(rows, [](std::int64_t row) { return row % 2; });
///   sharded_table<float, mapped_space, sharding::dealt> table("w", comm, rows, 64, by_load);
///
/// Holds 20 bytes for each row, of which 8 in mapped_space, where kernels read them; copies and tables share
/// them. Each process makes its own, and the ranks compare them by a digest. The table has as many rows as
/// the array; its constructor throws invalid_argument for other numbers and for a rank that the group does
/// not have. The host finds the owners of rows: path::peer does not compile.
class dealt {
 public:
  /// Deals no rows: a table refuses it.
  dealt() = default;
  /// Row r lies on rank owners[r]. Throws invalid_argument for a rank outside of [0, 2^20), with its row.
  /// @{
  explicit dealt(std::span<const int> owners);
  explicit dealt(const std::vector<int>& owners) : dealt(std::span<const int>(owners)) {}
  /// @}
  /// Row r of `rows` lies on rank owner(r). Calls the function here, once for each row, in ascending order.
  template <std::integral Rows, class Function>
  dealt(Rows rows, const Function& owner) requires(std::is_invocable_r_v<int, const Function&, std::int64_t>)
      : dealt(owners_by(static_cast<std::int64_t>(rows), owner)) {}
  /// Gives the rows, from the largest load to the smallest, each to the rank with the least load so far; of
  /// equal loads the lower row and the lower rank come first. The largest sum of a rank exceeds the smallest
  /// one by a single row's load at most. Throws invalid_argument for a load that is negative or not finite,
  /// and for fewer than one rank.
  [[nodiscard]] static dealt by_load(std::span<const double> loads, int ranks);

  /// Facts about the sharding, see ferry::Sharding.
  /// @{
  static constexpr std::string_view name = "sharding::dealt";
  static constexpr bool replicates = false;
  void check(int ranks) const;
  [[nodiscard]] int owner(std::int64_t row, std::int64_t, int) const {
    return deal_->owners[static_cast<std::size_t>(row)];
  }
  [[nodiscard]] std::int64_t local_row(std::int64_t row, std::int64_t, int) const {
    return deal_->places[static_cast<std::size_t>(row)];
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int ranks) const;
  [[nodiscard]] kernels::global_rows global_rows(int rank, std::int64_t, int) const {
    return {0, 1, {}, deal_->numbers + deal_->begin_of(rank)};
  }
  [[nodiscard]] std::uint64_t digest() const { return deal_ == nullptr ? 0 : deal_->digest; }
  /// @}

 private:
  struct rows_of_ranks {
    std::vector<int> owners;                ///< the rank of each row
    std::vector<std::int64_t> places;       ///< in the shard of its owner
    std::vector<std::int64_t> begins;       ///< of each rank's rows in `numbers`, and their end
    std::shared_ptr<const void> memory;     ///< of `numbers`
    const std::int64_t* numbers = nullptr;  ///< the rows of all ranks, one rank after the other
    std::uint64_t digest = 0;

    /// Ranks after the last one with rows have none.
    [[nodiscard]] std::int64_t begin_of(int rank) const {
      const auto place = static_cast<std::size_t>(rank);
      return place < begins.size() ? begins[place] : begins.back();
    }
  };

  explicit dealt(std::shared_ptr<const rows_of_ranks> deal) : deal_(std::move(deal)) {}
  template <class Function>
  static std::vector<int> owners_by(std::int64_t rows, const Function& owner) {
    std::vector<int> owners(static_cast<std::size_t>(rows < 0 ? 0 : rows));
    for (std::int64_t row = 0; row < rows; ++row)
      owners[static_cast<std::size_t>(row)] = static_cast<int>(owner(row));
    return owners;
  }

  std::shared_ptr<const rows_of_ranks> deal_;
};
static_assert(Sharding<dealt>);

}  // namespace ferry::sharding
