// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/copy_progress.hpp>
#include <ferry/rows/detail/copy_box.hpp>
#include <ferry/rows/detail/launch_box.hpp>
#include <ferry/rows/detail/transfer_box.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/transfer.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry::detail {

/// One transfer where both sides are blocks of one type and equal layout, a pitched one where they are long
/// rows of such, else one kernel.
template <class Exec, class From, class FromSpace, class To, class ToSpace>
void copy_direct(launch_context<Exec>& of, const array_ref<From, FromSpace>& from,
                 const array_ref<To, ToSpace>& to) {
  using plain = std::remove_const_t<From>;
  const auto& label = of.label("direct");
  const copy_box box = box_of(from, to).ordered(copy_box::side::to);
  const std::int64_t bytes = box.size() * static_cast<std::int64_t>(sizeof(From));
  if constexpr (std::is_same_v<plain, To>) {
    // DMA from mapped_space reaches a seventh of the rate of the link, so a kernel moves it.
    constexpr bool by_kernel = !is_host_exec<Exec> && (std::is_same_v<FromSpace, mapped_space> ||
                                                       std::is_same_v<ToSpace, mapped_space>);
    constexpr bool inside = std::is_same_v<FromSpace, device_space> && std::is_same_v<ToSpace, device_space>;
    if constexpr (by_kernel) {
      if (box.is_one_run()) {
        [[maybe_unused]] const auto moving = moves<path::direct>(of, from, to, bytes);
        return launch_box<Exec, To, plain>(of.exec(), label, to.data, from.data, box);
      }
    } else {
      if (box.is_one_run()) {
        [[maybe_unused]] const auto moving = moves<path::direct>(of, from, to, bytes, false);
        return transfer(of.exec(), label.c_str(), to.data, ToSpace::name, from.data, FromSpace::name, bytes);
      }
      // Kernels move rows between two places in the device faster than its DMA engines, and need none of
      // them.
      if constexpr (!is_host_exec<Exec> && !inside) {
        if (suits_transfer(of.exec(), box, sizeof(To))) {
          [[maybe_unused]] const auto moving = moves<path::direct>(of, from, to, bytes, false);
          const transfer_region region(ToSpace::name, to.data, FromSpace::name, from.data,
                                       static_cast<std::size_t>(bytes), label);
          return transfer_box<Exec, To>(of.exec(), label.c_str(), to.data, from.data, box);
        }
      }
    }
  }
  [[maybe_unused]] const auto moving = moves<path::direct>(of, from, to, bytes);
  launch_box<Exec, To, plain>(of.exec(), label, to.data, from.data, box);
}

}  // namespace ferry::detail
