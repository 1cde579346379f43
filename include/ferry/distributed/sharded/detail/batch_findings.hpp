// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace ferry::detail {

/// The findings of a rank in its batch. Ranks send it to each other as it is.
struct batch_findings {
  std::uint64_t out_of_range = 0, first_position = 0, first_index = 0;
  std::uint64_t first_bag = 0;  ///< that of first_position, if the verb has several tables
  std::uint64_t nonfinite = 0, first_value = 0;
  std::uint64_t duplicates = 0, first_row = ~std::uint64_t{0};  ///< of the rows that the rank owns
  std::int64_t positions = 0;
  std::int64_t signed_indices = 1;
  std::uint64_t bad_bags = 0;
  index_report offsets{};  ///< of the bags
  std::int64_t bags = 0;   ///< of each table, if the verb has several

  /// Takes what is wrong with the offsets of the batch's bags.
  void take_offsets(const index_report& report) {
    bad_bags = report.bad_bags;
    offsets = report;
  }
  /// Takes the values of another scan that are infinite or not a number.
  void take_values(const batch_findings& scanned) {
    nonfinite = scanned.nonfinite;
    first_value = scanned.first_value;
  }
};

/// The findings of all ranks in the order of a verb's errors. With `is_whole` one thread acts for all.
class all_findings {
 public:
  /// `tables`: those of a verb on several, else empty.
  all_findings(const char* verb, const array_note& table, const std::vector<batch_findings>& findings,
               bool is_whole, const std::vector<array_note>& tables = {})
      : verb_(verb), table_(table), findings_(findings), whole_(is_whole), tables_(tables) {}

  /// True if error() has one.
  [[nodiscard]] bool has_error() const;
  [[nodiscard]] std::uint64_t nonfinite() const { return sum(&batch_findings::nonfinite); }
  /// The error of bad offsets, else of bad indices, else of rows that duplicates::reject forbids; null if
  /// there are none.
  [[nodiscard]] std::exception_ptr error() const;
  [[nodiscard]] std::exception_ptr nonfinite_error(std::int64_t width) const;

 private:
  using count_of = std::uint64_t batch_findings::*;
  [[nodiscard]] std::exception_ptr offsets_error() const;
  [[nodiscard]] std::exception_ptr bounds_error() const;
  [[nodiscard]] std::exception_ptr duplicates_error() const;
  [[nodiscard]] std::uint64_t sum(count_of count) const;
  [[nodiscard]] std::size_t first(count_of count) const;
  [[nodiscard]] std::string begin() const;
  [[nodiscard]] std::string of_rank(std::size_t r) const;
  /// The tables, as the rest of a sentence about their rows.
  [[nodiscard]] std::string rows_of_tables() const;
  /// "bag 1 of 'users' ..." for a bag of the batch of a rank.
  [[nodiscard]] std::string bag_of_table(std::size_t r, std::uint64_t bag) const;

  const char* verb_;
  array_note table_;
  const std::vector<batch_findings>& findings_;
  bool whole_;
  std::vector<array_note> tables_;
};

/// A ticket of work that has ended; wait() throws the error. Without an error an empty one.
ticket ticket_of_error(const std::exception_ptr& error);

}  // namespace ferry::detail
