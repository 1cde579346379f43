// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/extend.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// The origin of a prefetcher's batches. A source has
///
///   values                 std::tuple of the element types of the batch's arrays
///   samples()              number of samples of an epoch
///   fields()               std::array of a batch_shape for each array
///   fill(request, data)    makes a batch: `data` is the address of each array's first row, room for
///                          request.samples.size() rows. Called by several threads at once
///
/// samples_of makes one from tables, made_by one from a function.
namespace ferry {

/// The request of a prefetcher to a source: one batch.
struct batch_request {
  std::int64_t epoch = 0;                   ///< number of the epoch
  std::int64_t number = 0;                  ///< number of the batch in its epoch
  std::span<const std::int64_t> samples;    ///< the samples of the batch, in order
  int worker = 0;                           ///< number of the thread that makes it, in [0, workers)
  const std::atomic<bool>* stop = nullptr;  ///< for stopping()

  /// True if the prefetcher is being destroyed. A source that takes long or blocks should look now and then,
  /// and return or throw: the destructor waits for it.
  [[nodiscard]] bool stopping() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
};

/// Name and extents of one array of a batch.
struct batch_shape {
  std::string label;                 ///< for messages
  std::vector<std::size_t> extents;  ///< of a sample: those after the first of the array; none for rank 1
};

/// One array of the batches of made_by.
template <Element T>
struct batch_field : batch_shape {
  using value_type = T;  ///< elements

  /// An array [rows x extents...]; of rank 1 without extents.
  template <std::integral... Sizes>
  explicit batch_field(std::string name, Sizes... sizes)
      : batch_shape{std::move(name), {static_cast<std::size_t>(sizes)...}} {}
};

/// Batches made by a function, see made_by.
template <class Function, Element... T>
class function_source {
 public:
  using values = std::tuple<T...>;  ///< element types of the arrays

  /// See made_by.
  function_source(std::int64_t samples, Function function, batch_field<T>... fields)
      : samples_(samples), function_(std::move(function)), fields_{std::move(fields)...} {
    std::size_t index = 0;
    for (const batch_shape& field : fields_) {
      widths_[index] = 1;
      for (const std::size_t extent : field.extents) widths_[index] *= extent;
      ++index;
    }
  }

  /// See the top of this header.
  /// @{
  [[nodiscard]] std::int64_t samples() const { return samples_; }
  [[nodiscard]] const std::array<batch_shape, sizeof...(T)>& fields() const { return fields_; }
  void fill(const batch_request& request, std::byte* const* data) const {
    call(request, data, std::index_sequence_for<T...>{});
  }
  /// @}

 private:
  template <std::size_t... Index>
  void call(const batch_request& request, std::byte* const* data, std::index_sequence<Index...>) const {
    const std::size_t rows = request.samples.size();
    function_(request, std::span<T>(reinterpret_cast<T*>(data[Index]), rows * widths_[Index])...);
  }

  std::int64_t samples_;
  Function function_;
  std::array<batch_shape, sizeof...(T)> fields_;
  std::array<std::size_t, sizeof...(T)> widths_{};
};

/// A source whose batches a function makes.
///
///   auto source = ferry::made_by(samples, [&](const ferry::batch_request& batch, std::span<float> x,
///                                             std::span<std::int32_t> label) { ... },
///                                ferry::batch_field<float>("x", 64),
///                                ferry::batch_field<std::int32_t>("label"));
///
///   samples   number of samples of an epoch
///   function  called as function(request, span...) with a span for each array: request.samples.size() rows,
///             row-major, not initialised. Several threads call the same object at once, so its call operator
///             is const. What it throws is thrown by next()
///   fields    the arrays of a batch
template <class Function, Element... T>
[[nodiscard]] function_source<Function, T...> made_by(std::int64_t samples, Function function,
                                                      batch_field<T>... fields) {
  static_assert(sizeof...(T) >= 1, "ferry: made_by needs a batch_field for each array of a batch.");
  static_assert(
      std::is_invocable_v<const Function&, const batch_request&, std::span<T>...>,
      "ferry: the function of made_by must be callable, as const, with a batch_request and a span for each field.");
  return {samples, std::move(function), std::move(fields)...};
}

namespace detail {

template <class T>
inline constexpr bool is_batch_source = requires {
  typename T::values;
};

/// Stands for a source that is missing.
struct no_source {};

template <class T>
consteval void require_batch_source() {
  static_assert(
      is_batch_source<T>,
      "ferry: a prefetcher gets its batches from a source: ferry::samples_of(arrays...), ferry::made_by(...), or an object like them, see ferry/loader/batch_source.hpp.");
}

/// The array of a batch of rows of `table`. Throws invalid_argument for strided rows, and unless the table
/// has as many rows as the first one.
batch_shape batch_shape_of(const untyped_array& table, const untyped_array& first);
/// Copies the rows of the samples.
void take_rows(const batch_request& request, const untyped_array& table, std::byte* data);

}  // namespace detail

/// Samples that are rows of tables, see samples_of.
template <class... Refs>
class table_source {
 public:
  /// Element types of the arrays.
  using values = std::tuple<std::remove_const_t<typename Refs::value_type>...>;

  /// See samples_of.
  explicit table_source(const Refs&... tables) : tables_(tables...) {
    const auto& first = std::get<0>(tables_);
    std::apply(
        [&](const auto&... table) {
          std::size_t index = 0;
          ((fields_[index++] = detail::batch_shape_of(table, first)), ...);
        },
        tables_);
  }

  /// See the top of this header.
  /// @{
  [[nodiscard]] std::int64_t samples() const { return std::get<0>(tables_).rows(); }
  [[nodiscard]] const std::array<batch_shape, sizeof...(Refs)>& fields() const { return fields_; }
  void fill(const batch_request& request, std::byte* const* data) const {
    std::size_t index = 0;
    std::apply([&](const auto&... table) { (detail::take_rows(request, table, data[index++]), ...); },
               tables_);
  }
  /// @}

 private:
  std::tuple<Refs...> tables_;
  std::array<batch_shape, sizeof...(Refs)> fields_;
};

/// A source whose samples are the rows of tables: sample i of a batch's first array is row i of the first
/// table, and so on.
///
///   ferry::prefetcher batches(exec, ferry::samples_of(features, labels), {.batch = 256, .shuffle = 42});
///
///   tables  arrays of equally many dense rows in memory that the host reads: tensors in pinned_space,
///           mapped_space or pageable_space, Kokkos Views, vectors, tables over files. They must outlive the
///           prefetcher, and must not change while it lives; for rows that are being trained see
///           row_prefetcher
///
/// Throws invalid_argument for strided rows and for tables with different numbers of rows. Does not compile
/// for a temporary tensor, vector or array.
template <class... Tables>
[[nodiscard]] auto samples_of(Tables&&... tables) {
  static_assert(sizeof...(Tables) >= 1, "ferry: samples_of needs a table.");
  static_assert((ArrayLike<std::remove_reference_t<Tables>> && ...),
                "ferry: samples_of takes arrays of rows: tensors, slices, Kokkos Views, spans or vectors.");
  (detail::require_lasting<Tables>(), ...);
  static_assert(
      (array_traits<std::remove_cvref_t<Tables>>::memory_space::is_host_accessible && ...),
      "ferry: the threads of a prefetcher read the samples, so their tables can't be in device_space; gather from such a table by its indices.");
  return table_source(detail::read_only(make_ref(tables))...);
}

}  // namespace ferry
