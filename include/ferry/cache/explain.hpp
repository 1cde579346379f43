// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/check_cached.hpp>
#include <ferry/cache/detail/finds_while_gathering.hpp>
#include <ferry/cache/detail/predict_cached.hpp>
#include <ferry/cache/explanation.hpp>
#include <ferry/error.hpp>
#include <ferry/profile/current_profile.hpp>
#include <ferry/profile/explain.hpp>
#include <ferry/profile/path_kind.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <mutex>
#include <string>
#include <type_traits>

namespace ferry {

/// The time of a verb by the profile's rates for `n` rows of a cached table, with the expected hit rate and
/// the bytes over the link. The hit rate is that of the verbs so far; before the first one, the share of the
/// rows that fit into the cache. Arguments and errors are those of explain for any table. Nothing is moved.
/// Waits for the verbs in flight.
template <class BatchSpace = void, class Table, class Policy, class Directory,
          class Exec = Kokkos::DefaultExecutionSpace>
[[nodiscard]] cache::explanation explain(verb kind, const cached_table<Table, Policy, Directory>& table,
                                         std::int64_t n, const Exec& exec = Exec(),
                                         const explain_options& options = {}) {
  detail::require_cached_verb<Exec, detail::chosen_policies<>>();
  using batch_space =
      std::conditional_t<std::is_void_v<BatchSpace>, detail::usual_batch_space<Exec>, BatchSpace>;
  static_assert(MemorySpace<batch_space>, "ferry: explain's template argument is the batch's memory space.");
  if (n < 0)
    throw invalid_argument(detail::joined("ferry::explain: the number of rows is ", n, ", must be >= 0"));
  const auto ref = table.ref();
  const auto known = detail::profile_holder<Exec>::get(exec);
  const cache::statistics so_far = table.statistics();
  detail::cached_facts facts;
  facts.cold = detail::facts_of<Exec, batch_space>(kind, ref, n, options.planned);
  facts.slots = static_cast<std::int64_t>(table.slots());
  facts.rows = ref.rows();
  facts.known = so_far.hits + so_far.misses != 0;
  facts.hit_rate = so_far.hit_rate();
  if constexpr (!detail::is_host_exec<Exec>)
    if (kind == verb::gather && !options.planned) {
      auto& core = table.core();
      const std::lock_guard lock(core.guard);
      facts.found_apart = !detail::finds_while_gathering(core, facts.cold.row_bytes);
    }
  auto explanation = detail::explain_cached<Exec>(known->profile, facts);
  explanation.call = detail::joined(name(kind), " of ", n, " rows, cached table ", ref.describe(), " with ",
                                    facts.slots, " rows in device_space, batch in ", batch_space::name,
                                    (options.planned ? ", with a plan" : ""));
  explanation.profile = known->origin;
  return explanation;
}

}  // namespace ferry
