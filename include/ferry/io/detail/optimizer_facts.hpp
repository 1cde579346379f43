// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/rule_options.hpp>
#include <ferry/optim/chain.hpp>

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Calls visit(part, prefix of its options, name of its own fact) for a rule, or for the rule and the
/// transforms of a chain.
template <class Optimizer, class Visit>
void visit_optimizer(Optimizer& optimizer, const Visit& visit) {
  if constexpr (requires { optimizer.transforms; }) {
    visit(optimizer.rule, std::string("option."), std::string("rule"));
    std::size_t place = 0;
    std::apply(
        [&](auto&... transform) {
          const auto visit_transform = [&](auto& part) {
            const std::string name = joined("transform.", place++);
            visit(part, name + ".", name);
          };
          (visit_transform(transform), ...);
        },
        optimizer.transforms);
  } else {
    visit(optimizer, std::string("option."), std::string("rule"));
  }
}

/// The names and the options of a rule and of its transforms.
template <class Optimizer>
std::vector<manifest_fact> optimizer_facts(const Optimizer& optimizer) {
  std::vector<manifest_fact> facts;
  visit_optimizer(optimizer, [&](const auto& part, const std::string& prefix, const std::string& name) {
    manifest_fact& named = facts.emplace_back();
    named.name = name;
    named.words = part.name;
    for (auto& option : options_of(part, prefix, option_names(part.name))) facts.push_back(std::move(option));
  });
  return facts;
}

/// Sets the options from such facts, which were checked to be those of this optimizer.
template <class Optimizer>
void set_optimizer(Optimizer& optimizer, const std::vector<manifest_fact>& facts) {
  std::size_t place = 0;
  visit_optimizer(optimizer, [&](auto& part, const std::string&, const std::string&) {
    ++place;
    visit_options(part, [&]<class Option>(Option& option) { set_option(option, facts[place++]); });
  });
}

/// True if a fact of an entry is about its rule and transforms.
bool is_optimizer_fact(const manifest_fact& fact);

/// Why the facts of the file are not those of the optimizer; empty if they are. Numbers are compared if
/// `values` is set; their types and names always are.
std::string optimizer_difference(const std::vector<manifest_fact>& saved,
                                 const std::vector<manifest_fact>& current, bool values);

}  // namespace ferry::detail
