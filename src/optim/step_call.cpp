// SPDX-License-Identifier: Apache-2.0
#include <ferry/optim/detail/step_call.hpp>

#include <ferry/error.hpp>

#include <string>

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
