// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/detail/copy_staged.hpp>

#include "../../backends/enabled.hpp"

#include <cstdint>
#include <string>

namespace ferry::detail {

template <class Unit, class Exec>
void move_units(const Exec& exec, const std::string& label, void* target, const void* source,
                const copy_box& box, [[maybe_unused]] bool past_caches) {
  auto* const target_units = static_cast<Unit*>(target);
  const auto* const source_units = static_cast<const Unit*>(source);
  if constexpr (is_host_exec<Exec>) {
    launch_box_on_host(exec, label, target_units, source_units, box, past_caches);
  } else {
    using wide = kernels::opaque16;
    constexpr auto units = static_cast<std::int64_t>(sizeof(wide) / sizeof(Unit));
    if (box.joins(units) && is_aligned(target_units, sizeof(wide)) && is_aligned(source_units, sizeof(wide)))
      launch_box_on_device(exec, label, static_cast<wide*>(target), static_cast<const wide*>(source),
                           box.joined(units).ordered(copy_box::side::target));
    else
      launch_box_on_device(exec, label, target_units, source_units, box);
  }
}

#define FERRY_MOVE_UNITS(UNIT, EXEC)                                                                         \
  template void move_units<kernels::opaque<UNIT>, EXEC>(const EXEC&, const std::string&, void*, const void*, \
                                                        const copy_box&, bool);
#define FERRY_MOVE_ON(EXEC) \
  FERRY_MOVE_UNITS(1, EXEC) \
  FERRY_MOVE_UNITS(2, EXEC) \
  FERRY_MOVE_UNITS(4, EXEC) \
  FERRY_MOVE_UNITS(8, EXEC)
FERRY_FOR_EXECUTION_SPACES(FERRY_MOVE_ON)
FERRY_MOVE_ON(caller_thread)
#undef FERRY_MOVE_ON
#undef FERRY_MOVE_UNITS

}  // namespace ferry::detail
