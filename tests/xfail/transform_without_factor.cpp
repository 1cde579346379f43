// SPDX-License-Identifier: Apache-2.0
// Its kernel clips norms, but has no factor for them.
// expected-error: the arguments of optim::chain after the rule are transforms with all members of ferry::Transform
#include <ferry/ferry.hpp>

#include <string_view>

struct halving {
  static constexpr std::string_view name = "halving";

  template <class Compute>
  struct kernel : ferry::optim::transform_defaults {
    static constexpr bool clips_norm = true;
#ifdef FERRY_XFAIL_FIXED
    KOKKOS_FUNCTION Compute gradient_factor(const Compute&, const Compute&) const { return Compute(0.5); }
#endif
  };
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    return {};
  }
  template <class Check>
  void for_each_array(const Check&) const {}
  void check() const {}
};

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  static_cast<void>(ferry::optim::chain{ferry::optim::adam{}, halving{}});
}
