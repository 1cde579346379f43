// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/detail/rule_options.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The recorded steps of step_count::catch_up as bytes: numbers of 8 bytes each.
///
///   number of spans, number of rates
///   per span  its first step, then the rule's options
///   per rate  its first step, lr, the largest lr since its span began
namespace ferry::detail {

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
  const std::uint64_t spans = numbers[0], rates = numbers[1], rest = numbers.size() - 2;
  if (spans > rest || rates > rest || rest != spans * (1 + options) + rates * 3)
    return joined("its history of ", rest, " numbers can't hold ", spans, " spans and ", rates, " rates");
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
    visit_options(span.rule, [&]<class Option>(Option& option) {
      if constexpr (std::is_arithmetic_v<Option>)
        set_number(option, numbers[position++]);
      else
        for (auto& number : option) set_number(number, numbers[position++]);
    });
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
