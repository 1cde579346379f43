// SPDX-License-Identifier: Apache-2.0
#include <ferry/cache/detail/row_cache.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/cache/cache_policy.hpp>
#include <ferry/cache/detail/make_cache.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/rows/init.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <span>
#include <string>

namespace ferry::kernels {

/// The order of groups that have used no slot; one thread for each.
struct first_order {
  std::int32_t* order;
  std::int64_t group_slots;
  KOKKOS_FUNCTION void operator()(std::int64_t slot) const {
    order[slot] = static_cast<std::int32_t>(slot % group_slots);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

cached_array::cached_array(const untyped_array& array, std::int64_t bytes_of_row)
    : cold(reinterpret_cast<std::uintptr_t>(array.data)),
      stride(array.shape.row_stride() * static_cast<std::int64_t>(array.element_bytes)),
      row_bytes(bytes_of_row),
      accesses(array.shape.accesses) {}

void cached_array::allocate(const std::string& label, std::int64_t slots) {
  if (stride == 0) return;
  memory = tensor<std::byte, device_space>(label + "::hot", (slots + 1) * stride);
  memory.accesses()->record_untracked_use();
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const auto step = static_cast<std::uintptr_t>(stride);
  hot = address + (cold % step + step - address % step) % step;
}

cache_memory::cache_memory(const std::string& label, std::int64_t rows, std::int64_t most,
                           std::int64_t groups)
    : slots(most) {
  // A directory's entry has a bit beside the slot, see loading_bit; a row and its slot share a number, see
  // row_cache::row_bits().
  const int bits = std::min(31, 62 - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows))));
  if (slots >= (std::int64_t{1} << bits) - 1)
    throw invalid_argument(joined("ferry::cached_table: the ", rows, " rows of '", label,
                                  "' are too many for ", slots, " cached ones"));
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
  const std::int64_t ordered = groups == 0 ? 0 : slots;
  const auto order = take((ordered + 1) / 2), free_slots = take((ordered + 1) / 2), marks = take(ordered),
             batches = take(groups);
  words = tensor<std::uint64_t, device_space>(label + "::directory", end);
  words.accesses()->record_untracked_use();  // of refreshes
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
  if (groups != 0)
    uses = {reinterpret_cast<std::int32_t*>(word(order)),
            reinterpret_cast<std::int32_t*>(word(free_slots)),
            word(marks),
            word(batches),
            slots / groups,
            rows / groups,
            slots == 0 ? 0 : groups};
}

const cached_array* row_cache::find(const untyped_array& array) const {
  const auto first = reinterpret_cast<std::uintptr_t>(array.data);
  for (const cached_array& entry : arrays)
    if ((first == entry.cold ||
         (first > entry.cold && first - entry.cold < static_cast<std::uintptr_t>(entry.row_bytes))) &&
        entry.accesses.lock() == array.shape.accesses)
      return &entry;
  return nullptr;
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
  if (refresh.completion != nullptr) refresh.completion->wait();
  std::erase_if(arrays, [&](const cached_array& array) { return &array != &arrays.front() && lost(array); });
}

cache_use::cache_use(row_cache& cache, const char* verb) : lock_(cache.guard), cache_(cache) {
  if (cache.arrays.front().accesses.expired())
    throw invalid_argument(
        joined("ferry::", verb, ": the table '", cache.label, "' of the cached_table was destroyed"));
  cache.drop_lost();
  cache.open();
}

cache_use::~cache_use() { cache_.hold(cache_.changed ? row_hold::closed : row_hold::readable); }

void require_foreign_array(const char* verb, const row_cache& cache, const untyped_array& operand) {
  if (operand.shape.accesses == nullptr) return;
  for (const cached_array& entry : cache.arrays)
    if (entry.accesses.lock() == operand.shape.accesses)
      throw invalid_argument(joined(
          "ferry::", verb, ": ", operand.note().describe(), " has rows in the same cached_table of '",
          cache.label, "', which may be newer in device memory; pass a copy of it, made after a flush()"));
}

void require_tracked_rows(const untyped_array& array) {
  if (array.shape.accesses == nullptr)
    throw invalid_argument("ferry::cached_table: " + array.note().describe() +
                           " is an empty handle, or no ferry::tensor with a record of its accesses");
  require_dense_rows("cached_table", array);
}

namespace {

/// Attaches the cache of a label to the arrays: to all, or to none.
void attach_arrays(const std::string& label, std::span<const untyped_array> arrays) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].shape.accesses->attach_cache(label)) continue;
    for (std::size_t attached = 0; attached < i; ++attached) arrays[attached].shape.accesses->detach_cache();
    throw invalid_argument("ferry::cached_table: " + arrays[i].note().describe() +
                           " has a cached_table already");
  }
}

void count_uses(row_cache& cache, const cache_choice& choice) {
  cache.interval = choice.slots == 0 ? 0 : choice.interval;
  if (cache.interval == 0 || cache.counts.rows() != 0) return;
  tensor<std::uint32_t, device_space> counts(cache.label + "::counts", cache.rows);
  fill(Kokkos::DefaultExecutionSpace{}, make_ref(counts), std::uint32_t{0});
  counts.accesses()->record_untracked_use();
  cache.counts = std::move(counts);
}

/// Clears the book of new memory, whose slots are to get `rows`. Takes all memory that this needs.
void open_book(cache_memory& memory, const std::vector<std::int64_t>& rows) {
  const Kokkos::DefaultExecutionSpace exec;
  fill(exec, make_ref(memory.words), std::uint64_t{0});
  launch(exec, "ferry::cached_table", memory.uses.groups == 0 ? 0 : memory.slots,
         kernels::first_order{memory.uses.order, memory.uses.group_slots});
  exec.fence("ferry::cached_table");  // verbs may be on any instance
  if (rows.empty() || memory.slots == 0) return;
  launch_context<Kokkos::DefaultExecutionSpace> call(exec, "cached_table");
  auto* buffer = call.pinned<std::int64_t>(memory.slots);
  for (std::int64_t slot = 0; slot < memory.slots; ++slot) {  // row + 1 for each slot, 0 for none
    const auto i = static_cast<std::size_t>(slot);
    buffer[slot] = i < rows.size() ? rows[i] + 1 : 0;
  }
  call.writes_to(tracked(memory.words.accesses()));
  transfer(exec, "ferry::cached_table", memory.book.next_rows, device_space::name, buffer, pinned_space::name,
           memory.slots * static_cast<std::int64_t>(sizeof(std::int64_t)));
  call.finish().join();
}

/// Loads the rows that open_book() has listed.
void fill_cache(row_cache& cache, const std::vector<std::int64_t>& rows) {
  if (rows.empty()) return;
  launch_context<Kokkos::DefaultExecutionSpace> call(Kokkos::DefaultExecutionSpace{}, "cached_table");
  use_slots(call, cache, true);
  refresh_now(call, cache);
  call.finish().join();
}

}  // namespace

std::unique_ptr<row_cache> fill_new_cache(std::span<const untyped_array> arrays, std::int64_t row_bytes,
                                          const cache_choice& choice, decltype(row_cache::stage) stage) {
  auto cache = std::make_unique<row_cache>();
  cache->label = arrays.front().shape.label;
  cache->rows = arrays.front().shape.rows();
  cache->stage = stage;
  cache->writes_through = choice.writes_through;
  if (stage != nullptr && choice.groups != 0)
    throw invalid_argument(
        "ferry::cached_table: kernels fetch rows under cache::lru, but the device does not reach " +
        arrays.front().note().describe());
  cache->memory = cache_memory(cache->label, cache->rows, choice.slots, choice.groups);
  cache->table = arrays.front().shape.accesses;
  for (const untyped_array& array : arrays) {
    if (!cache->arrays.empty())
      row_bytes = array.shape.width() * static_cast<std::int64_t>(array.element_bytes);
    cache->arrays.emplace_back(array, row_bytes).allocate(cache->label, choice.slots);
    cache->row_bytes += row_bytes;
  }
  count_uses(*cache, choice);
  open_book(cache->memory, choice.initial_rows);
  attach_arrays(cache->label, arrays);
  try {
    fill_cache(*cache, choice.initial_rows);
  } catch (...) {
    for (const untyped_array& array : arrays) array.shape.accesses->detach_cache();
    throw;
  }
  cache->hold(row_hold::readable);
  return cache;
}

std::size_t cached_slots(row_cache& cache) {
  const std::lock_guard lock(cache.guard);
  return static_cast<std::size_t>(cache.memory.slots);
}

std::size_t cache_bytes(row_cache& cache) {
  const std::lock_guard lock(cache.guard);
  std::size_t bytes =
      cache.memory.words.size() * sizeof(std::uint64_t) + cache.counts.size() * sizeof(std::uint32_t);
  for (const cached_array& array : cache.arrays) bytes += array.memory.size();
  return bytes;
}

/// Hits, misses, rows loaded and nanoseconds of refreshes since the memory was made. Blocks.
static std::array<std::uint64_t, 4> read_tallies(const row_cache& cache) {
  constexpr std::size_t counters = std::size_t{2} * tally_room;
  std::array<std::uint64_t, counters + 2> words{};
  cache.accesses()->wait_for_all();
  execution_backend<Kokkos::DefaultExecutionSpace>::read(words.data(), cache.memory.book.tallies,
                                                         sizeof words);
  std::array<std::uint64_t, 4> sums{};
  for (std::size_t i = 0; i < counters; ++i) sums[i / tally_room] += words[i];
  sums[2] = words[counters];
  sums[3] = words[counters + 1];
  return sums;
}

cache::statistics read_statistics(row_cache& cache) {
  const std::lock_guard lock(cache.guard);
  auto sums = read_tallies(cache);
  for (std::size_t s = 0; s < sums.size(); ++s) sums[s] += cache.earlier[s];
  const auto row = static_cast<std::uint64_t>(cache.row_bytes);
  return {sums[0], sums[1], sums[0] * row, cache.refreshes, sums[2], static_cast<double>(sums[3]) * 1e-9};
}

void resize_cache(row_cache& cache, const cache_choice& choice) {
  cache_memory memory(cache.label, cache.rows, choice.slots, choice.groups);
  std::vector<cached_array> arrays;
  for (const cached_array& array : cache.arrays) {
    cached_array& replacement = arrays.emplace_back();
    replacement.cold = array.cold;
    replacement.stride = array.stride;
    replacement.row_bytes = array.row_bytes;
    replacement.accesses = array.accesses;
    replacement.allocate(cache.label, memory.slots);
  }
  open_book(memory, choice.initial_rows);
  {
    launch_context<Kokkos::DefaultExecutionSpace> call(Kokkos::DefaultExecutionSpace{}, "cached_table");
    flush_rows(call, cache);
    call.finish().join();
  }
  const auto sums = read_tallies(cache);
  const std::int64_t interval = cache.interval;
  const bool counted = cache.counts.rows() != 0;
  count_uses(cache, choice);
  std::swap(cache.memory, memory);
  std::swap(cache.arrays, arrays);
  try {
    fill_cache(cache, choice.initial_rows);
  } catch (...) {  // since the flush, the former memory and the table hold equal rows
    std::swap(cache.memory, memory);
    std::swap(cache.arrays, arrays);
    cache.interval = interval;
    if (!counted) cache.counts = {};
    throw;
  }
  for (std::size_t s = 0; s < sums.size(); ++s) cache.earlier[s] += sums[s];
  cache.due = cache.batches;
}

void end_cache(row_cache& cache) noexcept {
  try {
    if (!Kokkos::is_initialized()) {
      if (cache.changed || cache.captured)
        std::fprintf(
            stderr,
            "ferry: the cached_table of '%s' was destroyed after Kokkos::finalize; changes that were "
            "not flushed are lost\n",
            cache.label.c_str());
    } else {
      const bool whole = !cache.arrays.front().accesses.expired();
      if (whole && (cache.changed || cache.captured))
        flush_cache(Kokkos::DefaultExecutionSpace{}, cache).join();
      cache.accesses()->wait_for_all();
      if (cache.refresh.completion != nullptr) cache.refresh.completion->wait();
    }
  } catch (const std::exception& lost) {
    std::fprintf(stderr, "ferry: the cached_table of '%s' could not write its changes: %s\n",
                 cache.label.c_str(), lost.what());
  }
  for (const cached_array& array : cache.arrays)
    if (const auto alive = array.accesses.lock()) alive->detach_cache();
}

}  // namespace ferry::detail

namespace ferry::cache {

std::int64_t fixed::most_rows(std::int64_t table_rows) const {
  return static_cast<std::int64_t>(rows_from_start(table_rows).size());
}

std::vector<std::int64_t> fixed::rows_from_start(std::int64_t table_rows) const {
  std::vector<std::int64_t> list = rows.list();
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  if (!list.empty() && (list.front() < 0 || list.back() >= table_rows))
    throw out_of_range(detail::joined("ferry::cache::fixed: row ",
                                      list.front() < 0 ? list.front() : list.back(),
                                      " is outside of a table of ", table_rows, " rows"));
  return list;
}

}  // namespace ferry::cache
