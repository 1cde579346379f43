// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/findings.hpp>

#include <ferry/error.hpp>

#include <cstdio>
#include <utility>

namespace ferry::detail {

namespace {

/// A bad index, or an offset.
text_piece number(std::uint64_t bits, bool is_signed) {
  return is_signed ? text_piece(static_cast<std::int64_t>(bits)) : text_piece(bits);
}

/// The error about values that are not finite, in rows of `width` elements.
std::exception_ptr nonfinite_error(const index_report& report, const std::string& verb,
                                   const std::string& tables, const array_note& values, std::int64_t width) {
  const auto wide = static_cast<std::uint64_t>(width < 1 ? 1 : width);
  const auto index = report.first_value / nonfinite_value::kinds;
  return std::make_exception_ptr(invalid_argument(joined(
      "ferry::", verb, ": ", report.nonfinite, " of the elements of ", values.describe(), " for rows of ",
      tables, " are infinite or not a number, which nonfinite::reject forbids; the first is ",
      nonfinite_value::names[report.first_value % nonfinite_value::kinds], " in column ", index % wide,
      " at position ", index / wide)));
}

/// The error of a report on pairs of rows. The number of a bag is that of the side, and has the sign.
std::exception_ptr pairing_error(const index_report& report, const std::string& verb,
                                 const table_descriptions& sides, std::int64_t positions,
                                 bool signed_indices) {
  if (report.out_of_range == 0)
    return found_error(report, verb, sides.tables[0], {}, 0, positions, signed_indices);
  const auto side = static_cast<std::size_t>(report.first_bag & 1);
  const bool is_signed = signed_indices && report.first_bag < 2;
  return std::make_exception_ptr(out_of_range(
      joined("ferry::", verb, ": ", counted(report.out_of_range, "row number", "row numbers"), " of ",
             positions, " pairs are outside of their tables; the first is ", side == 0 ? "target" : "source",
             " row ", number(report.first_index, is_signed), " at position ", report.first_position,
             ", outside of ", sides.tables[side].describe())));
}

}  // namespace

std::string describe_offset(const index_report& report, std::int64_t positions, const std::string& owner) {
  const bool is_signed = report.unsigned_offsets == 0;
  const std::string offset = joined("offsets[", report.first_offset,
                                    "] = ", number(report.first_offset_number, is_signed), owner, ", ");
  switch (report.fault) {
    case offset_fault::negative:
      return offset + "which is negative";
    case offset_fault::beyond:
      return joined(offset, "which exceeds the ", positions, " positions");
    case offset_fault::decreases:
      // Either of the two may be the wrong one.
      return joined(offset, "which is less than offsets[", report.first_offset - 1,
                    "] = ", number(report.offset_before, is_signed));
    case offset_fault::late:
      return offset + "which leaves positions without a bag: the first bag of a step begins at position 0";
    case offset_fault::early:
      break;
  }
  return joined(offset, "which leaves positions without a bag: the last bag of a step ends at position ",
                positions);
}

std::exception_ptr found_error(const index_report& report, const std::string& verb, const array_note& table,
                               const array_note& values, std::int64_t width, std::int64_t positions,
                               bool signed_indices) {
  const std::string table_text = table.describe();
  if (report.bad_bags != 0)
    return std::make_exception_ptr(out_of_range(
        joined("ferry::", verb, ": the offsets of ", counted(report.bad_bags, "bag", "bags"), " for rows of ",
               table_text, " are bad; the first is ", describe_offset(report, positions))));
  if (report.out_of_range != 0) {
    const text_piece index = number(report.first_index, signed_indices);
    // A row of the table is bad only in the line of another group of a cache.
    const bool in_table = report.first_index < static_cast<std::uint64_t>(table.extents[0]);
    return std::make_exception_ptr(out_of_range(
        joined("ferry::", verb, ": ", report.out_of_range, " of ", positions, " indices are outside of ",
               in_table ? "the ranges of their groups in " : "", table_text, "; the first is index ", index,
               " at position ", report.first_position, in_table ? ", in the line of another group" : "")));
  }
  if (report.overflows != 0)
    return std::make_exception_ptr(invalid_argument(
        joined("ferry::", verb, ": the batch has more different rows of ", table_text, " than slots in ",
               counted(report.overflows, "group", "groups"), " of its cache; the first is group ",
               report.first_group, ". overflow::spill leaves rows out")));
  if (report.duplicates == 0 && report.nonfinite != 0)
    return nonfinite_error(report, verb, table_text, values, width);
  return std::make_exception_ptr(invalid_argument(joined(
      "ferry::", verb, ": ", counted(report.duplicates, "row", "rows"), " of ", table_text,
      report.duplicates == 1 ? " is" : " are",
      " named more than once, which duplicates::reject forbids; the lowest is row ", report.first_row)));
}

std::exception_ptr found_error(const index_report& report, const std::string& verb,
                               const table_descriptions& list, const array_note& values,
                               std::int64_t positions, bool signed_indices) {
  if (list.bags == 0) return pairing_error(report, verb, list, positions, signed_indices);
  if (report.out_of_range == 0) {
    std::int64_t width = 1;
    for (std::size_t i = 1; i < values.rank; ++i) width *= values.extents[i];
    return nonfinite_error(report, verb, counted(list.tables.size(), "table", "tables"), values, width);
  }
  const auto bags = static_cast<std::uint64_t>(list.bags);
  const bool is_offset = report.bad_bags != 0;
  // An offset is where a bag begins, but for the last one.
  const std::uint64_t index = is_offset ? report.first_offset : report.first_bag;
  const bool is_last = index == bags * list.tables.size();
  const std::uint64_t bag = is_last ? index - 1 : index;
  const std::string table = list.tables[static_cast<std::size_t>(bag / bags)].describe();
  if (is_offset)
    return std::make_exception_ptr(out_of_range(joined(
        "ferry::", verb, ": the offsets of ", counted(report.bad_bags, "bag", "bags"), " of ",
        counted(list.tables.size(), "table", "tables"), " are bad; the first is ",
        describe_offset(report, positions,
                        joined(", where bag ", bag % bags, " of ", table, is_last ? " ends" : " begins")))));
  return std::make_exception_ptr(out_of_range(joined(
      "ferry::", verb, ": ", report.out_of_range, " of ", positions,
      " indices are outside of their tables; the first is index ", number(report.first_index, signed_indices),
      " at position ", report.first_position, ", in bag ", bag % bags, " of ", table)));
}

void print_unheard(const std::exception_ptr& lost) noexcept {
  try {
    std::rethrow_exception(lost);
  } catch (const std::exception& said) {
    std::fprintf(stderr, "ferry: nobody waited for this error: %s\n", said.what());
  } catch (...) {
    std::fprintf(stderr, "ferry: nobody waited for an error that is no std::exception\n");
  }
}

void unheard_findings::add(instance_id who, const std::exception_ptr& error) noexcept {
  try {
    const std::lock_guard lock(guard_);
    if (list_.size() < max_findings) return list_.push_back({who, error});
  } catch (...) {  // no memory for the list
  }
  print_unheard(error);
}

std::exception_ptr unheard_findings::take(instance_id who) noexcept {
  std::exception_ptr error;
  const std::lock_guard lock(guard_);
  std::erase_if(list_, [&](entry& finding) {
    if (error != nullptr || finding.who != who) return false;
    error = std::move(finding.error);
    return true;
  });
  return error;
}

}  // namespace ferry::detail
