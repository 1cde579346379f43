// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/optimizer_facts.hpp>

#include <ferry/io/detail/manifest.hpp>
#include <ferry/optim/chain.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace ferry::detail {

bool is_optimizer_fact(const manifest_fact& of) {
  return of.name == "rule" || of.name.rfind("option.", 0) == 0 || of.name.rfind("transform.", 0) == 0;
}

std::string optimizer_difference(const std::vector<manifest_fact>& saved,
                                 const std::vector<manifest_fact>& here, bool values) {
  std::size_t place = 0;
  const auto next = [&]() -> const manifest_fact* {
    while (place < saved.size() && !is_optimizer_fact(saved[place])) ++place;
    return place < saved.size() ? &saved[place++] : nullptr;
  };
  for (const auto& each : here) {
    const manifest_fact* const there = next();
    if (there == nullptr) return "the file lacks '" + each.name + "', which is " + each.describe() + " here";
    const bool same_schema = there->name == each.name && there->kind == each.kind &&
                             there->numbers.size() == each.numbers.size() && there->words == each.words;
    if (!same_schema || (values && *there != each))
      return "'" + there->name + "' is " + there->describe() + " in the file, and " +
             (there->name == each.name ? "" : "'" + each.name + "' is ") + each.describe() + " here";
  }
  if (const manifest_fact* const more = next())
    return "'" + more->name + "' is " + more->describe() +
           " in the file, and the optimizer here has no such option";
  return {};
}

}  // namespace ferry::detail
