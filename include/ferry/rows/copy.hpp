#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/copy_elements.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/serve_ring.hpp>
#include <ferry/rows/detail/staging_ring.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/transfer.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry {

namespace detail {

/// The extents and strides of an array, with adjacent extents merged.
template <class T, class Space>
kernels::strided_places places_of(const array_ref<T, Space>& array) {
  kernels::strided_places made;
  for (std::size_t i = 0; i < array.rank; ++i) {
    if (array.extents[i] == 1) continue;
    if (made.rank > 0 && made.strides[made.rank - 1] == array.extents[i] * array.strides[i]) {
      made.extents[made.rank - 1] *= array.extents[i];
      made.strides[made.rank - 1] = array.strides[i];
    } else {
      made.extents[made.rank] = array.extents[i];
      made.strides[made.rank] = array.strides[i];
      ++made.rank;
    }
  }
  if (made.rank == 0) {
    made.rank = 1;
    made.extents[0] = 1;
    made.strides[0] = 1;
  }
  return made;
}

inline kernels::strided_places dense_places() {
  kernels::strided_places made;
  made.rank = 1;
  made.strides[0] = 1;
  return made;
}

inline bool is_dense(const kernels::strided_places& places) {
  return places.rank == 1 && places.strides[0] == 1;
}

/// Whether an array is one aligned block of 16-byte units.
template <class T, class Space>
bool is_whole_units(const array_ref<T, Space>& array) {
  constexpr auto unit = static_cast<std::int64_t>(sizeof(kernels::opaque16));
  return array.is_contiguous() && reinterpret_cast<std::uintptr_t>(array.data) % unit == 0 &&
         array.size() * static_cast<std::int64_t>(sizeof(T)) % unit == 0 && unit % sizeof(T) == 0;
}

/// Converts contiguous pieces of different element types in tiles where they are aligned; copies everything
/// else element by element.
template <class Exec, class To, class From>
void launch_copy(const Exec& exec, const std::string& label, To* to, const kernels::strided_places& places_to,
                 std::int64_t first_to, const From* from, const kernels::strided_places& places_from,
                 std::int64_t first_from, std::int64_t count) {
  using tile = std::conditional_t<is_host_exec<Exec>, kernels::host_tile, kernels::packed_tile>;
  if constexpr (!std::is_same_v<To, From>) {
    const auto starts_tile = [](const auto* data) {
      return !tile::packed || reinterpret_cast<std::uintptr_t>(data) % (tile::elements * sizeof(*data)) == 0;
    };
    if (is_dense(places_to) && is_dense(places_from) && starts_tile(to + first_to) &&
        starts_tile(from + first_from)) {
      using kernel = kernels::convert_elements<To, From, tile>;
      launch(exec, label, (count + kernel::each - 1) / kernel::each,
             kernel{to + first_to, from + first_from, count});
      return;
    }
  }
  launch(exec, label, count,
         kernels::copy_elements<To, From>{to, places_to, first_to, from, places_from, first_from});
}

/// Whether a kernel copies contiguous arrays of one type: DMA from mapped_space reaches a seventh of the rate
/// of the link.
template <class Exec, class FromSpace, class ToSpace>
inline constexpr bool copies_by_kernel =
    !is_host_exec<Exec> && (std::is_same_v<FromSpace, mapped_space> || std::is_same_v<ToSpace, mapped_space>);

/// Counts a copy. Only a kernel that moves strided or converted elements is reported as a transfer here.
template <class Path, class Exec, class From, class FromSpace, class To, class ToSpace>
[[nodiscard]] auto count_copy(launch_context<Exec>& of, const array_ref<From, FromSpace>& from,
                              const array_ref<To, ToSpace>& to) {
  const bool by_engine = std::is_same_v<std::remove_const_t<From>, To> && from.is_contiguous() &&
                         to.is_contiguous() && !copies_by_kernel<Exec, FromSpace, ToSpace>;
  return moves<Path>(of, from, to, from.size() * static_cast<std::int64_t>(sizeof(From)), !by_engine);
}

/// One kernel, or one transfer where both sides are contiguous and of one type.
template <class Exec, class From, class FromSpace, class To, class ToSpace>
void copy_direct(launch_context<Exec>& of, const array_ref<From, FromSpace>& from,
                 const array_ref<To, ToSpace>& to) {
  using plain = std::remove_const_t<From>;
  const auto label = label_of("copy", "direct");
  const std::int64_t all = from.size();
  if (std::is_same_v<plain, To> && from.is_contiguous() && to.is_contiguous()) {
    if constexpr (!copies_by_kernel<Exec, FromSpace, ToSpace>) {
      transfer(of.exec(), label.c_str(), to.data, ToSpace::name, from.data, FromSpace::name,
               all * static_cast<std::int64_t>(sizeof(plain)));
    } else {
      using wide = kernels::opaque16;
      const auto bytes = all * static_cast<std::int64_t>(sizeof(plain));
      const auto whole = static_cast<std::int64_t>(sizeof(wide));
      const bool fits = reinterpret_cast<std::uintptr_t>(from.data) % sizeof(wide) == 0 &&
                        reinterpret_cast<std::uintptr_t>(to.data) % sizeof(wide) == 0 && bytes % whole == 0;
      if (fits)
        launch(of.exec(), label, bytes / whole,
               kernels::copy_units<wide>{reinterpret_cast<wide*>(to.data),
                                         reinterpret_cast<const wide*>(from.data)});
      else
        launch(of.exec(), label, bytes / static_cast<std::int64_t>(sizeof(unit_of<plain>)),
               kernels::copy_units<unit_of<plain>>{reinterpret_cast<unit_of<plain>*>(to.data),
                                                   reinterpret_cast<const unit_of<plain>*>(from.data)});
    }
  } else {
    launch_copy(of.exec(), label, to.data, places_of(to), 0, from.data, places_of(from), 0, all);
  }
}

/// Copies through the staging ring, in the element type of the destination. Host threads pack or unpack on
/// one side, the kernel of the ring on the other.
template <class Exec, class From, class FromSpace, class To, class ToSpace>
void copy_staged(launch_context<Exec>& of, const array_ref<From, FromSpace>& from,
                 const array_ref<To, ToSpace>& to) {
  using plain = std::remove_const_t<From>;
  const auto label = label_of("copy", "staged");
  [[maybe_unused]] const int workers = execution_backend<Exec>::tuning().staging_workers;
  const std::int64_t all = from.size();
  const auto from_places = places_of(from);
  const auto to_places = places_of(to);
  constexpr auto element = static_cast<std::int64_t>(sizeof(To));
  constexpr bool same = std::is_same_v<plain, To>;
  using moved = std::conditional_t<same, kernels::whole_element<To>, To>;
  using there [[maybe_unused]] = std::conditional_t<same, moved, plain>;
  if constexpr (FromSpace::is_host_accessible && ToSpace::is_host_accessible) {
    const auto host = host_side(of.exec());
    launch_copy(host, label, to.data, to_places, 0, from.data, from_places, 0, all);
    host.fence(label);
  } else if constexpr (FromSpace::is_host_accessible) {
    const auto bring = [&]<class Unit>(Unit* data, const kernels::strided_places& places) {
      constexpr auto unit = static_cast<std::int64_t>(sizeof(Unit));
      ring<Exec> slots(of, of.exec(), label, all * element / unit, unit, workers);
      slots.to_device(kernels::elements_from_slot<Exec, Unit, kernels::strided_places>{data, places},
                      all_by_ring{},
                      [&](const auto& here, std::byte* slot, std::int64_t first, std::int64_t count) {
                        launch_copy(here, label, reinterpret_cast<To*>(slot), dense_places(), 0, from.data,
                                    from_places, first * unit / element, count * unit / element);
                        return false;
                      });
    };
    if (is_whole_units(to))
      bring(reinterpret_cast<kernels::opaque16*>(to.data), dense_places());
    else
      bring(reinterpret_cast<moved*>(to.data), to_places);
  } else {
    const auto bring = [&]<class Unit, class There>(std::type_identity<Unit>, const There* data,
                                                    const kernels::strided_places& places) {
      constexpr auto unit = static_cast<std::int64_t>(sizeof(Unit));
      ring<Exec> slots(of, of.exec(), label, all * element / unit, unit, workers);
      slots.from_device(
          kernels::elements_to_slot<Unit, There, kernels::strided_places>{data, places}, all_by_ring{},
          [&](const auto& here, const std::byte* slot, std::int64_t first, std::int64_t count) {
            launch_copy(here, label, to.data, to_places, first * unit / element,
                        reinterpret_cast<const To*>(slot), dense_places(), 0, count * unit / element);
          });
    };
    if (std::is_same_v<plain, To> && is_whole_units(from))
      bring(std::type_identity<kernels::opaque16>{}, reinterpret_cast<const kernels::opaque16*>(from.data),
            dense_places());
    else
      bring(std::type_identity<moved>{}, reinterpret_cast<const there*>(from.data), from_places);
  }
}

}  // namespace detail

/// to = from, element by element, with conversion where the element types differ.
///
///   exec      the execution space instance that the copy is enqueued on
///   from, to  arrays of equal extents in any memory spaces, with any strides; a std::span, vector or array
///             fits an array of any extents with as many elements
///   policies  path::direct, path::staged or path::automatic (default)
///
/// path::staged is the default between pageable memory and a device. It occupies the calling thread, and a
/// copy to the host has ended when it returns. The operands must not overlap. They must live until the work
/// has ended, see ferry::ticket. Throws invalid_argument for extents that differ, for contiguous operands
/// that overlap, and for memory that `exec` does not reach by the path.
template <class Exec, class From, class To, class... Policies>
  requires(detail::first_of(detail::flaw_of_execution_space<Exec>(), detail::flaw_of_array<From>(),
                            detail::flaw_of_array<To>()) == detail::flaw::none)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const From& from, To&& to, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_execution_space<Exec>();
  detail::require_policies<chosen, false, false>();
  detail::require_mutable<To>();
  detail::require_reach<Exec, From>();
  detail::require_reach<Exec, To>();
  using from_space = typename detail::traits_of<From>::memory_space;
  using to_space = typename detail::traits_of<To>::memory_space;
  using asked = typename chosen::template get<path_category, path::automatic>;
  using path_policy = std::conditional_t < !asked::chosen_at_run_time, asked,
        std::conditional_t < !detail::is_host_exec<Exec> &&
            (std::is_same_v<from_space, pageable_space> || std::is_same_v<to_space, pageable_space>),
        path::staged, path::direct >>
      ;
  static_assert(
      !path_policy::sorts,
      "ferry: copy moves whole arrays, so there are no rows to sort; path::ordered and path::cooperative are for verbs that take indices.");
  detail::require_path<path_policy, from_space, to_space>();
  const auto source = make_ref(from);
  const auto sink = make_ref(to);
  detail::require_convertible<typename decltype(sink)::value_type, typename decltype(source)::value_type>();

  constexpr bool loose = is_sequence_v<std::remove_cvref_t<From>> || is_sequence_v<std::remove_cvref_t<To>>;
  bool same = source.rank == sink.rank;
  for (std::size_t i = 0; same && i < source.rank; ++i) same = source.extents[i] == sink.extents[i];
  if (!same && !(loose && source.size() == sink.size()))
    throw invalid_argument("ferry::copy: the extents of " + source.describe() + " and " + sink.describe() +
                           " differ");

  if (source.is_contiguous() && sink.is_contiguous() && detail::overlap(source, sink))
    throw invalid_argument("ferry::copy: " + source.describe() + " and " + sink.describe() +
                           " overlap in memory");

  detail::launch_context<Exec> of(exec, "copy");
  if (source.size() != 0) {
    [[maybe_unused]] const auto moving = detail::count_copy<path_policy>(of, source, sink);
    if constexpr (detail::in_batch_order<path_policy>) {
      detail::require_direct_reach("copy", exec, source);
      detail::require_direct_reach("copy", exec, sink);
      of.reads_from(source);
      of.writes_to(sink);
      detail::copy_direct(of, source, sink);
    } else {
      detail::wait_for_host_access(of, "ferry::copy::staged", source, sink);
      detail::copy_staged(of, source, sink);
    }
  }
  return of.finish();
}

}  // namespace ferry
