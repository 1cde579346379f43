// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/profile/current_profile.hpp>
#include <ferry/profile/detail/path_rule.hpp>
#include <ferry/profile/machine_profile.hpp>
#include <ferry/profile/path_kind.hpp>
#include <ferry/runtime/detail/arguments.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <Kokkos_Core.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace ferry {

/// Why path::automatic takes a path; see ferry::explain.
struct explanation {
  /// A path that can serve the call.
  struct candidate {
    path_kind path = path_kind::direct;  ///< the path
    double seconds = 0;                  ///< its start, and the bytes of the batch over its rate
    double gb_per_s = 0;                 ///< its rate for rows of this table, in 1e9 bytes per second
    bool picked = false;                 ///< true if path::automatic takes it
    std::string reason;                  ///< one sentence: its start, and what limits its rate
  };

  std::string call;      ///< the call in words
  std::string compared;  ///< the numbers that decided, and their comparison; empty for one path
  std::string profile;   ///< where the numbers come from, see ferry::profile_origin
  path_kind picked = path_kind::direct;  ///< the path that path::automatic takes
  std::vector<candidate> candidates;     ///< the picked path first, then by time

  /// A table with one line per candidate; a star marks the picked one.
  [[nodiscard]] std::string to_string() const;
};

namespace detail {

/// A number with its unit.
std::string in_words(double value, int digits, const char* unit);

/// Fills all but `call` and `profile`.
explanation explain_choice(const machine_profile& profile, const move_facts& facts, path_set candidates);

}  // namespace detail

/// Further facts about a call, for ferry::explain.
struct explain_options {
  /// True if the verb is given a row_plan. Without one a verb that writes is taken to go in the order of its
  /// list, which duplicates::assume_unique allows; other policies sort first.
  bool planned = false;
};

namespace detail {

/// The default memory space of a batch: one that kernels of Exec reach.
template <class Exec>
using usual_batch_space =
    std::conditional_t<may_dereference<Exec, device_space>(), device_space, pageable_space>;

struct explain_arguments {
  static constexpr std::array forms{
      call_without_policies(roles::object, roles::table, roles::integer),
      call_without_policies(roles::object, roles::table, roles::integer, roles::execution_space),
      call_without_policies(roles::object, roles::table, roles::integer, roles::execution_space,
                            roles::object)};

  template <bool Accepted, class...>
  static consteval void require() {
    static_assert(
        Accepted,
        "ferry: explain is called as explain(verb, table, n, exec, options), ferry::verb::gather and the rows of the batch say; exec and options may be left out.");
  }
};

}  // namespace detail

/// The path that path::automatic takes for `n` rows of `table`, the numbers of the profile that it compared,
/// and for each possible path its start, and the bytes over its rate. Nothing is moved, and the rows of the
/// table are not read.
///
///   action      verb::gather, scatter, scatter_add, step or copy; for copy, `table` is the source
///   table       any table that the verb takes
///   n           rows of the batch
///   BatchSpace  memory space of the batch; default device_space if `exec` reaches it, else pageable_space
///   exec        the execution space instance of the call
///   options     see explain_options
///
/// Throws invalid_argument for a negative n or strided rows, and io_error as current_profile.
template <class BatchSpace = void, class Table, class Exec = Kokkos::DefaultExecutionSpace>
[[nodiscard]] explanation explain(verb action, const Table& table, std::int64_t n, const Exec& exec = Exec(),
                                  const explain_options& options = {}) {
  detail::require_execution_space<Exec>();
  detail::require_rows<const Table>();
  detail::require_reach<Exec, Table>();
  using batch_space =
      std::conditional_t<std::is_void_v<BatchSpace>, detail::usual_batch_space<Exec>, BatchSpace>;
  static_assert(MemorySpace<batch_space>, "ferry: explain's template argument is the batch's memory space.");
  static_assert(
      detail::may_dereference<Exec, batch_space>(),
      "ferry: a host execution space can't dereference a batch in device_space; pass an instance of the device's execution space.");
  using table_space = typename detail::traits_of<Table>::memory_space;
  const auto ref = make_ref(table);
  detail::require_dense_rows("explain", ref);
  if (n < 0)
    throw invalid_argument(detail::joined("ferry::explain: the number of rows is ", n, ", must be >= 0"));
  const auto facts = detail::facts_of<Exec, batch_space>(action, ref, n, options.planned);
  const auto current = detail::profile_holder<Exec>::get(exec);
  auto report = detail::explain_choice(current->profile, facts,
                                       detail::candidate_paths<Exec, table_space, batch_space>(action));
  report.call = detail::joined(name(action), " of ", n, " rows, table ", ref.describe(), ", batch in ",
                               batch_space::name, (options.planned ? ", with a plan" : ""));
  report.profile = current->origin;
  return report;
}

/// Refuses other arguments. Does not compile.
template <class... Arguments>
  requires(detail::Refused<detail::explain_arguments, Arguments...>)
explanation explain(const Arguments&...) {
  detail::refuse<detail::explain_arguments, Arguments&...>();
  return {};
}

}  // namespace ferry
