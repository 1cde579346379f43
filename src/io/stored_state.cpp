// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/stored_state.hpp>

#include <ferry/error.hpp>
#include <ferry/io/detail/optimizer_facts.hpp>
#include <ferry/io/detail/rule_options.hpp>
#include <ferry/optim/detail/step_counters.hpp>
#include <ferry/policy/step_count.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {
namespace {

template <class Number>
manifest_fact number_fact(const char* name, Number value) {
  manifest_fact fact;
  fact.name = name;
  fact.kind = kind_of_number<Number>();
  fact.numbers.push_back(fact_bits(value));
  return fact;
}

void add_array(const checkpoint_array& array, manifest_entry& to, std::vector<checkpoint_array>& arrays) {
  to.arrays.push_back(array.schema);
  arrays.push_back(array);
}

/// An array of numbers that belongs to the save.
checkpoint_array array_of_numbers(const char* name, std::vector<std::uint64_t>&& numbers) {
  const auto memory = std::make_shared<std::vector<std::uint64_t>>(std::move(numbers));
  checkpoint_array array;
  array.schema.name = name;
  array.schema.dtype = dtype_name<std::uint64_t>();
  array.schema.element_bytes = sizeof(std::uint64_t);
  array.schema.extents = {memory->size()};
  array.row_bytes = array.row_stride = sizeof(std::uint64_t);
  choose_chunks(array.schema, array.row_bytes);
  array.data = reinterpret_cast<std::byte*>(memory->data());
  array.owner = memory;
  return array;
}

}  // namespace

stored_state::stored_state(std::string name, const std::vector<checkpoint_array>& fields, bool is_const)
    : checkpoint_entry(std::move(name)), is_const_(is_const) {
  for (const auto& each : fields) fields_.emplace_back(each);
}

void stored_state::describe(manifest_entry& to, std::vector<checkpoint_array>& arrays) const {
  const state_counts now = counts();
  to.kind = "state";
  to.facts = optimizer();
  to.facts.push_back(number_fact("steps", now.steps));
  to.facts.push_back(number_fact("skipped", now.skipped));
  to.facts.push_back(number_fact("seed", now.seed));
  manifest_fact& policy = to.facts.emplace_back();
  policy.name = "row_policy";
  policy.words = std::string(now.row_policy);
  for (const auto& each : fields_) add_array(each.current(name()), to, arrays);
  if (now.row_policy.empty()) return;
  add_array(saved_counters(), to, arrays);
  if (now.row_policy != step_count::catch_up::name) return;
  recorded_steps history = recorded();
  to.facts.push_back(number_fact("history_first", history.first));
  to.facts.push_back(number_fact("history_in_double", std::uint64_t{history.in_double ? 1u : 0u}));
  add_array(array_of_numbers("history", std::move(history.numbers)), to, arrays);
}

void stored_state::prepare(const load_source& from, const manifest_entry& stored,
                           std::vector<load_step>& to) {
  require_kind(from, stored, "state");
  const auto why = optimizer_difference(stored.facts, optimizer(), is_const_);
  if (!why.empty())
    from.fail(name(),
              why + (is_const_ ? "; the options of a rule that was added as const are compared, those "
                                 "of others are loaded"
                               : ""));
  state_counts& next = begin_load();
  if (!is_const_) prepare_options(from, stored);
  next.steps = whole(from, stored, "steps", 0);
  next.skipped = whole(from, stored, "skipped", 0);
  next.seed = static_cast<std::uint64_t>(whole(from, stored, "seed", std::nullopt));
  for (const auto& each : fields_)
    load_into(from, name(), stored.array(each.schema().name), each.current(name()), to);
  const std::size_t known = fields_.size() + prepare_rows(from, stored, next, to);
  if (stored.arrays.size() == known) return;
  for (const auto& each : stored.arrays)
    if (each.name != "row_steps" && each.name != "history" &&
        std::none_of(fields_.begin(), fields_.end(),
                     [&](const kept_array& field) { return field.schema().name == each.name; }))
      from.fail(name(), "the file has '" + each.name + "' " + each.describe() +
                            ", which the state here lacks; make the state with the same options");
}

std::int64_t stored_state::whole(const load_source& from, const manifest_entry& stored, const char* fact,
                                 std::optional<std::int64_t> least) const {
  const manifest_fact* const found = stored.fact(fact);
  if (found == nullptr || found->kind == manifest_fact::text || found->kind == manifest_fact::real ||
      found->numbers.size() != 1)
    from.fail(name(), std::string("the file has no number '") + fact + "' for it");
  const auto value = static_cast<std::int64_t>(found->numbers[0]);
  if (least && value < *least)
    from.fail(name(), std::string("'") + fact + "' is " + std::to_string(value) + " in the file");
  return value;
}

void stored_state::prepare_options(const load_source& from, const manifest_entry& stored) {
  std::vector<manifest_fact> facts;
  for (const auto& each : stored.facts)
    if (is_optimizer_fact(each)) facts.push_back(each);
  try {
    load_options(facts);
  } catch (const invalid_argument& unfit) {
    from.fail(name(), std::string("the options in the file are not valid: ") + unfit.what());
  }
}

std::size_t stored_state::prepare_rows(const load_source& from, const manifest_entry& stored,
                                       state_counts& next, std::vector<load_step>& to) {
  const manifest_fact* const policy = stored.fact("row_policy");
  if (policy == nullptr || policy->kind != manifest_fact::text)
    from.fail(name(), "the file has no text 'row_policy' for it");
  if (policy->words.empty()) return 0;
  if (policy->words != step_count::per_row::name && policy->words != step_count::catch_up::name)
    from.fail(name(), "its rows count steps by '" + policy->words + "', which this ferry does not know");
  if (next.steps > optim::most_row_steps)
    from.fail(name(), "it has taken " + std::to_string(next.steps) + " steps, but its rows count to " +
                          std::to_string(optim::most_row_steps));
  const manifest_array* const counters = stored.array("row_steps");
  if (counters == nullptr || counters->dtype != "u32" || counters->extents.size() != 1)
    from.fail(name(), "the file has no counters 'row_steps' of its rows");
  const auto rows = counters->extents[0];
  for (const auto& each : fields_)
    if (each.schema().extents[0] != rows)
      from.fail(name(), "the file has counters of " + std::to_string(rows) +
                            " rows, and the state here has " + std::to_string(each.schema().extents[0]) +
                            " rows");
  load_into(from, name(), counters, loaded_counters(static_cast<std::size_t>(rows)), to);
  recorded_steps history;
  if (policy->words == step_count::per_row::name) {
    next.row_policy = step_count::per_row::name;
    history.first = next.steps + 1;
    static_cast<void>(load_recorded(history));
    return 1;
  }
  next.row_policy = step_count::catch_up::name;
  history.first = whole(from, stored, "history_first", 1);
  history.in_double = whole(from, stored, "history_in_double", 0) != 0;
  const manifest_array* const array = stored.array("history");
  if (array == nullptr || array->dtype != "u64" || array->element_bytes != sizeof(std::uint64_t) ||
      array->extents.size() != 1)
    from.fail(name(), "the file has no 'history' of its steps");
  history.numbers.resize(static_cast<std::size_t>(array->extents[0]));
  std::vector<std::byte> scratch;
  for (std::size_t place = 0; place < array->chunks.size(); ++place)
    from.files.read_chunk(*array, place,
                          reinterpret_cast<std::byte*>(history.numbers.data()) + place * array->chunk_bytes,
                          scratch, "entry '" + name() + "', array 'history'");
  if (history.numbers.size() < 2) from.fail(name(), "its history is too short");
  const auto why = load_recorded(history);
  if (!why.empty()) from.fail(name(), why);
  const bool has_spans = history.numbers[0] != 0;
  require_recorded(from, *counters, has_spans ? history.first - 1 : next.steps, next.steps);
  return 2;
}

void stored_state::require_recorded(const load_source& from, const manifest_array& counters,
                                    std::int64_t least, std::int64_t steps) const {
  bool all = least <= steps;
  std::vector<std::byte> bytes, scratch;
  const auto [first, stride] = share_of_counters();
  for (std::size_t place = first; place < counters.chunks.size(); place += stride) {
    bytes.resize(static_cast<std::size_t>(counters.bytes_of_chunk(place)));
    from.files.read_chunk(counters, place, bytes.data(), scratch,
                          "entry '" + name() + "', array 'row_steps'");
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint32_t)) {
      std::uint32_t done = 0;
      std::memcpy(&done, bytes.data() + at, sizeof done);
      all = all && std::int64_t{done} >= least;
    }
  }
  if (!all) from.fail(name(), "its rows have missed steps that are not in its history");
}

}  // namespace ferry::detail
