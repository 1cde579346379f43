// SPDX-License-Identifier: Apache-2.0
#pragma once

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
void visit_optimizer(Optimizer& of, const Visit& visit) {
  if constexpr (requires { of.transforms; }) {
    visit(of.rule, std::string("option."), std::string("rule"));
    std::size_t place = 0;
    std::apply(
        [&](auto&... transform) {
          const auto each = [&](auto& one) {
            const std::string own = "transform." + std::to_string(place++);
            visit(one, own + ".", own);
          };
          (each(transform), ...);
        },
        of.transforms);
  } else {
    visit(of, std::string("option."), std::string("rule"));
  }
}

/// The names and the options of a rule and of its transforms.
template <class Optimizer>
std::vector<manifest_fact> optimizer_facts(const Optimizer& of) {
  std::vector<manifest_fact> made;
  visit_optimizer(of, [&](const auto& part, const std::string& prefix, const std::string& own) {
    manifest_fact& named = made.emplace_back();
    named.name = own;
    named.words = part.name;
    for (auto& each : options_of(part, prefix, option_names(part.name))) made.push_back(std::move(each));
  });
  return made;
}

/// Sets the options from such facts, which were checked to be those of this optimizer.
template <class Optimizer>
void set_optimizer(Optimizer& of, const std::vector<manifest_fact>& facts) {
  std::size_t place = 0;
  visit_optimizer(of, [&](auto& part, const std::string&, const std::string&) {
    ++place;
    visit_options(part, [&]<class Option>(Option& option) { set_option(option, facts[place++]); });
  });
}

/// Whether a fact of an entry is about its rule and transforms.
bool is_optimizer_fact(const manifest_fact& of);

/// Why the facts of the file are not those of the optimizer; empty where they are. Numbers are compared where
/// `values` is set; their types and names always are.
std::string optimizer_difference(const std::vector<manifest_fact>& saved,
                                 const std::vector<manifest_fact>& here, bool values);

}  // namespace ferry::detail
