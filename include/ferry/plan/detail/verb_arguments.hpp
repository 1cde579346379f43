// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/runtime/detail/arguments.hpp>

#include <array>

/// How each verb is called. Constraints, refusals and sentences come from these descriptions. `require` says in
/// one sentence how the verb is called; it fails for the arguments of a call that fits none of the forms.
namespace ferry::detail {

template <class Space>
consteval void require_memory_space() {
  static_assert(
      MemorySpace<Space>,
      "ferry: the template argument of gather<Space> and clone<Space> is one of ferry's memory spaces: device_space, pinned_space, mapped_space or pageable_space.");
}

struct gather_arguments {
  static constexpr std::array forms{
      call_of(roles::execution_space, roles::table, roles::indices, roles::array),
      call_of(roles::execution_space, roles::rule, roles::table, roles::state, roles::indices, roles::array),
      call_of(roles::execution_space, roles::rule, roles::records, roles::indices, roles::array)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: gather is called as gather(exec, table, indices, out, policies...); as gather<Space>(exec, table, indices, policies...), which returns a new tensor in that memory space; or as gather(exec, rule, table, state, indices, out, policies...), which catches up first.");
  }
};

struct gather_new_arguments {
  static constexpr std::array forms{call_of(roles::execution_space, roles::table, roles::indices)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: a gather into a new tensor is called as gather<Space>(exec, table, indices, policies...), or gather<Space, T>(...) with its element type.");
  }
};

struct gather_unique_arguments {
  static constexpr std::array forms{
      call_of(roles::execution_space, roles::table, roles::indices, roles::array)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(Accepted,
                  "ferry: gather_unique is called as gather_unique(exec, table, indices, out, policies...).");
  }
};

struct scatter_arguments {
  static constexpr std::array forms{
      call_of(roles::execution_space, roles::written_table, roles::indices, roles::array)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: scatter and scatter_add are called as scatter(exec, table, indices, values, policies...).");
  }
};

struct step_arguments {
  static constexpr std::array forms{
      call_of(roles::execution_space, roles::rule, roles::written_table, roles::state, roles::indices,
              roles::array),
      call_of(roles::execution_space, roles::rule, roles::records, roles::indices, roles::array)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: step is called as step(exec, rule, table, state, indices, grads, policies...), with the state that make_state(rule, table) made; only of optim::records as step(exec, rule, records, indices, grads, policies...).");
  }
};

struct catch_up_arguments {
  static constexpr std::array forms{
      call_of(roles::execution_space, roles::rule, roles::written_table, roles::state),
      call_of(roles::execution_space, roles::rule, roles::records)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: catch_up is called as catch_up(exec, rule, table, state, policies...), of optim::records as catch_up(exec, rule, records, policies...).");
  }
};

struct copy_arguments {
  static constexpr std::array forms{call_of(roles::execution_space, roles::source, roles::sink)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(Accepted, "ferry: copy is called as copy(exec, from, to, policies...).");
  }
};

struct clone_arguments {
  static constexpr std::array forms{
      call_without_policies(roles::execution_space, roles::source),
      call_without_policies(roles::execution_space, roles::source, roles::text)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: clone is called as clone(exec, array) or clone(exec, array, label), and as clone<Space>(exec, array) for a copy in another of ferry's memory spaces.");
  }
};

struct make_state_arguments {
  static constexpr std::array forms{call_of(roles::rule, roles::table),
                                    call_without_policies(roles::rule, roles::table, roles::any)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: make_state needs an optimizer rule, ferry::optim::adam say, then the table: make_state(rule, table), with a step_count policy after it if rows are counted. It takes no execution space.");
  }
};

struct grad_norm_arguments {
  static constexpr std::array forms{
      call_without_policies(roles::execution_space, roles::gradients).with(roles::gradients, 1000)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: grad_norm needs gradients, arrays or sparse_grads, and is called as grad_norm(exec, grads...).");
  }
};

struct clip_grad_norm_arguments {
  static constexpr std::array forms{
      call_without_policies(roles::execution_space, roles::number, roles::gradients)
          .with(roles::gradients, 1000)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: clip_grad_norm needs gradients, arrays or sparse_grads, and is called as clip_grad_norm(exec, max_norm, grads...).");
  }
};

struct gather_bags_arguments {
  static constexpr std::array forms{
      call_of(roles::execution_space, roles::tables, roles::indices, roles::offsets, roles::array)
          .with(roles::array, 1)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: gather_bags is called as gather_bags(exec, table, indices, offsets, pooled, policies...), with the weights of the positions after `pooled` if there are any.");
  }
};

struct step_bags_arguments {
  static constexpr std::array forms{call_of(roles::execution_space, roles::rule, roles::written_table,
                                            roles::state, roles::indices, roles::offsets, roles::array)
                                        .with(roles::array, 2)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: step_bags is called as step_bags(exec, rule, table, state, indices, offsets, pooled_grads, policies...), with the weights of the positions after `pooled_grads` if there are any.");
  }
};

struct make_plan_arguments {
  static constexpr std::array forms{
      call_of(roles::execution_space, roles::indices, roles::rows).with(roles::array, 1)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: make_plan is called as make_plan(exec, indices, rows, policies...), with the number of rows of the tables or one of the tables, or as make_plan(exec, indices, rows, workspace, policies...).");
  }
};

struct plan_workspace_arguments {
  static constexpr std::array forms{
      call_without_policies(roles::execution_space, roles::integer, roles::rows)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: plan_workspace_bytes is called as plan_workspace_bytes(exec, positions, rows), with the number of indices, and the number of rows of the tables or one of the tables.");
  }
};

struct unique_arguments {
  static constexpr std::array forms{call_of(roles::execution_space, roles::indices, roles::rows)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: unique is called as unique(exec, indices, rows, policies...), with the number of rows of the tables or one of the tables.");
  }
};

struct quantize_arguments {
  static constexpr std::array forms{call_of(roles::execution_space, roles::array, roles::written_codes)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: quantize is called as quantize(exec, from, table, policies...), with an array of numbers and a rowwise_int8_tensor to write.");
  }
};

struct dequantize_arguments {
  static constexpr std::array forms{call_of(roles::execution_space, roles::codes, roles::array)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: dequantize is called as dequantize(exec, table, to, policies...), with a rowwise_int8_tensor and an array of numbers to write.");
  }
};

struct zeros_arguments {
  static constexpr std::array forms{call_without_policies(roles::execution_space, roles::sink)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(Accepted, "ferry: init::zeros is called as zeros(exec, array).");
  }
};

struct constant_arguments {
  static constexpr std::array forms{call_without_policies(roles::execution_space, roles::sink, roles::any)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(Accepted, "ferry: init::constant is called as constant(exec, array, value).");
  }
};

struct uniform_arguments {
  static constexpr std::array forms{call_without_policies(roles::execution_space, roles::sink, roles::number,
                                                          roles::number, roles::integer)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: init::uniform is called as uniform(exec, array, low, high, seed); the seed is an integer.");
  }
};

struct normal_arguments {
  static constexpr std::array forms{call_without_policies(roles::execution_space, roles::sink, roles::number,
                                                          roles::number, roles::integer)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: init::normal is called as normal(exec, array, mean, deviation, seed); the seed is an integer.");
  }
};

struct custom_arguments {
  static constexpr std::array forms{call_without_policies(roles::execution_space, roles::sink, roles::any)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: init::custom is called as custom(exec, array, function), with a function of the row and the column.");
  }
};

struct xavier_arguments {
  static constexpr std::array forms{
      call_without_policies(roles::execution_space, roles::array, roles::number, roles::integer)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: init::xavier_uniform and xavier_normal are called as xavier_uniform(exec, array, gain, seed); the seed is an integer.");
  }
};

struct kaiming_arguments {
  static constexpr std::array forms{
      call_without_policies(roles::execution_space, roles::array, roles::object, roles::integer)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: init::kaiming_uniform and kaiming_normal are called as kaiming_uniform(exec, array, {.after = ...}, seed); the seed is an integer.");
  }
};

struct trunc_normal_arguments {
  static constexpr std::array forms{call_without_policies(roles::execution_space, roles::array, roles::number,
                                                          roles::number, roles::number, roles::number,
                                                          roles::integer)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: init::trunc_normal is called as trunc_normal(exec, array, mean, deviation, low, high, seed); the seed is an integer.");
  }
};

}  // namespace ferry::detail
