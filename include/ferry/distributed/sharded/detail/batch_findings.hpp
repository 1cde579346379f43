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

/// What one rank found in its batch. Ranks send it to each other as it is.
struct batch_findings {
  std::uint64_t out_of_range = 0, first_position = 0, first_index = 0;
  std::uint64_t nonfinite = 0, first_value = 0;
  std::uint64_t duplicates = 0, first_row = ~std::uint64_t{0};  ///< of the rows that the rank owns
  std::int64_t positions = 0;
  std::int64_t signed_indices = 1;
  std::uint64_t bad_bags = 0, first_offset = 0, first_offset_number = 0, unsigned_offsets = 0;

  /// Takes what is wrong with the offsets of the batch's bags.
  void take_offsets(const index_report& from) {
    bad_bags = from.bad_bags;
    first_offset = from.first_offset;
    first_offset_number = from.first_offset_number;
    unsigned_offsets = from.unsigned_offsets;
  }
};

/// The findings of all ranks in the order of a verb's errors. `rank` is -1 where one thread acts for all.
class all_findings {
 public:
  all_findings(const char* verb, const array_note& table, const std::vector<batch_findings>& of,
               bool is_whole)
      : verb_(verb), table_(table), of_(of), whole_(is_whole) {}

  [[nodiscard]] std::uint64_t out_of_range() const { return sum(&batch_findings::out_of_range); }
  [[nodiscard]] std::uint64_t duplicates() const { return sum(&batch_findings::duplicates); }
  [[nodiscard]] std::uint64_t nonfinite() const { return sum(&batch_findings::nonfinite); }

  [[nodiscard]] std::uint64_t bad_bags() const { return sum(&batch_findings::bad_bags); }

  [[nodiscard]] std::exception_ptr offsets_error() const;
  [[nodiscard]] std::exception_ptr bounds_error() const;
  [[nodiscard]] std::exception_ptr duplicates_error() const;
  [[nodiscard]] std::exception_ptr nonfinite_error(std::int64_t width) const;

 private:
  [[nodiscard]] std::uint64_t sum(std::uint64_t batch_findings::*what) const;
  [[nodiscard]] std::size_t first(std::uint64_t batch_findings::*what) const;
  [[nodiscard]] std::string begin() const;
  [[nodiscard]] std::string of_rank(std::size_t r) const;

  const char* verb_;
  array_note table_;
  const std::vector<batch_findings>& of_;
  bool whole_;
};

/// A ticket of work that has ended; wait() throws the error.
ticket ticket_of_error(const std::exception_ptr& error);

}  // namespace ferry::detail
