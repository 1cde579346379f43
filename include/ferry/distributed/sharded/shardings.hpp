// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/sharding.hpp>
#include <ferry/error.hpp>
#include <ferry/rows/detail/global_rows.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::kernels {

/// row / parts and row % parts, for row >= 0 and parts > 0. Numbers of 32 bits, as those of most rows are,
/// take a device a fifth of the instructions of 64 bits.
struct divided {
  std::int64_t quotient;
  std::int64_t rest;

  KOKKOS_FUNCTION divided(std::int64_t row, std::int64_t parts) {
    if ((static_cast<std::uint64_t>(row | parts) >> 32) == 0) {
      const auto narrow = static_cast<std::uint32_t>(row), divisor = static_cast<std::uint32_t>(parts);
      const std::uint32_t whole = narrow / divisor;
      quotient = whole;
      rest = narrow - whole * divisor;
    } else {
      quotient = row / parts;
      rest = row - quotient * parts;
    }
  }
};

}  // namespace ferry::kernels

namespace ferry::sharding {

/// Rank 0 has the first rows / N rows, rounded up, rank 1 the next ones, and so on; the last ranks may have
/// fewer. For rows whose neighbours are used together.
struct block {
  /// Facts about the sharding, see ferry::Sharding.
  /// @{
  static constexpr std::string_view name = "sharding::block";
  static constexpr bool replicates = false;
  static constexpr bool in_kernels = true;
  void check(int) const {}
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t row, std::int64_t rows, int ranks) const {
    return static_cast<int>(kernels::divided(row, rows_per_rank(rows, ranks)).quotient);
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t rows, int ranks) const {
    return kernels::divided(row, rows_per_rank(rows, ranks)).rest;
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int ranks) const {
    return std::clamp(rows - rank * rows_per_rank(rows, ranks), std::int64_t{0}, rows_per_rank(rows, ranks));
  }
  [[nodiscard]] kernels::global_rows global_rows(int rank, std::int64_t rows, int ranks) const {
    return {rank * rows_per_rank(rows, ranks), 1, {}};
  }
  /// @}

 private:
  KOKKOS_FUNCTION static std::int64_t rows_per_rank(std::int64_t rows, int ranks) {
    return rows == 0 ? 1 : kernels::divided(rows + ranks - 1, ranks).quotient;
  }
};
static_assert(Sharding<block>);

}  // namespace ferry::sharding

/// How the rows of a sharded_table are spread over the ranks of its group, see ferry::Sharding.
namespace ferry::sharding {

/// The default: row r lies on rank r mod N. Rows that are ordered by frequency, as vocabularies are, load all
/// ranks alike.
struct cyclic {
  /// Facts about the sharding, see ferry::Sharding.
  /// @{
  static constexpr std::string_view name = "sharding::cyclic";
  static constexpr bool replicates = false;
  static constexpr bool in_kernels = true;
  void check(int) const {}
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t row, std::int64_t, int ranks) const {
    return static_cast<int>(kernels::divided(row, ranks).rest);
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t, int ranks) const {
    return kernels::divided(row, ranks).quotient;
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int ranks) const {
    return (rows + ranks - 1 - rank) / ranks;
  }
  [[nodiscard]] kernels::global_rows global_rows(int rank, std::int64_t, int ranks) const {
    return {rank, ranks, {}};
  }
  /// @}
};
static_assert(Sharding<cyclic>);

}  // namespace ferry::sharding

namespace ferry::sharding {

/// The rows in an order that a seed chooses, a bijection of the row numbers, then as sharding::cyclic: loads
/// the ranks alike if frequent rows have a pattern of their own. Shards differ by one row at most.
template <std::uint64_t Seed = 0>
struct hashed {
  /// Facts about the sharding, see ferry::Sharding.
  /// @{
  static constexpr std::string_view name = "sharding::hashed";
  static constexpr bool replicates = false;
  static constexpr bool in_kernels = true;
  void check(int) const {}
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t row, std::int64_t rows, int ranks) const {
    return static_cast<int>(kernels::divided(place(row, rows), ranks).rest);
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t rows, int ranks) const {
    return kernels::divided(place(row, rows), ranks).quotient;
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int ranks) const {
    return (rows + ranks - 1 - rank) / ranks;
  }
  [[nodiscard]] kernels::global_rows global_rows(int rank, std::int64_t rows, int ranks) const {
    return {rank, ranks, kernels::row_scramble(rows, Seed)};
  }
  /// @}

 private:
  KOKKOS_FUNCTION static std::int64_t place(std::int64_t row, std::int64_t rows) {
    return kernels::row_scramble(rows, Seed).forward(row);
  }
};
static_assert(Sharding<hashed<>>);

}  // namespace ferry::sharding

namespace ferry::sharding {

/// One rank has the whole table: for many tables that are spread over the ranks one by one.
///
///   sharded_table<float, mapped_space, sharding::table_wise> t("t", comm, rows, 64, {.rank = 2});
struct table_wise {
  int rank = 0;  ///< the owner

  /// Facts about the sharding, see ferry::Sharding.
  /// @{
  static constexpr std::string_view name = "sharding::table_wise";
  static constexpr bool replicates = false;
  static constexpr bool in_kernels = true;
  void check(int ranks) const {
    if (rank < 0 || rank >= ranks)
      throw invalid_argument(ferry::detail::joined("ferry::sharding::table_wise: rank ", rank,
                                                   " is none of the ", ranks, " ranks of the group"));
  }
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t, std::int64_t, int) const { return rank; }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t, int) const {
    return row;
  }
  [[nodiscard]] std::int64_t rows_of(int owner, std::int64_t rows, int) const {
    return owner == rank ? rows : 0;
  }
  [[nodiscard]] kernels::global_rows global_rows(int, std::int64_t, int) const { return {}; }
  /// @}
};
static_assert(Sharding<table_wise>);

}  // namespace ferry::sharding

namespace ferry::sharding {

/// Every rank has all rows: a gather needs no other rank, and writes send each batch to all ranks, which
/// apply the same updates. For small tables.
struct replicated {
  /// Facts about the sharding, see ferry::Sharding.
  /// @{
  static constexpr std::string_view name = "sharding::replicated";
  static constexpr bool replicates = true;
  static constexpr bool in_kernels = true;
  void check(int) const {}
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t, std::int64_t, int) const { return 0; }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t, int) const {
    return row;
  }
  [[nodiscard]] std::int64_t rows_of(int, std::int64_t rows, int) const { return rows; }
  [[nodiscard]] kernels::global_rows global_rows(int, std::int64_t, int) const { return {}; }
  /// @}
};
static_assert(Sharding<replicated>);

}  // namespace ferry::sharding

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
