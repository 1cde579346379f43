// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/optim/chain.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// The options of rules and transforms as numbers with names.
namespace ferry::detail {

/// A number as the 8 bytes that a fact keeps.
template <class T>
std::uint64_t fact_bits(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  else
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}
template <class T>
void set_number(T& number, std::uint64_t bits) {
  if constexpr (std::is_floating_point_v<T>)
    number = static_cast<T>(std::bit_cast<double>(bits));
  else
    number = static_cast<T>(static_cast<std::int64_t>(bits));
}
template <class T>
constexpr manifest_fact::kind_of kind_of_number() {
  return std::is_floating_point_v<T> ? manifest_fact::real
         : std::is_signed_v<T>       ? manifest_fact::whole
                                     : manifest_fact::natural;
}

/// The options as facts with names "<prefix><option>".
template <class Rule>
std::vector<manifest_fact> options_of(const Rule& rule, const std::string& prefix, std::string_view names) {
  std::vector<manifest_fact> facts;
  visit_options(rule, [&]<class Option>(const Option& option) {
    static_assert(
        std::is_arithmetic_v<Option> || is_number_list<Option>,
        "ferry: a checkpoint saves options that are numbers or std::arrays of them; give this rule or transform a member visit_options(visit) that calls visit for its options of these types.");
    manifest_fact& fact = facts.emplace_back();
    if constexpr (std::is_arithmetic_v<Option>) {
      fact.kind = kind_of_number<Option>();
      fact.numbers.push_back(fact_bits(option));
    } else {
      fact.kind = kind_of_number<typename Option::value_type>();
      for (const auto number : option) fact.numbers.push_back(fact_bits(number));
    }
  });
  for (std::size_t i = 0; i < facts.size(); ++i) facts[i].name = prefix + option_name(names, i, facts.size());
  return facts;
}

/// Sets an option from as many numbers. Returns the end of these.
template <class Option>
const std::uint64_t* set_option(Option& option, const std::uint64_t* numbers) {
  if constexpr (std::is_arithmetic_v<Option>)
    set_number(option, *numbers++);
  else
    for (auto& number : option) set_number(number, *numbers++);
  return numbers;
}

/// Calls visit(part, prefix of its options, name of its own fact) for a rule, or for the rule and the
/// transforms of a chain.
template <class Optimizer, class Visit>
void visit_optimizer(Optimizer& optimizer, const Visit& visit) {
  if constexpr (requires { optimizer.transforms; }) {
    visit(optimizer.rule, std::string("option."), std::string("rule"));
    std::size_t position = 0;
    std::apply(
        [&](auto&... transform) {
          const auto visit_transform = [&](auto& part) {
            const std::string name = joined("transform.", position++);
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
    manifest_fact& fact = facts.emplace_back();
    fact.name = name;
    fact.words = part.name;
    for (auto& option : options_of(part, prefix, option_names(part.name))) facts.push_back(std::move(option));
  });
  return facts;
}

/// Sets the options from such facts, which were checked to be those of this optimizer.
template <class Optimizer>
void set_optimizer(Optimizer& optimizer, const std::vector<manifest_fact>& facts) {
  std::size_t position = 0;
  visit_optimizer(optimizer, [&](auto& part, const std::string&, const std::string&) {
    ++position;
    visit_options(
        part, [&]<class Option>(Option& option) { set_option(option, facts[position++].numbers.data()); });
  });
}

/// True if a fact of an entry is about its rule and transforms.
bool is_optimizer_fact(const manifest_fact& fact);

/// Why the facts of the file are not those of the optimizer; empty if they are. Numbers are compared if
/// `values` is set; their types and names always are.
std::string optimizer_difference(const std::vector<manifest_fact>& saved,
                                 const std::vector<manifest_fact>& current, bool values);

// The recorded steps of step_count::catch_up as bytes: numbers of 8 bytes each.
//
//   number of spans, number of rates
//   per span  its first step, then the rule's options
//   per rate  its first step, lr, the largest lr since its span began

template <class Rule>
using recording_of = typename optim::coefficient_history<Rule>::recording;

template <class Rule>
std::vector<std::uint64_t> history_numbers(const recording_of<Rule>& recording) {
  std::vector<std::uint64_t> numbers{recording.spans.size(), recording.rates.size()};
  for (const auto& span : recording.spans) {
    numbers.push_back(fact_bits(span.first));
    for (const auto& option : options_of(span.rule, "", ""))
      numbers.insert(numbers.end(), option.numbers.begin(), option.numbers.end());
  }
  for (const auto& rate : recording.rates) {
    numbers.push_back(fact_bits(rate.first));
    numbers.push_back(fact_bits(static_cast<double>(rate.lr)));
    numbers.push_back(fact_bits(static_cast<double>(rate.most)));
  }
  return numbers;
}

/// The reverse of history_numbers(). `like` is any rule of the type. Returns why the numbers are none, or an
/// empty text.
template <class Rule>
std::string read_history(const std::vector<std::uint64_t>& numbers, const Rule& like, std::int64_t steps,
                         recording_of<Rule>& recording) {
  std::size_t options = 0;
  for (const auto& option : options_of(like, "", "")) options += option.numbers.size();
  if (numbers.size() < 2) return "its history is too short";
  const std::uint64_t spans = numbers[0], rates = numbers[1], length = numbers.size() - 2;
  if (spans > length || rates > length || length != spans * (1 + options) + rates * 3)
    return joined("its history of ", length, " numbers can't hold ", spans, " spans and ", rates, " rates");
  constexpr bool has_rate = optim::coefficient_history<Rule>::has_rate;
  if (has_rate ? (spans == 0) != (rates == 0) : rates != 0) return "its history has spans without rates";
  std::size_t position = 2;
  std::int64_t before = 0;
  const auto first_step = [&](bool first_of_list) {
    const auto step = static_cast<std::int64_t>(numbers[position++]);
    const bool fits = step >= 1 && step <= steps && (first_of_list || step > before);
    before = step;
    return fits ? step : 0;
  };
  for (std::uint64_t i = 0; i < spans; ++i) {
    auto& span =
        recording.spans.emplace_back(typename optim::coefficient_history<Rule>::span_of_steps{0, like});
    if ((span.first = first_step(i == 0)) == 0) return "its history names steps out of order";
    const std::uint64_t* next = numbers.data() + position;
    visit_options(span.rule, [&](auto& option) { next = set_option(option, next); });
    position += options;
  }
  for (std::uint64_t i = 0; i < rates; ++i) {
    auto& rate = recording.rates.emplace_back();
    if ((rate.first = first_step(i == 0)) == 0) return "its history names steps out of order";
    double number = 0;
    set_number(number, numbers[position++]);
    rate.lr = static_cast<decltype(rate.lr)>(number);
    set_number(number, numbers[position++]);
    rate.most = static_cast<decltype(rate.most)>(number);
  }
  return {};
}

}  // namespace ferry::detail
