// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/history_bytes.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/optimizer_facts.hpp>
#include <ferry/memory/detail/owned.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/field.hpp>
#include <ferry/optim/detail/step_counters.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <boost/hana/for_each.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// An optimizer with its state: the rule and its options, the fields, the step counters, the seed, and the
/// recorded steps.
///
///   Optimizer  a rule or a chain; const where its options are compared on load instead of set
///   Space      of the state
template <class Optimizer, class Space>
class state_entry : public checkpoint_entry {
 public:
  using rule_type = optim::detail::rule_of<std::remove_const_t<Optimizer>>;
  using clock_type = optim::step_counters<rule_type, Space>;

  /// `fields` are the arrays of the state. The optimizer is used where it is, unless `optimizer` owns it.
  state_entry(std::string name, std::shared_ptr<Optimizer> optimizer, std::vector<checkpoint_array> fields,
              std::shared_ptr<clock_type> clock)
      : checkpoint_entry(std::move(name)), optimizer_(std::move(optimizer)), clock_(std::move(clock)) {
    for (auto& each : fields) fields_.emplace_back(std::move(each));
  }

  void describe(manifest_entry& to, std::vector<checkpoint_array>& arrays) const override {
    to.kind = "state";
    to.facts = optimizer_facts(*optimizer_);
    to.facts.push_back(number("steps", clock_->steps));
    to.facts.push_back(number("skipped", clock_->skipped));
    to.facts.push_back(number("seed", clock_->seed));
    manifest_fact& policy = to.facts.emplace_back();
    policy.name = "row_policy";
    policy.words = std::string(clock_->row_policy);
    for (const auto& each : fields_) add(each.current(name()), to, arrays);
    if (clock_->row_policy.empty()) return;
    add(saved_counters(), to, arrays);
    if (clock_->row_policy != step_count::catch_up::name) return;
    auto recorded = clock_->updates.recorded();
    // Steps that were taken back are still there until another one replaces them.
    const auto taken_back = [this](const auto& each) { return each.first > clock_->steps; };
    std::erase_if(recorded.spans, taken_back);
    std::erase_if(recorded.rates, taken_back);
    to.facts.push_back(number("history_first", recorded.first));
    to.facts.push_back(number("history_in_double", std::uint64_t{recorded.in_double ? 1u : 0u}));
    add(owned("history", history_numbers<rule_type>(recorded)), to, arrays);
  }

  void prepare(const load_source& from, const manifest_entry& stored, std::vector<load_step>& to) override {
    require_kind(from, stored, "state");
    const auto why = optimizer_difference(stored.facts, optimizer_facts(*optimizer_), is_const);
    if (!why.empty())
      from.fail(name(),
                why + (is_const ? "; the options of a rule that was added as const are compared, those "
                                  "of others are loaded"
                                : ""));
    next_ = {};
    // commit() frees the counters.
    if (const auto& accesses = clock_->row_steps.accesses(); accesses != nullptr) accesses->wait_for_all();
    if constexpr (!is_const) prepare_options(from, stored);
    next_.steps = whole(from, stored, "steps", 0);
    next_.skipped = whole(from, stored, "skipped", 0);
    next_.seed = static_cast<std::uint64_t>(whole(from, stored, "seed", std::nullopt));
    std::size_t known = 0;
    for (const auto& each : fields_) {
      load_into(from, name(), stored.array(each.schema().name), each.current(name()), to);
      ++known;
    }
    prepare_rows(from, stored, to, known);
    if (stored.arrays.size() != known)
      for (const auto& each : stored.arrays)
        if (each.name != "row_steps" && each.name != "history" &&
            std::none_of(fields_.begin(), fields_.end(),
                         [&](const kept_array& own) { return own.schema().name == each.name; }))
          from.fail(name(), "the file has '" + each.name + "' " + each.describe() +
                                ", which the state here lacks; make the state with the same options");
  }

  void commit() noexcept override {
    if constexpr (!is_const)
      if (next_.optimizer != nullptr) *optimizer_ = std::move(*next_.optimizer);
    clock_->steps = next_.steps;
    clock_->skipped = next_.skipped;
    clock_->seed = next_.seed;
    clock_->row_steps = std::move(next_.row_steps);
    clock_->row_policy = next_.row_policy;
    clock_->updates.restore(std::move(next_.recorded));
    next_ = {};
  }

 protected:
  static constexpr bool is_const = std::is_const_v<Optimizer>;

  /// What commit() sets.
  struct next_state {
    // The full name: nvcc 13 does not find the short one where it instantiates this.
    ferry::detail::owned<std::remove_const_t<Optimizer>> optimizer;
    std::int64_t steps = 0;
    std::int64_t skipped = 0;
    std::uint64_t seed = 0;
    tensor<std::uint32_t, Space> row_steps;
    std::string_view row_policy;
    recording_of<rule_type> recorded;
  };

  /// What the state of rows in several places does otherwise: the counters of the rows, new ones for
  /// commit(), and which chunks of the file's counters it checks: the first, and every how many after it.
  /// @{
  [[nodiscard]] virtual checkpoint_array saved_counters() const {
    return as_stored("row_steps", make_ref(clock_->row_steps), name());
  }
  virtual checkpoint_array loaded_counters(std::size_t rows) {
    next_.row_steps = tensor<std::uint32_t, Space>(name() + "::row_steps", rows);
    return as_stored("row_steps", make_ref(next_.row_steps), name());
  }
  [[nodiscard]] virtual std::pair<std::size_t, std::size_t> share_of_counters() const { return {0, 1}; }
  /// @}

  next_state next_;

 private:
  template <class Number>
  static manifest_fact number(const char* name, Number value) {
    manifest_fact made;
    made.name = name;
    made.kind = kind_of_number<Number>();
    made.numbers.push_back(fact_bits(value));
    return made;
  }
  static void add(const checkpoint_array& array, manifest_entry& to, std::vector<checkpoint_array>& arrays) {
    to.arrays.push_back(array.schema);
    arrays.push_back(array);
  }
  /// An array of numbers that belongs to the save.
  static checkpoint_array owned(const char* name, std::vector<std::uint64_t>&& numbers) {
    const auto kept = std::make_shared<std::vector<std::uint64_t>>(std::move(numbers));
    checkpoint_array made;
    made.schema.name = name;
    made.schema.dtype = dtype_name<std::uint64_t>();
    made.schema.element_bytes = sizeof(std::uint64_t);
    made.schema.extents = {kept->size()};
    made.row_bytes = made.row_stride = sizeof(std::uint64_t);
    choose_chunks(made.schema, made.row_bytes);
    made.data = reinterpret_cast<std::byte*>(kept->data());
    made.owner = kept;
    return made;
  }

  std::int64_t whole(const load_source& from, const manifest_entry& stored, const char* fact,
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

  void prepare_options(const load_source& from, const manifest_entry& stored) {
    next_.optimizer = make_owned<std::remove_const_t<Optimizer>>(*optimizer_);
    std::vector<manifest_fact> facts;
    for (const auto& each : stored.facts)
      if (is_optimizer_fact(each)) facts.push_back(each);
    set_optimizer(*next_.optimizer, facts);
    try {
      visit_optimizer(*next_.optimizer,
                      [](const auto& part, const std::string&, const std::string&) { part.check(); });
    } catch (const invalid_argument& unfit) {
      from.fail(name(), std::string("the options in the file are not valid: ") + unfit.what());
    }
  }

  /// The counters of the rows go into a new tensor: there may be none yet, or those of another policy.
  void prepare_rows(const load_source& from, const manifest_entry& stored, std::vector<load_step>& to,
                    std::size_t& known) {
    const manifest_fact* const policy = stored.fact("row_policy");
    if (policy == nullptr || policy->kind != manifest_fact::text)
      from.fail(name(), "the file has no text 'row_policy' for it");
    if (policy->words.empty()) return;
    if (policy->words != step_count::per_row::name && policy->words != step_count::catch_up::name)
      from.fail(name(), "its rows count steps by '" + policy->words + "', which this ferry does not know");
    if (next_.steps > optim::most_row_steps)
      from.fail(name(), "it has taken " + std::to_string(next_.steps) + " steps, but its rows count to " +
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
    ++known;
    if (policy->words == step_count::per_row::name) {
      next_.row_policy = step_count::per_row::name;
      next_.recorded.first = next_.steps + 1;
      return;
    }
    next_.row_policy = step_count::catch_up::name;
    next_.recorded.first = whole(from, stored, "history_first", 1);
    next_.recorded.in_double = whole(from, stored, "history_in_double", 0) != 0;
    const manifest_array* const history = stored.array("history");
    if (history == nullptr || history->dtype != "u64" || history->element_bytes != sizeof(std::uint64_t) ||
        history->extents.size() != 1)
      from.fail(name(), "the file has no 'history' of its steps");
    std::vector<std::uint64_t> numbers(static_cast<std::size_t>(history->extents[0]));
    std::vector<std::byte> scratch;
    for (std::size_t place = 0; place < history->chunks.size(); ++place)
      from.files.read_chunk(*history, place,
                            reinterpret_cast<std::byte*>(numbers.data()) + place * history->chunk_bytes,
                            scratch, "entry '" + name() + "', array 'history'");
    const auto why = read_history<rule_type>(numbers, rule_of_optimizer(), next_.steps, next_.recorded);
    if (!why.empty()) from.fail(name(), why);
    require_recorded(from, *counters);
    ++known;
  }
  /// Kernels look up the steps that a row has missed, so they must be in the history.
  void require_recorded(const load_source& from, const manifest_array& counters) const {
    const std::int64_t least = next_.recorded.spans.empty() ? next_.steps : next_.recorded.first - 1;
    bool all = least <= next_.steps;
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

  [[nodiscard]] const rule_type& rule_of_optimizer() const {
    return optim::detail::transforms_of<std::remove_const_t<Optimizer>>::rule_in(*optimizer_);
  }

  std::shared_ptr<Optimizer> optimizer_;
  std::vector<kept_array> fields_;
  std::shared_ptr<clock_type> clock_;
};

/// The arrays of a state, or of records without the weights.
template <class Rule, class State>
std::vector<checkpoint_array> fields_of_state(const Rule& rule, State& state, const std::string& owner) {
  std::vector<checkpoint_array> made;
  for (int i = 0; i < state.fields(); ++i)
    made.push_back(as_stored(std::string(state.field_name(i)), state.field_ref(i), owner));
  int place = 0;
  boost::hana::for_each(rule.fields(), [&](const auto& described) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(described)>, optim::row_field>)
      made.push_back(as_stored(described.name, state.row_field_ref(place++), owner));
  });
  return made;
}

}  // namespace ferry::detail
