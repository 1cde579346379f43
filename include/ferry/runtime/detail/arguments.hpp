// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/argument_kinds.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

/// How a verb is called, as a list of roles, and the flaw of a call that fits no such list. The verbs are
/// described in plan/detail/refusals.hpp.
namespace ferry::detail {

/// The part of an argument in a call. A verb that writes to a table, a state or records needs a variable.
struct role {
  unsigned kinds = 0;
  bool written = false;
};

/// The roles; descriptions of verbs inherit their names.
struct roles {
  static constexpr role execution_space{kind::execution_space};
  static constexpr role array{kind::array};
  static constexpr role output{kind::array, true};
  static constexpr role table{kind::array | kind::codes | kind::table_object};
  static constexpr role written_table{table.kinds, true};
  static constexpr role source{kind::array | kind::table_object};
  static constexpr role sink{source.kinds, true};
  static constexpr role codes{kind::codes};
  static constexpr role written_codes{kind::codes, true};
  static constexpr role tables{table.kinds | kind::table_list};
  static constexpr role table_list{kind::table_list};
  static constexpr role row_tables{kind::array | kind::codes | kind::table_list};
  static constexpr role indices{kind::indices};
  static constexpr role offsets{kind::indices | kind::integer};
  static constexpr role rows{kind::integer | table.kinds | kind::records};
  static constexpr role rule{kind::rule};
  static constexpr role state{kind::state, true};
  static constexpr role states{kind::states};
  static constexpr role records{kind::records, true};
  static constexpr role number{kind::number};
  static constexpr role integer{kind::integer};
  static constexpr role text{kind::text};
  static constexpr role object{kind::object};
  static constexpr role gradients{kind::array | kind::object};  // sparse ones are objects
  static constexpr role any{kind::any};
};

/// One way to call a verb: the roles of its arguments, then up to `max_more` with the role `more`, then
/// policies.
struct call_form {
  std::array<role, 8> roles;
  std::size_t count;
  bool policies;
  role more{};
  std::size_t max_more = 0;

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
  if ((kinds & kind::table_range) != 0) return flaw::table_range;
  if (part.kinds == roles::indices.kinds)
    return (kinds & kind::array) != 0 ? flaw::no_indices : flaw::no_index_array;
  if (part.kinds == roles::offsets.kinds) return flaw::no_offsets;
  if (part.kinds == roles::rule.kinds) return flaw::no_rule;
  if (part.kinds == roles::states.kinds) return flaw::no_states;
  if (part.kinds == roles::gradients.kinds) return flaw::call;
  if ((part.kinds & kind::integer) == 0 && (part.kinds & kind::array) != 0) {
    if ((kinds & kind::codes) != 0) return flaw::quantized;
    return (kinds & kind::unfit_array) != 0 ? flaw::no_elements : flaw::no_array;
  }
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
consteval flaw flaw_of_others(const call_form& form, argument_list arguments) {
  std::size_t i = form.count;
  while (i < arguments.count && i - form.count < form.max_more && plays(form.more, arguments.kinds[i])) ++i;
  const bool full = i - form.count == form.max_more;
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
    if (!form.roles[i].written) continue;
    if (arguments.is(i, kind::read_only)) return flaw::read_only;
    if (!arguments.is(i, objects)) continue;
    if (arguments.is(i, kind::constant)) return flaw::constant;
    if (arguments.is(i, kind::temporary)) return flaw::temporary;
  }
  return flaw::none;
}

/// True if arguments without an execution space begin like a call of the verb.
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

/// True if two arguments of the call are swapped.
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

/// The flaw of a call that begins with an execution space and fits no form. The nearest form has the flaw.
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
  return flaw_of_others(*nearest, arguments);
}

/// The flaw of a call of a verb, none if it fits one of the forms. A call without an execution space is
/// refused if it resembles one, because other libraries have functions of these names.
consteval flaw flaw_of_call(const call_form* forms, std::size_t count, argument_list arguments) {
  for (std::size_t i = 0; i < count; ++i)
    if (mismatches(forms[i], arguments) == 0 && flaw_of_others(forms[i], arguments) == flaw::none)
      return flaw_of_written(forms[i], arguments);
  if (!plays(forms->roles[0], kind::execution_space))
    return forms->roles[0].kinds == kind::rule && arguments.is(0, kind::object) ? flaw::no_rule : flaw::call;
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

/// True if a call fits: the constraint of verbs.
template <class Call, class... Arguments>
concept Fits = flaw_of<Call, Arguments...>
== flaw::none;

/// True if a verb refuses its arguments with a sentence, wherever they are kept.
template <class Call, class... Arguments>
concept Refused = flaw_of<Call, Arguments&...>
!= flaw::none&& flaw_of<Call, Arguments&...> < flaw::read_only;

/// True if the only flaw is that the verb would write to what is constant or temporary. The arguments are
/// deduced by forwarding references.
template <class Call, class... Arguments>
concept Unwritable = flaw_of<Call, Arguments...>
>= flaw::read_only;

/// Fails with the sentence for a call that fits no form of the verb.
template <class Call, class... Arguments>
consteval void refuse() {
  constexpr flaw flaw_found = flaw_of<Call, Arguments...>;
  if constexpr (flaw_found == flaw::call)
    Call::template require<false, Arguments...>();
  else
    fail_with<flaw_found, Call, Arguments...>();
}

/// Fails with the sentence for an argument that does not play its role.
template <unsigned Kinds, class Argument>
consteval void require_role() {
  fail_with<flaw_of_role(role{Kinds}, kinds_of_plain<std::remove_cvref_t<Argument>>), Argument>();
}

}  // namespace ferry::detail
