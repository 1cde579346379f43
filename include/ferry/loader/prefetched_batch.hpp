// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/loader/detail/pipeline.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/slice.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>

namespace ferry {

/// A batch of a prefetcher: arrays with one row per sample. A handle, valid until the next call of next(), as
/// its slices are. Work that was enqueued before that call on the prefetcher's instance, and verbs on any
/// instance, still find the batch unchanged.
template <class Space, class... T>
class prefetched_batch {
 public:
  using memory_space = Space;  ///< of the arrays: device_space, on a host backend pinned_space

  /// For prefetcher.
  prefetched_batch(const detail::slot& source, const detail::slot_layout& layout, std::int64_t epoch,
                   std::int64_t number)
      : slot_(&source), layout_(&layout), epoch_(epoch), number_(number) {}

  /// Array Place of the batch, as an argument of verbs; view() for kernels. Verbs, and kernels on the
  /// prefetcher's instance, come after its transfer. It may be written to.
  template <std::size_t Place>
  [[nodiscard]] auto get() const {
    return slice<Place, Space>(slot_->device, slot_->device_accesses);
  }
  /// Array Place where the source has written it, in page-locked host memory: for host code. Written to, it
  /// is not sent again.
  template <std::size_t Place>
  [[nodiscard]] auto host() const {
    return slice<Place, pinned_space>(slot_->host, slot_->host_accesses);
  }
  /// All arrays: `auto [x, label] = batch->arrays();`
  [[nodiscard]] auto arrays() const { return all(std::index_sequence_for<T...>{}); }

  /// Number of samples, which is that of the rows of each array.
  [[nodiscard]] std::size_t rows() const { return slot_->samples.size(); }
  /// The numbers of the samples, in host memory.
  [[nodiscard]] std::span<const std::int64_t> samples() const {
    return {slot_->samples.data(), slot_->samples.size()};
  }
  /// Number of the epoch.
  [[nodiscard]] std::int64_t epoch() const { return epoch_; }
  /// Number of the batch in its epoch.
  [[nodiscard]] std::int64_t number() const { return number_; }

 private:
  template <std::size_t Place, class In>
  [[nodiscard]] auto slice(std::byte* memory, const std::shared_ptr<detail::access_tracker>& accesses) const {
    using element = std::tuple_element_t<Place, std::tuple<T...>>;
    const detail::slot_field& field = layout_->fields[Place];
    return tensor_slice<element, In>(field.label, reinterpret_cast<element*>(memory + field.offset),
                                     field.extents.template with_rows<dynamic_rank>(rows()), accesses);
  }
  template <std::size_t... Place>
  [[nodiscard]] auto all(std::index_sequence<Place...>) const {
    return std::tuple(get<Place>()...);
  }

  const detail::slot* slot_;
  const detail::slot_layout* layout_;
  std::int64_t epoch_;
  std::int64_t number_;
};

}  // namespace ferry
