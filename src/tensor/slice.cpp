// SPDX-License-Identifier: Apache-2.0
#include <ferry/tensor/slice.hpp>

#include <ferry/error.hpp>

#include <string>
#include <string_view>

namespace ferry::detail {

namespace {

std::string array_text(const array_label& label, const std::string& shape, std::string_view space) {
  return "'" + label + "' " + shape + " in " + std::string(space);
}

}  // namespace

void refuse_rows_between(const array_label& label, const std::string& shape, std::string_view space,
                         long long begin, long long end, long long rows) {
  const std::string array = array_text(label, shape, space);
  if (begin < 0 || end < 0 || begin > rows || end > rows)
    throw out_of_range("ferry::rows_between: rows " + std::to_string(begin) + " to " + std::to_string(end) +
                       " do not lie inside of " + array);
  throw invalid_argument("ferry::rows_between: the first row, " + std::to_string(begin) +
                         ", comes after the end, " + std::to_string(end) + ", in " + array);
}

void refuse_first_rows(const array_label& label, const std::string& shape, std::string_view space,
                       long long count, long long rows) {
  throw out_of_range("ferry::first: the number of rows is " + std::to_string(count) +
                     ", must be from 0 to the " + std::to_string(rows) + " of " +
                     array_text(label, shape, space));
}

}  // namespace ferry::detail
