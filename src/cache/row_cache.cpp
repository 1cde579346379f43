// SPDX-License-Identifier: Apache-2.0
#include <ferry/cache/detail/row_cache.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>

#include <algorithm>

namespace ferry::detail {

void cached_array::allocate(const std::string& label, std::int64_t slots) {
  if (stride == 0) return;
  memory = tensor<std::byte, device_space>(label + "::hot", (slots + 1) * stride);
  memory.accesses()->note_untracked_use();
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const auto step = static_cast<std::uintptr_t>(stride);
  hot = address + (cold % step + step - address % step) % step;
}

cache_memory::cache_memory(const std::string& label, std::int64_t rows, std::int64_t most) : slots(most) {
  // A directory's entry has a bit beside the slot, see coming_bit; a row and its slot share a number, see
  // row_cache::row_bits().
  const int bits = std::min(31, 62 - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows))));
  if (slots >= (std::int64_t{1} << bits) - 1)
    throw invalid_argument("ferry::cached_table: the " + std::to_string(rows) + " rows of '" + label +
                           "' are too many for " + std::to_string(slots) + " cached ones");
  std::int64_t end = 0;
  const auto take = [&](std::int64_t count) {
    const std::int64_t begin = end;
    end += (count + 15) / 16 * 16;  // lines of 128 bytes
    return begin;
  };
  const auto directory = take((rows + 1) / 2);
  const auto current_rows = take(slots), next_rows = take(slots), entering = take(slots);
  const auto tallies = take(2 * tally_room + 4), histogram = take(digits * bins / 2),
             choice = take(choice_words);
  const auto moving_count = take(1);
  const auto changed = take((slots + 7) / 8), stale = take((slots + 7) / 8);
  words = tensor<std::uint64_t, device_space>(label + "::directory", end);
  words.accesses()->note_untracked_use();  // of exchanges
  const auto word = [&](std::int64_t begin) { return words.data() + begin; };
  book = {{reinterpret_cast<std::uint32_t*>(word(directory))},
          reinterpret_cast<std::int64_t*>(word(current_rows)),
          reinterpret_cast<std::int64_t*>(word(next_rows)),
          word(tallies),
          reinterpret_cast<std::int64_t*>(word(entering)),
          reinterpret_cast<std::int64_t*>(word(entering)),  // the choice is over when slots are listed
          word(moving_count),
          reinterpret_cast<std::uint32_t*>(word(histogram)),
          word(choice),
          reinterpret_cast<std::uint8_t*>(word(changed)),
          reinterpret_cast<std::uint8_t*>(word(stale))};
}

std::ptrdiff_t row_cache::find(std::uintptr_t first, const std::shared_ptr<access_tracker>& tracker) const {
  const auto has = [&](const cached_array& array) {
    return first == array.cold || (first > array.cold && first - array.cold < array.part_bytes());
  };
  for (std::size_t a = 0; a < arrays.size(); ++a)
    if (has(arrays[a]) && arrays[a].accesses.lock() == tracker) return static_cast<std::ptrdiff_t>(a);
  return -1;
}

bool row_cache::begins_batch(const std::shared_ptr<plan_storage>& plan) {
  if (plan == nullptr) {
    latest.reset();
    return true;
  }
  const auto& base = plan->base != nullptr ? plan->base : plan;  // bags make plans of plans
  if (latest.lock() == base) return false;
  latest = base;
  return true;
}

void row_cache::hold(row_hold how) const noexcept {
  for (const auto& array : arrays)
    if (const auto alive = array.accesses.lock()) alive->hold(how);
}

void row_cache::open() const noexcept {
  for (const auto& array : arrays)
    if (const auto alive = array.accesses.lock()) alive->open();
}

void row_cache::drop_lost() {
  const auto lost = [](const cached_array& array) { return array.accesses.expired(); };
  bool any = false;
  for (std::size_t a = 1; a < arrays.size(); ++a) any = any || lost(arrays[a]);
  if (!any) return;
  accesses()->wait_for_all();  // their memory may still be in use
  if (exchange.completion != nullptr) exchange.completion->wait();
  std::erase_if(arrays, [&](const cached_array& array) { return &array != &arrays.front() && lost(array); });
}

cache_use::cache_use(row_cache& cache, const char* verb) : lock_(cache.guard), cache_(cache) {
  if (cache.arrays.front().accesses.expired())
    throw invalid_argument("ferry::" + std::string(verb) + ": the table '" + cache.label +
                           "' of the cached_table was destroyed");
  cache.drop_lost();
  cache.open();
}

cache_use::~cache_use() { cache_.hold(cache_.changed ? row_hold::closed : row_hold::readable); }

void refuse_own_rows(const char* verb, const row_cache& cache, const array_note& operand) {
  throw invalid_argument("ferry::" + std::string(verb) + ": " + operand.describe() +
                         " has rows in the same cached_table of '" + cache.label +
                         "', which may be newer in device memory; pass a copy of it, made after a flush()");
}

}  // namespace ferry::detail
