// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/loader/batch_source.hpp>
#include <ferry/loader/detail/pipeline.hpp>
#include <ferry/loader/epoch_times.hpp>
#include <ferry/loader/prefetch_options.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/slice.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace ferry {

/// A batch of a prefetcher: arrays with one row per sample. A handle, valid until the next call of next(), as
/// its slices are. Work that was enqueued before that call on the prefetcher's instance, and verbs on any
/// instance, still find the batch unchanged.
template <class Space, class... T>
class prefetched_batch {
 public:
  using memory_space = Space;  ///< of the arrays: device_space, on a host backend pinned_space

  /// For prefetcher.
  prefetched_batch(const detail::slot& source, const detail::pipeline& ring)
      : slot_(&source),
        layout_(&ring.layout()),
        epoch_(ring.order().epoch_of(source.number)),
        number_(source.number % ring.order().batches()) {}

  /// Array Index of the batch, as an argument of verbs; view() for kernels. Verbs, and kernels on the
  /// prefetcher's instance, come after its transfer. It may be written to.
  template <std::size_t Index>
  [[nodiscard]] auto get() const {
    return slice<Index, Space>(slot_->device, slot_->device_accesses);
  }
  /// Array Index where the source has written it, in page-locked host memory: for host code. Written to, it
  /// is not sent again.
  template <std::size_t Index>
  [[nodiscard]] auto host() const {
    return slice<Index, pinned_space>(slot_->host, slot_->host_accesses);
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
  template <std::size_t Index, class In>
  [[nodiscard]] auto slice(std::byte* memory, const std::shared_ptr<detail::access_tracker>& accesses) const {
    using element = std::tuple_element_t<Index, std::tuple<T...>>;
    const detail::slot_field& field = layout_->fields[Index];
    return tensor_slice<element, In>(field.label, reinterpret_cast<element*>(memory + field.offset),
                                     field.extents.template with_rows<dynamic_rank>(rows()), accesses);
  }
  template <std::size_t... Index>
  [[nodiscard]] auto all(std::index_sequence<Index...>) const {
    return std::tuple(get<Index>()...);
  }

  const detail::slot* slot_;
  const detail::slot_layout* layout_;
  std::int64_t epoch_;
  std::int64_t number_;
};

namespace detail {

template <class Space, class Values>
struct batch_of_values;
template <class Space, class... T>
struct batch_of_values<Space, std::tuple<T...>> {
  using type = prefetched_batch<Space, T...>;
  static constexpr std::array<std::size_t, sizeof...(T)> element_bytes{sizeof(T)...};
};

/// The function that makes a source's batches.
template <class Source>
batch_maker maker_of(std::shared_ptr<const Source> source) {
  return [source = std::move(source)](const batch_request& request, std::byte* const* data) {
    source->fill(request, data);
  };
}

}  // namespace detail

/// Makes batches ahead of the training loop: worker threads call the source, the batches land in a ring of
/// page-locked slots, and travel to the device on a stream of their own while the step before computes.
///
///   ferry::prefetcher batches(exec, ferry::samples_of(features, labels),
///                             {.batch = 256, .workers = 4, .shuffle = 42, .epochs = 10});
///   for (int epoch = 0; epoch < 10; ++epoch)
///     while (auto batch = batches.next()) {
///       auto [x, label] = batch->arrays();       // in device_space
///       step(exec, ...);                         // enqueued on exec
///     }
///
/// Batches come in the order of the epoch, whatever worker makes them. A batch is valid until the next call
/// of next(). Its slot is used again once the work that `exec` was given up to that call has ended, and the
/// verbs on its arrays on all instances; kernels of other instances must come before that work, see
/// ferry::after. On a host backend batches are used where they were made, and nothing travels.
///
/// What the source throws is thrown by the next() that would have returned the batch, after all batches
/// before it, and by each later one. One thread at a time calls next(). The destructor stops at any point: it
/// waits for the calls of the source in progress, see batch_request::stopping, and for the work on `exec`.
/// Kokkos::finalize does the same with prefetchers that still live. After the end of an epoch both say on
/// stderr if epochs are left, because a single loop over next() takes one epoch. The threads are the
/// prefetcher's own; in a process that was forked next() throws.
template <class Exec, class Source>
class prefetcher {
  using batches = detail::batch_of_values<detail::batch_space_of<Exec>, typename Source::values>;

 public:
  using batch_type = typename batches::type;  ///< a prefetched_batch

  /// Starts to make batches.
  ///
  ///   exec     the execution space instance that uses the batches
  ///   source   samples_of, made_by or an object like them, see batch_source.hpp; copied or moved from
  ///   options  see prefetch_options
  ///
  /// Throws invalid_argument for options outside of their range, bad_alloc, budget_exceeded, and
  /// std::system_error if no thread can be started.
  prefetcher(const Exec& exec, Source source, const prefetch_options& options = {})
      : pipeline_(start(exec, std::move(source), options)) {
    detail::require_execution_space<Exec>();
  }
  /// Refuses options of other names. Does not compile.
  prefetcher(const Exec& exec, Source source, const detail::torch_options&)
      : prefetcher(exec, std::move(source)) {
    detail::refuse_torch_options<Source>();
  }

  /// The next batch of the epoch, an empty optional at its end and, after the last epoch, from then on. The
  /// call after the end of an epoch returns the first batch of the next one, which was prefetched meanwhile.
  /// Blocks until the batch is made; not for its transfer, which later work of the instance comes after.
  /// Gives the batch before it back. Throws what the source has thrown; invalid_argument in a forked process,
  /// if another thread is in next(), after Kokkos::finalize, and while the instance is being captured into
  /// a graph; error after the timeout, after which it may be called again.
  [[nodiscard]] std::optional<batch_type> next() {
    detail::slot* const got = pipeline_->next();
    if (got == nullptr) return std::nullopt;
    return batch_type(*got, *pipeline_);
  }

  /// The number of batches that next() has returned, over all epochs and from the begin of first_epoch on; of
  /// a prefetcher that was resumed, those before, too. Saved in a checkpoint and given back as first_batch,
  /// it lets a run go on with the batch that would have come next. Save it after the step of the batch. A run
  /// that was saved after the last batch of an epoch goes on with the first of the next one; next() does not
  /// report the end of the epoch again. For the thread that calls next().
  [[nodiscard]] std::int64_t position() const { return pipeline_->position(); }
  /// Batches of an epoch of this rank.
  [[nodiscard]] std::int64_t batches_per_epoch() const { return pipeline_->order().batches(); }
  /// Number of slots.
  [[nodiscard]] std::size_t depth() const { return pipeline_->depth(); }
  /// The times of the stages in each epoch begun, up to now.
  [[nodiscard]] std::vector<epoch_times> times() const { return pipeline_->times(); }
  /// times() as a table, a line for each epoch.
  [[nodiscard]] std::string report() const { return to_string(times()); }

 private:
  static std::shared_ptr<detail::pipeline> start(const Exec& exec, Source source,
                                                 const prefetch_options& options) {
    const auto shared_source = std::make_shared<const Source>(std::move(source));
    const auto& fields = shared_source->fields();
    return detail::make_pipeline(exec, {shared_source->samples(), fields, batches::element_bytes},
                                 detail::maker_of<Source>(shared_source), options);
  }

  detail::closing<detail::pipeline, Exec> pipeline_;
};

/// An object that is no source does not compile; a sentence says why.
template <class Exec, class Source>
  requires(!detail::is_batch_source<Source>)
class prefetcher<Exec, Source> {
 public:
  /// Refuses the arguments.
  prefetcher(const Exec&, const Source&, const prefetch_options& = {}) {
    detail::require_batch_source<Source>();
  }
};

}  // namespace ferry
