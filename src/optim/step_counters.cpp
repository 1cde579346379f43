// SPDX-License-Identifier: Apache-2.0
#include <ferry/optim/detail/step_counters.hpp>

#include <ferry/error.hpp>
#include <ferry/optim/detail/step_call.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::optim {

void step_counts::require_policy(const char* verb, std::string_view policy,
                                 const ferry::detail::array_label& table) const {
  if (row_policy.empty() || row_policy == policy) return;
  throw invalid_argument("ferry::" + std::string(verb) + ": the rows of '" + table +
                         "' count their steps by " + std::string(row_policy) + "; this step asks for " +
                         std::string(policy) + ". Give every step the same policy");
}

void step_counts::require_countable(const char* verb, std::string_view policy,
                                    const ferry::detail::array_label& table) const {
  if (steps < most_row_steps) return;
  throw invalid_argument("ferry::" + std::string(verb) + ": the state of '" + table + "' has taken " +
                         std::to_string(steps) + " steps, but rows that count by " + std::string(policy) +
                         " count to " + std::to_string(most_row_steps) + "; use step_count::global");
}

void step_counts::require_steps(std::int64_t count) const {
  if (count < 0)
    throw invalid_argument("ferry::optim: a state can't have taken " + std::to_string(count) + " steps");
  if (!row_policy.empty() && count > most_row_steps)
    throw invalid_argument("ferry::optim: a state whose rows count their steps by " +
                           std::string(row_policy) + " can't have taken " + std::to_string(count) +
                           " steps: rows count to " + std::to_string(most_row_steps));
}

namespace {

void take_back(void* owner) { --static_cast<step_counts*>(owner)->steps; }
void skip_step(void* owner, bool counted) {
  auto& counts = *static_cast<step_counts*>(owner);
  if (counted) --counts.steps;
  ++counts.skipped;
}

using count_list = std::vector<std::shared_ptr<step_counts>>;

void take_back_all(void* owner) {
  for (const auto& counts : *static_cast<count_list*>(owner)) take_back(counts.get());
}
void skip_all(void* owner, bool counted) {
  for (const auto& counts : *static_cast<count_list*>(owner)) skip_step(counts.get(), counted);
}

}  // namespace

ferry::detail::rollback rollback_of(std::shared_ptr<step_counts> counts, bool skips) {
  return {std::move(counts), &take_back, skips ? &skip_step : nullptr};
}
ferry::detail::rollback rollback_of(std::vector<std::shared_ptr<step_counts>> counts, bool skips) {
  return {std::make_shared<count_list>(std::move(counts)), &take_back_all, skips ? &skip_all : nullptr};
}

void refuse_moved_contents(const char* owner) {
  throw invalid_argument("ferry::optim::" + std::string(owner) + ": the contents were moved elsewhere");
}

void refuse_field_name(const char* owner, std::string_view rule, std::string_view name) {
  throw invalid_argument("ferry::optim::" + std::string(owner) + ": " + std::string(rule) +
                         " has no active state '" + std::string(name) + "'");
}

}  // namespace ferry::optim

namespace ferry::optim::detail {

void refuse_fields(std::string_view rule, int active, int least) {
  throw invalid_argument("ferry::optim::" + std::string(rule) + ": its options use " +
                         std::to_string(active) + " fields, but its min_fields is " + std::to_string(least));
}

}  // namespace ferry::optim::detail

namespace ferry::detail {

void require_made_for(const char* verb, const untyped_array& field, const untyped_array& table,
                      std::int64_t width) {
  if (field.shape.rows() != table.shape.rows() || field.shape.width() != width)
    throw invalid_argument("ferry::" + std::string(verb) + ": state " + field.note().describe() +
                           " was not made for " + table.note().describe());
}

void require_names(const char* verb, const optim::detail::field_names& needed,
                   std::span<const std::string_view> names, std::string_view rule, const array_label& table) {
  const auto unfit = [&](const std::string& need, const std::string& has) {
    throw invalid_argument("ferry::" + std::string(verb) + ": the options of " + std::string(rule) +
                           " need " + need + ", but the state of '" + table + "' has " + has +
                           "; make it with the same options");
  };
  if (static_cast<std::size_t>(needed.count) != names.size())
    unfit(std::to_string(needed.count) + " state fields", std::to_string(names.size()));
  for (std::size_t f = 0; f < names.size(); ++f)
    if (needed.name[f] != names[f])
      unfit("'" + std::string(needed.name[f]) + "'", "'" + std::string(names[f]) + "' in its place");
}

}  // namespace ferry::detail
