// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/error.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace ferry::detail {

namespace {

std::string number_in_words(std::uint64_t bits, bool is_signed) {
  return is_signed ? std::to_string(static_cast<std::int64_t>(bits)) : std::to_string(bits);
}

}  // namespace

bool all_findings::has_error() const {
  return sum(&batch_findings::bad_bags) + sum(&batch_findings::out_of_range) +
             sum(&batch_findings::duplicates) !=
         0;
}

std::exception_ptr all_findings::error() const {
  if (sum(&batch_findings::bad_bags) != 0) return offsets_error();
  if (sum(&batch_findings::out_of_range) != 0) return bounds_error();
  if (sum(&batch_findings::duplicates) != 0) return duplicates_error();
  return nullptr;
}

std::exception_ptr all_findings::offsets_error() const {
  const std::size_t r = first(&batch_findings::bad_bags);
  const batch_findings& findings = findings_[r];
  std::string owner = of_rank(r);
  if (!tables_.empty()) {
    const std::uint64_t place = findings.offsets.first_offset;
    const bool is_last = place == static_cast<std::uint64_t>(findings.bags) * tables_.size();
    owner += ", where " + bag_of_table(r, is_last ? place - 1 : place) + (is_last ? " ends" : " begins");
  }
  return std::make_exception_ptr(ferry::out_of_range(
      begin() + "the offsets of " + counted(sum(&batch_findings::bad_bags), "bag", "bags") + " for rows of " +
      rows_of_tables() + " are bad; the first is " +
      describe_offset(findings.offsets, findings.positions, owner)));
}

std::exception_ptr all_findings::bounds_error() const {
  const std::size_t r = first(&batch_findings::out_of_range);
  const batch_findings& findings = findings_[r];
  std::int64_t total = 0;
  for (const batch_findings& rank : findings_) total += rank.positions;
  const std::string index = number_in_words(findings.first_index, findings.signed_indices != 0);
  return std::make_exception_ptr(ferry::out_of_range(
      begin() + std::to_string(sum(&batch_findings::out_of_range)) + " of " + std::to_string(total) +
      " indices are outside of " + rows_of_tables() + "; the first is index " + index + " at position " +
      std::to_string(findings.first_position) +
      (tables_.empty() ? std::string() : ", in " + bag_of_table(r, findings.first_bag)) + of_rank(r)));
}

std::exception_ptr all_findings::duplicates_error() const {
  std::uint64_t lowest = ~std::uint64_t{0};
  for (const batch_findings& rank : findings_) lowest = rank.first_row < lowest ? rank.first_row : lowest;
  const std::uint64_t count = sum(&batch_findings::duplicates);
  return std::make_exception_ptr(invalid_argument(
      begin() + counted(count, "row", "rows") + " of " + table_.describe() + (count == 1 ? " is" : " are") +
      " named more than once, which duplicates::reject forbids; the lowest is row " +
      std::to_string(lowest)));
}

std::exception_ptr all_findings::nonfinite_error(std::int64_t width) const {
  const std::size_t r = first(&batch_findings::nonfinite);
  const auto wide = static_cast<std::uint64_t>(width < 1 ? 1 : width);
  const std::uint64_t place = findings_[r].first_value / nonfinite_value::kinds;
  return std::make_exception_ptr(invalid_argument(
      begin() + std::to_string(nonfinite()) + " of the elements for rows of " + rows_of_tables() +
      " are infinite or not a number, which nonfinite::reject forbids; the first is " +
      nonfinite_value::names[findings_[r].first_value % nonfinite_value::kinds] + " in column " +
      std::to_string(place % wide) + " at position " + std::to_string(place / wide) + of_rank(r)));
}

std::uint64_t all_findings::sum(count_of count) const {
  std::uint64_t total = 0;
  for (const batch_findings& rank : findings_) total += rank.*count;
  return total;
}

std::size_t all_findings::first(count_of count) const {
  for (std::size_t r = 0; r < findings_.size(); ++r)
    if (findings_[r].*count != 0) return r;
  return 0;
}

std::string all_findings::begin() const { return std::string("ferry::") + verb_ + ": "; }

std::string all_findings::of_rank(std::size_t r) const {
  return whole_ ? std::string() : " of rank " + std::to_string(r);
}

std::string all_findings::rows_of_tables() const {
  return tables_.empty() ? table_.describe() : std::to_string(tables_.size()) + " tables";
}

std::string all_findings::bag_of_table(std::size_t r, std::uint64_t bag) const {
  const auto bags = static_cast<std::uint64_t>(findings_[r].bags);
  return "bag " + std::to_string(bag % bags) + " of " +
         tables_[static_cast<std::size_t>(bag / bags)].describe();
}

ticket ticket_of_error(const std::exception_ptr& error) {
  if (error == nullptr) return {};
  ticket_state_handle state(new ticket_state);
  state->resources.push_back(std::make_shared<std::exception_ptr>(error));
  state->find_error = [](ticket_state& state_of_ticket) {
    return *static_cast<std::exception_ptr*>(state_of_ticket.resources.front().get());
  };
  return ticket(std::move(state));
}

}  // namespace ferry::detail
