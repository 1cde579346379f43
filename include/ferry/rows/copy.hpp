// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/copy_progress.hpp>
#include <ferry/rows/detail/copy_box.hpp>
#include <ferry/rows/detail/copy_slots.hpp>
#include <ferry/rows/detail/copy_staged.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstddef>
#include <cstdint>
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
    const bool reaches_source = reaches(source), reaches_target = reaches(target);
    if (reaches_source && reaches_target) return;
    constexpr bool transfers = std::is_same_v<std::remove_const_t<From>, To> &&
                               !std::is_same_v<FromSpace, mapped_space> &&
                               !std::is_same_v<ToSpace, mapped_space>;
    if (transfers && box_of(source, target).ordered(copy_box::side::target).is_one_run()) return;
    throw invalid_argument(joined(
        "ferry::copy: the instance is of device ", call.device(), ", which does not reach the memory of ",
        (reaches_source ? target.describe() : source.describe()), " on device ",
        reaches_source ? target.device() : source.device(),
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
      // Kernels move rows inside the device faster than its DMA engines, and need none of
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

namespace ferry {

namespace detail {

/// A sequence, which fits an array of any extents with as many elements, with the extents of that array.
template <class T, class Space, class Other>
array_ref<T, Space> in_extents_of(const Other& shape, array_ref<T, Space> sequence) {
  sequence.rank = shape.rank;
  sequence.extents = shape.extents;
  sequence.make_dense();
  return sequence;
}

/// Throws invalid_argument when contiguous arrays overlap, when elements of `sink` share memory, and unless
/// the arrays have equal extents, or one is a sequence of as many elements (`fits`). Returns whether the
/// extents are equal.
bool require_copy(const untyped_array& source, const untyped_array& sink, bool fits);

/// The whole verb but the checks of its types: for arrays of equal extents.
template <class Path, class Exec, class From, class FromSpace, class To, class ToSpace>
ticket copy_array(const Exec& exec, const array_ref<From, FromSpace>& source,
                  const array_ref<To, ToSpace>& sink, const slot_tuning& how) {
  launch_context<Exec> call(exec, "copy");
  if (source.size() == 0) return call.finish();
  copy_meter meter(source.label.view(), sink.label.view(),
                   static_cast<std::size_t>(sink.size()) * sizeof(To));
  if constexpr (in_batch_order<Path>) {
    require_direct_reach("copy", exec, source);
    require_direct_reach("copy", exec, sink);
    require_copy_devices(call, source, sink);
    call.reads_from(source, true);
    call.writes_to(sink, true);
    copy_direct(call, source, sink);
  } else {
    wait_for_host_access(call, "ferry::copy::staged", source, sink);
    [[maybe_unused]] const auto traffic =
        count_transfer<Path>(call, source, sink, source.size() * static_cast<std::int64_t>(sizeof(From)));
    copy_staged(call, source, sink, how, meter);
  }
  ticket work = call.finish();
  meter.finish();
  return work;
}

}  // namespace detail

/// to = from, element by element, with conversion if the element types differ.
///
///   exec      the execution space instance that the copy is enqueued on
///   from, to  arrays of equal extents in any memory spaces, with any strides, as those of a transpose or of
///             a part of an array; a std::span, vector or array fits an array of any extents with as many
///             elements
///   policies  path::direct, path::staged or path::automatic (default)
///
/// Arrays in device_space may lie on other devices than `exec`. Devices that reach each other's memory copy
/// without the host; between others only contiguous arrays of one type are copied, through the host's memory.
/// path::staged needs the array in device_space on the device of `exec`.
///
/// path::staged is the default between pageable memory and a device. It occupies the calling thread, and a
/// copy to the host has ended when it returns. The operands must not overlap. They must live until the work
/// has ended, see ferry::ticket. ferry::copy_progress observes long copies. Throws invalid_argument for
/// extents that differ, for contiguous operands that overlap, for a destination whose elements share memory,
/// and for memory that `exec` does not reach by the path.
template <class Exec, class From, class To, class... Policies>
  requires(detail::AnArray<From>&& detail::AnArray<To>&&
               detail::Fits<detail::copy_arguments, const Exec&, const From&, To, Policies...>)
[[nodiscard]] ticket copy(const Exec& exec, const From& source, To&& target, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_execution_space<Exec>();
  detail::require_policies<chosen, false, false>();
  detail::require_output<To>();
  detail::require_reach<Exec, From>();
  detail::require_reach<Exec, To>();
  using source_space = typename detail::traits_of<From>::memory_space;
  using target_space = typename detail::traits_of<To>::memory_space;
  using asked = typename chosen::template get<path_category, path::automatic>;
  using path_policy = std::conditional_t < !asked::chosen_at_run_time, asked,
        std::conditional_t < !detail::is_host_exec<Exec> &&
            (std::is_same_v<source_space, pageable_space> || std::is_same_v<target_space, pageable_space>),
        path::staged, path::direct >>
      ;
  static_assert(
      !path_policy::sorts,
      "ferry: copy moves whole arrays, so there are no rows to sort; path::ordered and path::cooperative are for verbs that take indices.");
  detail::require_path<path_policy, source_space, target_space>();
  auto source_ref = make_ref(source);
  auto target_ref = make_ref(target);
  detail::require_convertible<typename decltype(target_ref)::value_type,
                              typename decltype(source_ref)::value_type>();

  constexpr bool source_is_sequence = is_sequence_v<std::remove_cvref_t<From>>;
  constexpr bool target_is_sequence = is_sequence_v<std::remove_cvref_t<To>>;
  const bool same = detail::require_copy(source_ref, target_ref, source_is_sequence || target_is_sequence);
  if constexpr (source_is_sequence) {
    if (!same) source_ref = detail::in_extents_of(target_ref, source_ref);
  } else if constexpr (target_is_sequence) {
    if (!same) target_ref = detail::in_extents_of(source_ref, target_ref);
  }
  return detail::copy_array<path_policy>(exec, source_ref, target_ref, detail::slot_tuning::of(exec));
}

}  // namespace ferry
