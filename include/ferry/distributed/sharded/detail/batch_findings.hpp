// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  std::uint64_t nonfinite = 0, first_value = 0;
  std::uint64_t duplicates = 0, first_row = ~std::uint64_t{0};  ///< of the rows that the rank owns
  std::int64_t positions = 0;
  std::int64_t signed_indices = 1;
  std::uint64_t bad_bags = 0, first_offset = 0, first_offset_number = 0, unsigned_offsets = 0;

  /// Takes what is wrong with the offsets of the batch's bags.
  void take_offsets(const index_report& report) {
    bad_bags = report.bad_bags;
    first_offset = report.first_offset;
    first_offset_number = report.first_offset_number;
    unsigned_offsets = report.unsigned_offsets;
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
  all_findings(const char* verb, const array_note& table, const std::vector<batch_findings>& findings,
               bool is_whole)
      : verb_(verb), table_(table), findings_(findings), whole_(is_whole) {}

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

  const char* verb_;
  array_note table_;
  const std::vector<batch_findings>& findings_;
  bool whole_;
};

/// A ticket of work that has ended; wait() throws the error. Without an error an empty one.
ticket ticket_of_error(const std::exception_ptr& error);

}  // namespace ferry::detail
