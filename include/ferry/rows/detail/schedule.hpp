#pragma once

#include <ferry/rows/detail/chunked.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <cstdint>
#include <string>

/// In which order a kernel of items x per_item work items walks over them.
namespace ferry::detail::schedule {

/// One work item for each thread, all at once.
struct flat {
  template <class Exec, class Functor>
  void run(const Exec& exec, const std::string& label, std::int64_t items, std::int64_t per_item,
           const Functor& functor) const {
    launch(exec, label, items * per_item, functor);
  }
};

/// By few teams, chunk by chunk. A host's threads walk over neighbouring items anyway.
struct team_chunks {
  const std::int64_t* count = nullptr;  ///< number of items, where only the device knows it
  std::int64_t chunk = 0;
  kernels::split_state split{};

  template <class Exec, class Functor>
  void run(const Exec& exec, const std::string& label, std::int64_t items, std::int64_t per_item,
           const Functor& functor) const {
    if constexpr (is_host_exec<Exec>) {
      launch(exec, label, items * per_item, functor);
    } else {
      if (items <= 0 || per_item <= 0) return;
      constexpr auto tuning = execution_backend<Exec>::tuning();
      launch_teams<tuning.ordered_team_size>(
          exec, label, tuning.ordered_teams, 1,
          kernels::team_chunked<Exec, Functor>{functor, items, count, per_item, chunk, split});
    }
  }
};

/// One piece for each of as many blocks as there would be teams. A RangePolicy: a TeamPolicy's launch allocates, which verbs
/// on path::direct must not.
struct range_chunks {
  const std::int64_t* count = nullptr;  ///< number of items, where only the device knows it

  template <class Exec, class Functor>
  void run(const Exec& exec, const std::string& label, std::int64_t items, std::int64_t per_item,
           const Functor& functor) const {
    if constexpr (is_host_exec<Exec>) {
      launch(exec, label, items * per_item, functor);
    } else {
      if (items <= 0 || per_item <= 0) return;
      constexpr std::int64_t pieces = execution_backend<Exec>::tuning().ordered_teams;
      constexpr std::int64_t size = execution_backend<Exec>::tuning().ordered_team_size;
      launch(exec, label, pieces * size,
             kernels::range_chunked<Functor>{functor, items, count, per_item, pieces, size});
    }
  }
};

}  // namespace ferry::detail::schedule
