// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/optimizer_facts.hpp>

#include <ferry/io/detail/manifest.hpp>
#include <ferry/optim/chain.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace ferry::detail {

bool is_optimizer_fact(const manifest_fact& fact) {
  return fact.name == "rule" || fact.name.rfind("option.", 0) == 0 || fact.name.rfind("transform.", 0) == 0;
}

std::string optimizer_difference(const std::vector<manifest_fact>& saved,
                                 const std::vector<manifest_fact>& current, bool values) {
  std::size_t place = 0;
  const auto next = [&]() -> const manifest_fact* {
    while (place < saved.size() && !is_optimizer_fact(saved[place])) ++place;
    return place < saved.size() ? &saved[place++] : nullptr;
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

}  // namespace ferry::detail
