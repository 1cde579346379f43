// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/state_entry.hpp>

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/optimizer_facts.hpp>
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

bool is_optimizer_fact(const manifest_fact& fact) {
  return fact.name == "rule" || fact.name.rfind("option.", 0) == 0 || fact.name.rfind("transform.", 0) == 0;
}

std::string optimizer_difference(const std::vector<manifest_fact>& saved,
                                 const std::vector<manifest_fact>& current, bool values) {
  std::size_t position = 0;
  const auto next = [&]() -> const manifest_fact* {
    while (position < saved.size() && !is_optimizer_fact(saved[position])) ++position;
    return position < saved.size() ? &saved[position++] : nullptr;
  };
  for (const auto& fact : current) {
    const manifest_fact* const loaded = next();
    if (loaded == nullptr) return "the file lacks '" + fact.name + "', which is " + fact.describe() + " here";
    const bool same_schema = loaded->name == fact.name && loaded->kind == fact.kind &&
                             loaded->numbers.size() == fact.numbers.size() && loaded->words == fact.words;
    if (!same_schema || (values && *loaded != fact))
      return "'" + loaded->name + "' is " + loaded->describe() + " in the file, and " +
             (loaded->name == fact.name ? "" : "'" + fact.name + "' is ") + fact.describe() + " here";
  }
  if (const manifest_fact* const more = next())
    return "'" + more->name + "' is " + more->describe() +
           " in the file, and the optimizer here has no such option";
  return {};
}

namespace {

template <class Number>
manifest_fact number_fact(const char* name, Number value) {
  manifest_fact fact;
  fact.name = name;
  fact.kind = kind_of_number<Number>();
  fact.numbers.push_back(fact_bits(value));
  return fact;
}

void add_array(const checkpoint_array& array, manifest_entry& description,
               std::vector<checkpoint_array>& arrays) {
  description.arrays.push_back(array.schema);
  arrays.push_back(array);
}

/// An array of numbers that belongs to the save.
checkpoint_array array_of_numbers(const char* name, std::vector<std::uint64_t>&& numbers) {
  const auto memory = std::make_shared<std::vector<std::uint64_t>>(std::move(numbers));
  manifest_array schema;
  schema.name = name;
  schema.dtype = dtype_name<std::uint64_t>();
  schema.element_bytes = sizeof(std::uint64_t);
  schema.extents = {memory->size()};
  return array_in_memory(std::move(schema), sizeof(std::uint64_t), {}, memory->data(), memory);
}

}  // namespace

stored_state::stored_state(std::string name, const std::vector<checkpoint_array>& fields, bool is_const)
    : checkpoint_entry(std::move(name)), is_const_(is_const) {
  for (const auto& array : fields) fields_.emplace_back(array);
}

void stored_state::describe(manifest_entry& description, std::vector<checkpoint_array>& arrays) const {
  const state_counts now = counts();
  description.kind = "state";
  description.facts = optimizer();
  description.facts.push_back(number_fact("steps", now.steps));
  description.facts.push_back(number_fact("skipped", now.skipped));
  description.facts.push_back(number_fact("seed", now.seed));
  manifest_fact& policy = description.facts.emplace_back();
  policy.name = "row_policy";
  policy.words = std::string(now.row_policy);
  for (const auto& field : fields_) add_array(field.current(name()), description, arrays);
  if (now.row_policy.empty()) return;
  add_array(saved_counters(), description, arrays);
  if (now.row_policy != step_count::catch_up::name) return;
  recorded_steps history = recorded();
  description.facts.push_back(number_fact("history_first", history.first));
  description.facts.push_back(number_fact("history_in_double", std::uint64_t{history.in_double ? 1u : 0u}));
  add_array(array_of_numbers("history", std::move(history.numbers)), description, arrays);
}

void stored_state::prepare(const load_source& source, const manifest_entry& stored,
                           std::vector<load_step>& steps) {
  require_kind(source, stored, "state");
  const auto why = optimizer_difference(stored.facts, optimizer(), is_const_);
  if (!why.empty())
    source.fail(name(),
                why + (is_const_ ? "; the options of a rule that was added as const are compared, those "
                                   "of others are loaded"
                                 : ""));
  state_counts& next = begin_load();
  if (!is_const_) prepare_options(source, stored);
  next.steps = whole(source, stored, "steps", 0);
  next.skipped = whole(source, stored, "skipped", 0);
  next.seed = static_cast<std::uint64_t>(whole(source, stored, "seed", std::nullopt));
  for (const auto& field : fields_)
    load_into(source, name(), stored.array(field.schema().name), field.current(name()), steps);
  const std::size_t known = fields_.size() + prepare_rows(source, stored, next, steps);
  if (stored.arrays.size() == known) return;
  for (const auto& array : stored.arrays)
    if (array.name != "row_steps" && array.name != "history" &&
        std::none_of(fields_.begin(), fields_.end(),
                     [&](const kept_array& field) { return field.schema().name == array.name; }))
      source.fail(name(), "the file has '" + array.name + "' " + array.describe() +
                              ", which the state here lacks; make the state with the same options");
}

std::int64_t stored_state::whole(const load_source& source, const manifest_entry& stored, const char* fact,
                                 std::optional<std::int64_t> least) const {
  const manifest_fact* const number = stored.fact(fact);
  if (number == nullptr || number->kind == manifest_fact::text || number->kind == manifest_fact::real ||
      number->numbers.size() != 1)
    source.fail(name(), joined("the file has no number '", fact, "' for it"));
  const auto value = static_cast<std::int64_t>(number->numbers[0]);
  if (least && value < *least) source.fail(name(), joined("'", fact, "' is ", value, " in the file"));
  return value;
}

void stored_state::prepare_options(const load_source& source, const manifest_entry& stored) {
  std::vector<manifest_fact> facts;
  for (const auto& fact : stored.facts)
    if (is_optimizer_fact(fact)) facts.push_back(fact);
  try {
    load_options(facts);
  } catch (const invalid_argument& unfit) {
    source.fail(name(), joined("the options in the file are not valid: ", unfit.what()));
  }
}

std::size_t stored_state::prepare_rows(const load_source& source, const manifest_entry& stored,
                                       state_counts& next, std::vector<load_step>& steps) {
  const manifest_fact* const policy = stored.fact("row_policy");
  if (policy == nullptr || policy->kind != manifest_fact::text)
    source.fail(name(), "the file has no text 'row_policy' for it");
  if (policy->words.empty()) return 0;
  if (policy->words != step_count::per_row::name && policy->words != step_count::catch_up::name)
    source.fail(name(), "its rows count steps by '" + policy->words + "', which this ferry does not know");
  if (next.steps > optim::most_row_steps)
    source.fail(name(),
                joined("it has taken ", next.steps, " steps, but its rows count to ", optim::most_row_steps));
  const manifest_array* const counters = stored.array("row_steps");
  if (counters == nullptr || counters->dtype != "u32" || counters->extents.size() != 1)
    source.fail(name(), "the file has no counters 'row_steps' of its rows");
  const auto rows = counters->extents[0];
  for (const auto& field : fields_)
    if (field.schema().extents[0] != rows)
      source.fail(name(), joined("the file has counters of ", rows, " rows, and the state here has ",
                                 field.schema().extents[0], " rows"));
  load_into(source, name(), counters, loaded_counters(static_cast<std::size_t>(rows)), steps);
  recorded_steps history;
  if (policy->words == step_count::per_row::name) {
    next.row_policy = step_count::per_row::name;
    history.first = next.steps + 1;
    static_cast<void>(load_recorded(history));
    return 1;
  }
  next.row_policy = step_count::catch_up::name;
  history.first = whole(source, stored, "history_first", 1);
  history.in_double = whole(source, stored, "history_in_double", 0) != 0;
  const manifest_array* const array = stored.array("history");
  if (array == nullptr || array->dtype != "u64" || array->element_bytes != sizeof(std::uint64_t) ||
      array->extents.size() != 1)
    source.fail(name(), "the file has no 'history' of its steps");
  history.numbers.resize(static_cast<std::size_t>(array->extents[0]));
  source.files.read_array(*array, history.numbers.data(), "entry '" + name() + "', array 'history'");
  if (history.numbers.size() < 2) source.fail(name(), "its history is too short");
  const auto why = load_recorded(history);
  if (!why.empty()) source.fail(name(), why);
  const bool has_spans = history.numbers[0] != 0;
  require_recorded(source, *counters, has_spans ? history.first - 1 : next.steps, next.steps);
  return 2;
}

void stored_state::require_recorded(const load_source& source, const manifest_array& counters,
                                    std::int64_t least, std::int64_t steps) const {
  bool complete = least <= steps;
  std::vector<std::byte> bytes, scratch;
  const auto [first, stride] = share_of_counters();
  for (std::size_t chunk = first; chunk < counters.chunks.size(); chunk += stride) {
    bytes.resize(static_cast<std::size_t>(counters.bytes_of_chunk(chunk)));
    source.files.read_chunk(counters, chunk, bytes.data(), scratch,
                            "entry '" + name() + "', array 'row_steps'");
    for (std::size_t position = 0; position < bytes.size(); position += sizeof(std::uint32_t)) {
      std::uint32_t row_step = 0;
      std::memcpy(&row_step, bytes.data() + position, sizeof row_step);
      complete = complete && std::int64_t{row_step} >= least;
    }
  }
  if (!complete) source.fail(name(), "its rows have missed steps that are not in its history");
}

}  // namespace ferry::detail
