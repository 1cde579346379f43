// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>

namespace ferry::detail {

/// Memory of one process that ranks share.
struct shared_bytes {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
};

/// Memory that all ranks of the call share, in the accounts of pinned_space or pageable_space.
shared_bytes share_memory(collective& call, const communicator& comm, const std::string& label,
                          std::size_t bytes, bool pinned);

}  // namespace ferry::detail

namespace ferry {

namespace detail {
/// The tensor that a shared tensor is.
template <class T, class Space>
using shared_tensor_base = tensor<T, Space>;
}  // namespace detail

/// A tensor in host memory that the ranks of one machine share: each rank has all of it at an address of its
/// own, and reads what the others wrote. Verbs take it where they take a tensor in pageable_space.
///
///   ferry::shared_tensor<float> features("features", comm, rows, 128);
///   if (comm.rank() == 0) load(features);
///   comm.barrier();                               // the others see it from here on
///
/// Ranks that are threads of one process share one allocation. Processes share pages that the system backs by
/// memory alone; rank 0 reserves all of them first, so a shortage is bad_alloc on rank 0 and peer_error on
/// the others, and no access fails later. The memory is freed with the last rank's tensor.
///
/// Nothing orders the accesses of different ranks: use comm.barrier(), or any collective verb. Elements are
/// zero at first if T is a number. Move-only; a slice of it is a slice of a tensor.
template <Element T, MemorySpace Space = pageable_space>
class shared_tensor : public detail::shared_tensor_base<T, Space> {
  static_assert(
      std::same_as<Space, pageable_space> || std::same_as<Space, pinned_space>,
      "ferry: processes share host memory, so a shared_tensor is in pageable_space, or in pinned_space.");

 public:
  /// Allocates. Collective; label and extents must be the same on all ranks, and all of them must be on one
  /// machine. In pinned_space each process locks the pages. Throws bad_alloc, budget_exceeded (on rank 0,
  /// whose memory_statistics count the bytes), invalid_argument for extents as tensor does, and for ranks of
  /// several machines; peer_error if that happened to another rank; protocol_error if the ranks'
  /// arguments differ.
  template <std::integral... Sizes>
    requires(sizeof...(Sizes) >= 1)
  shared_tensor(std::string label, const communicator& comm, Sizes... sizes)
      : detail::shared_tensor_base<T, Space>(make(label, comm, sizes...)) {}

  /// Label, extents and how the memory was obtained, as text.
  [[nodiscard]] std::string describe() const {
    const std::string text = tensor<T, Space>::describe();
    return detail::joined(text.substr(0, text.rfind(": ")), ": memory that ranks share");
  }

 private:
  template <std::integral... Sizes>
  static tensor<T, Space> make(const std::string& label, const communicator& comm, Sizes... sizes) {
    detail::call_note note("shared_tensor '");
    note.add(label).add("'");
    (note.add_number(sizes), ...);
    note.add_hidden(detail::note_part::types, typeid(shared_tensor).hash_code());
    detail::collective call(comm, note);
    return call.guarded([&] {
      const auto extents =
          shape<dynamic_rank>::make(detail::checked_extents(label, sizes...), label, sizeof(T));
      auto memory = detail::share_memory(call, comm, label, extents.size() * sizeof(T),
                                         std::same_as<Space, pinned_space>);
      auto* const data = reinterpret_cast<T*>(memory.data);
      call.close();
      return tensor<T, Space>(label, extents, data, std::move(memory.owner));
    });
  }
};

template <class T, class Space>
inline constexpr bool detail::owns_elements<shared_tensor<T, Space>> = true;

/// A shared tensor is an array as a tensor is.
template <class T, class Space>
struct array_traits<shared_tensor<T, Space>> : array_traits<tensor<T, Space>> {};

}  // namespace ferry
