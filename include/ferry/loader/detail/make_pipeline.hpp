// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/loader/batch_source.hpp>
#include <ferry/loader/detail/pipeline.hpp>
#include <ferry/loader/detail/row_pipeline.hpp>
#include <ferry/loader/prefetch_options.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace ferry::detail {

template <class Exec>
struct row_request;

/// A source's samples and the arrays of its batches.
struct source_facts {
  std::int64_t samples;
  std::span<const batch_shape> fields;
  std::span<const std::size_t> element_bytes;
};

/// The inside of a prefetcher.
template <ExecutionSpace Exec>
std::shared_ptr<pipeline> make_pipeline(const Exec& exec, const source_facts& source,
                                        std::unique_ptr<batch_maker> maker, const prefetch_options& options);

/// The inside of a row_prefetcher. Checks its table.
template <ExecutionSpace Exec>
std::shared_ptr<row_pipeline> make_row_pipeline(const Exec& exec, const row_request<Exec>& request,
                                                const source_facts& source,
                                                std::unique_ptr<batch_maker> maker,
                                                const prefetch_options& options);

}  // namespace ferry::detail
