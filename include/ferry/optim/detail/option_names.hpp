// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ferry::detail {

/// The names of a rule's or a transform's options, in the order of its members, separated by spaces. Empty
/// for a type that ferry does not know; its options are then numbered.
inline constexpr std::string_view option_names(std::string_view rule) {
  struct known_rule {
    std::string_view name, options;
  };
  constexpr known_rule known[] = {
      {"adadelta", "lr rho eps weight_decay maximize"},
      {"adagrad", "lr lr_decay weight_decay initial_accumulator_value eps maximize"},
      {"adam", "lr betas eps weight_decay amsgrad maximize"},
      {"adamax", "lr betas eps weight_decay maximize"},
      {"adamw", "lr betas eps weight_decay amsgrad maximize"},
      {"asgd", "lr lambd alpha t0 weight_decay maximize"},
      {"ftrl", "lr beta l1 l2 initial_accumulator_value maximize"},
      {"lamb", "lr betas eps weight_decay maximize"},
      {"lars", "lr momentum weight_decay trust_coefficient eps maximize"},
      {"lion", "lr betas weight_decay maximize"},
      {"nadam", "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize"},
      {"partial_rowwise_adam", "lr betas eps weight_decay maximize"},
      {"rmsprop", "lr alpha eps weight_decay momentum centered maximize"},
      {"rowwise_adagrad", "lr weight_decay initial_accumulator_value eps maximize"},
      {"rprop", "lr etas step_sizes maximize"},
      {"sgd", "lr momentum dampening weight_decay nesterov maximize"},
      {"sparse_adam", "lr betas eps maximize"},
      {"clip_norm", "max_norm"},
      {"clip_value", "limit"},
      {"grad_scale", "scale"},
      {"max_norm", "limit"},
  };
  for (const auto& [name, options] : known)
    if (name == rule) return options;
  return {};
}

/// Name number `place` of a list of option_names; empty if the list has other than `count` names.
std::string_view listed_name(std::string_view names, std::size_t place, std::size_t count);

/// As listed_name; "option <place>" if the list has other than `count` names.
std::string option_name(std::string_view names, std::size_t place, std::size_t count);

}  // namespace ferry::detail
