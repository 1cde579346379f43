// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/joined_tables.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry::detail {

void add_numbers(call_note& note, const std::vector<std::uint64_t>& numbers) {
  const auto step = [&](std::size_t i) { return numbers[i + 1] - numbers[i]; };
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;  // of a series that ascends by equal steps
    while (last + 1 < numbers.size() && numbers[last + 1] > numbers[last] && step(last) == step(i)) ++last;
    if (last < i + 2) last = i;
    if (i != 0) note.add(",");
    note.add_number(numbers[i]);
    if (last != i) note.add(" to").add_number(numbers[last]);
    if (last != i && step(i) != 1) note.add(" by").add_number(step(i));
    i = last + 1;
  }
}

}  // namespace ferry::detail
