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
#include <string>
#include <type_traits>

namespace ferry::detail {

/// Throws invalid_argument where an array lies on a device whose memory the instance does not reach, unless
/// the copy is one transfer of the driver, which takes any two devices.
template <class Exec, class From, class FromSpace, class To, class ToSpace>
void require_copy_devices(launch_context<Exec>& call, const array_ref<From, FromSpace>& source,
                          const array_ref<To, ToSpace>& target) {
  if constexpr (!is_host_exec<Exec>) {
    const auto reaches = [&](const auto& array) {
      const int device = array.device();
      return device < 0 || device == call.device() ||
             execution_backend<Exec>::reaches_device(call.exec(), device);
    };
    const bool source_is_near = reaches(source), target_is_near = reaches(target);
    if (source_is_near && target_is_near) return;
    constexpr bool transfers = std::is_same_v<std::remove_const_t<From>, To> &&
                               !std::is_same_v<FromSpace, mapped_space> &&
                               !std::is_same_v<ToSpace, mapped_space>;
    if (transfers && box_of(source, target).ordered(copy_box::side::target).is_one_run()) return;
    throw invalid_argument(joined(
        "ferry::copy: the instance is of device ", call.device(), ", which does not reach the memory of ",
        (source_is_near ? target.describe() : source.describe()), " on device ",
        source_is_near ? target.device() : source.device(),
        "; give an instance of that device, or copy contiguous arrays of one element type"));
  }
}

/// One transfer if both sides are blocks of one type and equal layout, a pitched one if they are long
/// rows of such, else one kernel.
template <class Exec, class From, class FromSpace, class To, class ToSpace>
void copy_direct(launch_context<Exec>& call, const array_ref<From, FromSpace>& source,
                 const array_ref<To, ToSpace>& target) {
  using plain = std::remove_const_t<From>;
  const auto& label = call.label("direct");
  const copy_box box = box_of(source, target).ordered(copy_box::side::target);
  const std::int64_t bytes = box.size() * static_cast<std::int64_t>(sizeof(From));
  if constexpr (std::is_same_v<plain, To>) {
    // DMA from mapped_space reaches a seventh of the rate of the link, so a kernel moves it.
    constexpr bool by_kernel = !is_host_exec<Exec> && (std::is_same_v<FromSpace, mapped_space> ||
                                                       std::is_same_v<ToSpace, mapped_space>);
    constexpr bool inside = std::is_same_v<FromSpace, device_space> && std::is_same_v<ToSpace, device_space>;
    if constexpr (by_kernel) {
      if (box.is_one_run()) {
        [[maybe_unused]] const auto traffic = count_transfer<path::direct>(call, source, target, bytes);
        return launch_box<Exec, To, plain>(call.exec(), label, target.data, source.data, box);
      }
    } else {
      if (box.is_one_run()) {
        [[maybe_unused]] const auto traffic =
            count_transfer<path::direct>(call, source, target, bytes, false);
        return transfer(call.exec(), label.c_str(), target.data, ToSpace::name, source.data, FromSpace::name,
                        bytes);
      }
      // Kernels move rows between two places in the device faster than its DMA engines, and need none of
      // them.
      if constexpr (!is_host_exec<Exec> && !inside) {
        if (suits_transfer(call.exec(), box, sizeof(To))) {
          [[maybe_unused]] const auto traffic =
              count_transfer<path::direct>(call, source, target, bytes, false);
          const transfer_region region(ToSpace::name, target.data, FromSpace::name, source.data,
                                       static_cast<std::size_t>(bytes), label);
          return transfer_box<Exec, To>(call.exec(), label.c_str(), target.data, source.data, box);
        }
      }
    }
  }
  [[maybe_unused]] const auto traffic = count_transfer<path::direct>(call, source, target, bytes);
  launch_box<Exec, To, plain>(call.exec(), label, target.data, source.data, box);
}

}  // namespace ferry::detail
