// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
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

  [[nodiscard]] std::exception_ptr offsets_error() const {
    const std::size_t r = first(&batch_findings::bad_bags);
    return std::make_exception_ptr(ferry::out_of_range(
        begin() + "the offsets of " + std::to_string(bad_bags()) + " bags for rows of " + table_.describe() +
        " decrease, are negative or leave the positions, or leave positions without a bag; the first is offset " +
        number(of_[r].first_offset_number, of_[r].unsigned_offsets == 0) + " at place " +
        std::to_string(of_[r].first_offset) + of_rank(r)));
  }
  [[nodiscard]] std::exception_ptr bounds_error() const {
    const std::size_t r = first(&batch_findings::out_of_range);
    const batch_findings& at = of_[r];
    std::int64_t all = 0;
    for (const batch_findings& each : of_) all += each.positions;
    const std::string index = number(at.first_index, at.signed_indices != 0);
    return std::make_exception_ptr(
        ferry::out_of_range(begin() + std::to_string(out_of_range()) + " of " + std::to_string(all) +
                            " indices are outside of " + table_.describe() + "; the first is index " + index +
                            " at position " + std::to_string(at.first_position) + of_rank(r)));
  }
  [[nodiscard]] std::exception_ptr duplicates_error() const {
    std::uint64_t lowest = ~std::uint64_t{0};
    for (const batch_findings& each : of_) lowest = each.first_row < lowest ? each.first_row : lowest;
    return std::make_exception_ptr(
        invalid_argument(begin() + std::to_string(duplicates()) + " rows of " + table_.describe() +
                         " are named more than once, which duplicates::reject forbids; the lowest is row " +
                         std::to_string(lowest)));
  }
  [[nodiscard]] std::exception_ptr nonfinite_error(std::int64_t width) const {
    const std::size_t r = first(&batch_findings::nonfinite);
    const auto wide = static_cast<std::uint64_t>(width < 1 ? 1 : width);
    const std::uint64_t place = of_[r].first_value / nonfinite_value::kinds;
    return std::make_exception_ptr(invalid_argument(
        begin() + std::to_string(nonfinite()) + " of the elements for rows of " + table_.describe() +
        " are infinite or not a number, which nonfinite::reject forbids; the first is " +
        nonfinite_value::names[of_[r].first_value % nonfinite_value::kinds] + " in column " +
        std::to_string(place % wide) + " at position " + std::to_string(place / wide) + of_rank(r)));
  }

 private:
  [[nodiscard]] static std::string number(std::uint64_t bits, bool is_signed) {
    return is_signed ? std::to_string(static_cast<std::int64_t>(bits)) : std::to_string(bits);
  }
  [[nodiscard]] std::uint64_t sum(std::uint64_t batch_findings::*what) const {
    std::uint64_t all = 0;
    for (const batch_findings& each : of_) all += each.*what;
    return all;
  }
  [[nodiscard]] std::size_t first(std::uint64_t batch_findings::*what) const {
    for (std::size_t r = 0; r < of_.size(); ++r)
      if (of_[r].*what != 0) return r;
    return 0;
  }
  [[nodiscard]] std::string begin() const { return std::string("ferry::") + verb_ + ": "; }
  [[nodiscard]] std::string of_rank(std::size_t r) const {
    return whole_ ? std::string() : " of rank " + std::to_string(r);
  }

  const char* verb_;
  array_note table_;
  const std::vector<batch_findings>& of_;
  bool whole_;
};

/// A ticket of work that has ended; wait() throws the error.
inline ticket ticket_of_error(const std::exception_ptr& error) {
  ticket_state_handle state(new ticket_state);
  state->resources.push_back(std::make_shared<std::exception_ptr>(error));
  state->find_error = [](ticket_state& of) {
    return *static_cast<std::exception_ptr*>(of.resources.front().get());
  };
  return ticket(std::move(state));
}

}  // namespace ferry::detail
