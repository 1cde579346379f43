// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/transform.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/rows/detail/global_rows.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// The kernel part of a transform, which gets the rows of the whole table.
template <class Inner, class Compute>
struct global_transform_kernel : Inner {
  kernels::global_rows rows;

  KOKKOS_FORCEINLINE_FUNCTION bool takes(std::int64_t row) const { return Inner::takes(rows(row)); }
  KOKKOS_FORCEINLINE_FUNCTION Compute changed(const Compute& before, const Compute& after,
                                              std::int64_t row) const {
    return Inner::changed(before, after, rows(row));
  }
};

/// A transform for the step of a shard: its arrays have one number for each row of the whole table.
template <class Transform>
class plain_global_transform {
 public:
  static constexpr std::string_view name = Transform::name;

  plain_global_transform(const Transform& of, const kernels::global_rows& rows, std::int64_t local_rows)
      : of_(of), rows_(rows), local_rows_(local_rows) {}

  template <class Compute>
  [[nodiscard]] auto device_part() const {
    using inner = decltype(of_.template device_part<Compute>());
    return global_transform_kernel<inner, Compute>{of_.template device_part<Compute>(), rows_};
  }
  /// The checks of a step compare an array with the shard; those of the whole table come before.
  template <class Check>
  void for_each_array(const Check& check) const {
    of_.for_each_array([&](auto array) {
      if constexpr (requires { array.extents[0]; }) array.extents[0] = local_rows_;
      check(array);
    });
  }
  void check() const { of_.check(); }

 private:
  Transform of_;
  kernels::global_rows rows_;
  std::int64_t local_rows_;
};

template <class Transform>
class global_transform : public plain_global_transform<Transform> {
 public:
  using plain_global_transform<Transform>::plain_global_transform;
};
template <class Transform>
  requires requires { typename Transform::memory_space; }
class global_transform<Transform> : public plain_global_transform<Transform> {
 public:
  using memory_space = typename Transform::memory_space;
  using plain_global_transform<Transform>::plain_global_transform;
};

/// The rule of a step on a shard. `of` is the rule of the step on the whole table.
template <class Rule>
const Rule& rule_for_shard(const Rule& of, const kernels::global_rows&, std::int64_t) {
  return of;
}
template <class Rule, class... Transforms>
auto rule_for_shard(const optim::chain<Rule, Transforms...>& of, const kernels::global_rows& rows,
                    std::int64_t local_rows) {
  return std::apply(
      [&](const auto&... transform) {
        return optim::chain<Rule, global_transform<Transforms>...>(
            of.rule, global_transform<Transforms>(transform, rows, local_rows)...);
      },
      of.transforms);
}

}  // namespace ferry::detail
