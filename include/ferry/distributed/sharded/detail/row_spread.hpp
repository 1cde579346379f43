// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ferry::detail {

/// A sharding of a number of rows over a number of ranks, for host code that does not know its type.
class row_spread {
 public:
  row_spread(std::int64_t rows, int ranks, bool replicates, std::uint64_t digest)
      : rows_(rows), ranks_(ranks), replicates_(replicates), digest_(digest) {}
  row_spread(const row_spread&) = delete;
  row_spread& operator=(const row_spread&) = delete;
  virtual ~row_spread() = default;

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  /// True if every rank has all rows.
  [[nodiscard]] bool replicates() const { return replicates_; }
  /// Equal for all shardings of one type and with the same options.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

  /// The rank that has a row.
  [[nodiscard]] virtual int owner(std::int64_t row) const = 0;
  /// The owners of rows [first, first + owners.size()), and their places in the shards.
  virtual void locate(std::int64_t first, std::vector<int>& owners,
                      std::vector<std::int64_t>& places) const = 0;

 private:
  std::int64_t rows_;
  int ranks_;
  bool replicates_;
  std::uint64_t digest_;
};

template <class Spread>
class spread_of final : public row_spread {
 public:
  spread_of(const Spread& spread, std::int64_t rows, int ranks, std::uint64_t digest)
      : row_spread(rows, ranks, Spread::replicates, digest), spread_(spread) {}

  [[nodiscard]] int owner(std::int64_t row) const override { return spread_.owner(row, rows(), ranks()); }
  void locate(std::int64_t first, std::vector<int>& owners,
              std::vector<std::int64_t>& places) const override {
    for (std::size_t i = 0; i < owners.size(); ++i) {
      const std::int64_t row = first + static_cast<std::int64_t>(i);
      owners[i] = spread_.owner(row, rows(), ranks());
      places[i] = spread_.local_row(row, rows(), ranks());
    }
  }

 private:
  Spread spread_;
};

}  // namespace ferry::detail
