// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/argument_kinds.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

/// How a verb is called, as a list of roles, and the flaw of a call that fits no such list. The descriptions of
/// the verbs are in plan/detail/verb_arguments.hpp.
namespace ferry::detail {

enum class flaw {
  none,
  call,
  no_execution_space,
  late_execution_space,
  early_policy,
  no_policy,
  no_array,
  no_elements,
  no_indices,
  no_index_array,
  braced_indices,
  no_offsets,
  no_rule,
  one_table,
  constant,
  temporary
};

/// The part of an argument in a call. A verb that writes to a table, a state or records needs a variable.
struct role {
  unsigned kinds = 0;
  bool written = false;
};

namespace roles {
inline constexpr role execution_space{kind::execution_space};
inline constexpr role array{kind::array};
inline constexpr role table{kind::array | kind::codes | kind::table_object};
inline constexpr role written_table{table.kinds, true};
inline constexpr role source{kind::array | kind::table_object};
inline constexpr role sink{source.kinds, true};
inline constexpr role codes{kind::codes};
inline constexpr role written_codes{kind::codes, true};
inline constexpr role tables{table.kinds | kind::table_list};
inline constexpr role indices{kind::indices};
inline constexpr role offsets{kind::indices | kind::integer};
inline constexpr role rows{kind::integer | table.kinds | kind::records};
inline constexpr role rule{kind::rule | kind::object};  // of an object that is no rule the verb says why
inline constexpr role state{kind::state, true};
inline constexpr role records{kind::records, true};
inline constexpr role number{kind::number};
inline constexpr role integer{kind::integer};
inline constexpr role text{kind::text};
inline constexpr role object{kind::object};
inline constexpr role gradients{kind::array | kind::object};  // sparse ones are objects
inline constexpr role any{kind::any};
}  // namespace roles

/// One way to call a verb: the roles of its arguments, then up to `most` more with the role `more`, then
/// policies.
struct call_form {
  std::array<role, 8> roles;
  std::size_t count;
  bool policies;
  role more{};
  std::size_t most = 0;

  [[nodiscard]] consteval call_form with(role part, std::size_t number) const {
    return {roles, count, policies, part, number};
  }
};

template <class... Roles>
consteval call_form call_of(Roles... roles) {
  return {{roles...}, sizeof...(Roles), true};
}
template <class... Roles>
consteval call_form call_without_policies(Roles... roles) {
  return {{roles...}, sizeof...(Roles), false};
}

consteval bool plays(role part, unsigned kinds) { return (part.kinds & kinds) != 0; }

/// The flaw of an argument that does not play its role.
consteval flaw flaw_of_role(role part, unsigned kinds) {
  if (plays(part, kinds)) return flaw::none;
  if ((part.kinds & kind::execution_space) != 0) return flaw::no_execution_space;
  if ((kinds & kind::table_list) != 0) return flaw::one_table;
  if (part.kinds == roles::indices.kinds)
    return (kinds & kind::array) != 0 ? flaw::no_indices : flaw::no_index_array;
  if (part.kinds == roles::offsets.kinds) return flaw::no_offsets;
  if (part.kinds == roles::rule.kinds) return flaw::no_rule;
  if ((part.kinds & kind::integer) == 0 && (part.kinds & kind::array) != 0)
    return (kinds & kind::unfit_array) != 0 ? flaw::no_elements : flaw::no_array;
  return flaw::call;
}

/// The arguments of a call, as kinds.
struct argument_list {
  const unsigned* kinds;
  std::size_t count;

  [[nodiscard]] consteval bool is(std::size_t i, unsigned kind) const {
    return i < count && (kinds[i] & kind) != 0;
  }
};

/// How many roles the arguments do not play; argument i has role i + shift.
consteval std::size_t mismatches(const call_form& form, argument_list arguments, std::size_t shift = 0) {
  std::size_t sum = 0;
  for (std::size_t i = shift; i < form.count; ++i)
    if (i - shift >= arguments.count || !plays(form.roles[i], arguments.kinds[i - shift])) ++sum;
  return sum;
}

/// The flaw of arguments after those that have roles.
consteval flaw flaw_of_rest(const call_form& form, argument_list arguments) {
  std::size_t i = form.count;
  while (i < arguments.count && i - form.count < form.most && plays(form.more, arguments.kinds[i])) ++i;
  const bool full = i - form.count == form.most;
  for (; i < arguments.count; ++i) {
    if (!form.policies) return flaw::call;
    if (!arguments.is(i, kind::policy))
      return !full && plays(form.more, arguments.kinds[i]) ? flaw::early_policy : flaw::no_policy;
  }
  return flaw::none;
}

/// The flaw of arguments that play all roles: those that a verb writes to may be constant or temporary.
consteval flaw flaw_of_written(const call_form& form, argument_list arguments) {
  constexpr unsigned objects =
      kind::codes | kind::table_object | kind::table_list | kind::state | kind::records;
  for (std::size_t i = 0; i < form.count; ++i) {
    if (!form.roles[i].written || !arguments.is(i, objects)) continue;
    if (arguments.is(i, kind::constant)) return flaw::constant;
    if (arguments.is(i, kind::temporary)) return flaw::temporary;
  }
  return flaw::none;
}

/// Whether arguments without an execution space begin like a call of the verb.
consteval bool lacks_execution_space(const call_form& form, argument_list arguments) {
  const std::size_t checked = std::min<std::size_t>(form.count, 3);
  for (std::size_t shift = 0; shift < 2; ++shift) {
    bool alike = arguments.count + shift >= checked;
    for (std::size_t i = 1; alike && i < checked; ++i)
      alike = plays(form.roles[i], arguments.kinds[i - shift]);
    if (alike) return true;
  }
  return false;
}

/// Whether two arguments of the call have changed places.
consteval bool is_swapped(const call_form& form, argument_list arguments) {
  std::array<unsigned, 16> kinds{};
  if (arguments.count > kinds.size() || mismatches(form, arguments) < 2) return false;
  std::copy_n(arguments.kinds, arguments.count, kinds.begin());
  for (std::size_t i = 1; i < form.count && i < arguments.count; ++i)
    for (std::size_t j = i + 1; j < form.count && j < arguments.count; ++j) {
      std::swap(kinds[i], kinds[j]);
      const bool fits = mismatches(form, {kinds.data(), arguments.count}) == 0;
      std::swap(kinds[i], kinds[j]);
      if (fits) return true;
    }
  return false;
}

/// How far a call is from a form.
consteval std::size_t distance(const call_form& form, argument_list arguments) {
  return mismatches(form, arguments) + (arguments.count > form.count ? arguments.count - form.count : 0);
}

/// The flaw of a call that begins with an execution space and fits no form: that of the form it is nearest to.
consteval flaw flaw_of_nearest(const call_form* forms, std::size_t count, argument_list arguments) {
  const call_form* nearest = forms;
  for (std::size_t i = 1; i < count; ++i)
    if (distance(forms[i], arguments) < distance(*nearest, arguments)) nearest = &forms[i];
  std::size_t policies = 0;
  for (std::size_t i = 0; i < arguments.count; ++i) {
    if (arguments.is(i, kind::policy))
      ++policies;
    else if (policies != 0)
      return flaw::early_policy;
  }
  if (arguments.count - policies < nearest->count || is_swapped(*nearest, arguments)) return flaw::call;
  for (std::size_t i = 0; i < nearest->count; ++i)
    if (!plays(nearest->roles[i], arguments.kinds[i]))
      return flaw_of_role(nearest->roles[i], arguments.kinds[i]);
  return flaw_of_rest(*nearest, arguments);
}

/// The flaw of a call of a verb, none if it fits one of the forms. A call without an execution space is refused
/// if it resembles one: other libraries have functions of these names.
consteval flaw flaw_of_call(const call_form* forms, std::size_t count, argument_list arguments) {
  for (std::size_t i = 0; i < count; ++i)
    if (mismatches(forms[i], arguments) == 0 && flaw_of_rest(forms[i], arguments) == flaw::none)
      return flaw_of_written(forms[i], arguments);
  if (!plays(forms->roles[0], kind::execution_space)) return flaw::call;
  if (arguments.is(0, kind::execution_space)) return flaw_of_nearest(forms, count, arguments);
  for (std::size_t i = 1; i < arguments.count; ++i)
    if (arguments.is(i, kind::execution_space)) return flaw::late_execution_space;
  for (std::size_t i = 0; i < count; ++i)
    if (lacks_execution_space(forms[i], arguments)) return flaw::no_execution_space;
  return flaw::none;
}

template <class Call, class... Arguments>
consteval flaw find_flaw() {
  constexpr unsigned kinds[] = {kinds_of<Arguments>..., 0};
  return flaw_of_call(Call::forms.data(), Call::forms.size(), {kinds, sizeof...(Arguments)});
}

/// The flaw of a call with these types of arguments.
template <class Call, class... Arguments>
inline constexpr flaw flaw_of = find_flaw<Call, Arguments...>();

/// Whether a call fits: the constraint of verbs.
template <class Call, class... Arguments>
concept Fits = flaw_of<Call, Arguments...>
== flaw::none;

/// Whether a verb refuses its arguments with a sentence, wherever they are kept.
template <class Call, class... Arguments>
concept Refused = flaw_of<Call, Arguments&...>
!= flaw::none;

/// Whether the only flaw is that the verb would write to what is constant or temporary. The arguments are
/// deduced by forwarding references.
template <class Call, class... Arguments>
concept Unwritable = flaw_of<Call, Arguments...>
== flaw::constant || flaw_of<Call, Arguments...> == flaw::temporary;

/// Fails with one sentence, which is the first message of the compiler. `Subject` and `Arguments` are the call
/// that fails: a compiler prints a message once for each.
template <flaw Found, class Subject, class... Arguments>
consteval void fail_with() {
  static_assert(
      Found != flaw::no_execution_space,
      "ferry: the first argument of a verb must be an instance of a Kokkos execution space, Kokkos::DefaultExecutionSpace{} say.");
  static_assert(
      Found != flaw::late_execution_space,
      "ferry: the instance of the execution space comes first, before table, indices and batch: verb(exec, table, ...).");
  static_assert(
      Found != flaw::early_policy,
      "ferry: policies such as path::direct{} are the last arguments of a verb, after all arrays and numbers.");
  static_assert(
      Found != flaw::no_policy,
      "ferry: the trailing arguments must be policies: path::*, bounds::*, duplicates::*, for a step also step_count::*, rounding::*, nonfinite::*, or a policies<...> bundle of them.");
  static_assert(
      Found != flaw::no_array,
      "ferry: tables and batches must be a ferry::tensor, a tensor_view, a Kokkos::View, a std::span, a std::vector, a std::array, or a type with ferry::array_traits; for a pointer, a unique_ptr or an mdspan give ferry::tensor_view(pointer, rows, width), or ferry::tensor_view<T, Space>(pointer, rows, width) where the memory is no ordinary host memory, for a Kokkos::DualView one of its two views. <ferry/interop/mdspan.hpp>, dual_view.hpp and eigen.hpp make arrays of mdspans, DualViews and Eigen's matrices.");
  static_assert(
      Found != flaw::no_elements,
      "ferry: the elements of an array must be trivially copyable, because verbs copy their bytes: numbers, or structs of numbers. A std::string or a std::vector owns memory; of a std::vector of std::vectors make one array of rows, ferry::tensor_view(pointer, rows, width).");
  static_assert(
      Found != flaw::no_indices,
      "ferry: the indices must be a row_plan, or a rank-1 array of int32, uint32, int64 or uint64.");
  static_assert(
      Found != flaw::no_index_array,
      "ferry: the indices must be a row_plan, or a rank-1 array of int32, uint32, int64 or uint64: a std::vector, a std::span, a std::array, a Kokkos::View or a ferry::tensor; for a pointer, a unique_ptr or an mdspan give ferry::tensor_view(pointer, count), as for a table ferry::tensor_view(pointer, rows, width).");
  static_assert(
      Found != flaw::braced_indices,
      "ferry: the indices must be an array with a name for its type: write std::array{1, 2, 3} in place of {1, 2, 3}.");
  static_assert(
      Found != flaw::no_offsets,
      "ferry: the offsets of bags must be a rank-1 array of int32, uint32, int64 or uint64, or the number of positions that every bag has.");
  static_assert(Found != flaw::no_rule, "ferry: the verb needs an optimizer rule, ferry::optim::adam say.");
  static_assert(
      Found != flaw::one_table,
      "ferry: the tables of for_each_table serve gather_bags alone; call other verbs once for each table.");
  static_assert(Found != flaw::constant,
                "ferry: the verb writes to this table, state or records, so it must not be const.");
  static_assert(
      Found != flaw::temporary,
      "ferry: the verb writes to a temporary table, state or records, which ends while the work may be in flight; keep it in a variable.");
}

/// Fails with the sentence for a call that fits no form of the verb.
template <class Call, class... Arguments>
consteval void refuse() {
  constexpr flaw found = flaw_of<Call, Arguments...>;
  if constexpr (found == flaw::call)
    Call::template require<false, Arguments...>();
  else
    fail_with<found, Call, Arguments...>();
}

/// Fails with the sentence for an argument that does not play its role.
template <unsigned Kinds, class Argument>
consteval void require_role() {
  fail_with<flaw_of_role(role{Kinds}, kinds_of_plain<std::remove_cvref_t<Argument>>), Argument>();
}

}  // namespace ferry::detail
