// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/loader/detail/closable.hpp>
#include <ferry/loader/detail/pipeline.hpp>
#include <ferry/loader/detail/slot.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/tensor/extents.hpp>

#include <cstddef>
#include <memory>

namespace ferry::detail {

class row_reader;

/// A batch whose rows are read ahead.
struct row_entry {
  slot* batch = nullptr;  ///< null: the end of an epoch
  row_plan plan;
  std::size_t room = 0;
};

/// The rows of a batch, positions x width.
struct row_memory {
  array_label label;
  shape<dynamic_rank> extents;
  void* data;
  std::shared_ptr<access_tracker> accesses;
};

/// The inside of a row_prefetcher. The rows of batch j are read in two parts. The early part begins while the
/// steps of batches i to j - 1 have yet to come or run: it comes after all steps before i, and leaves out the
/// rows that one of those steps will update, which their plans tell. The late part reads these rows on the
/// user's instance, after step j - 1. So every row is read after its last update and before its next one.
class row_pipeline final : public closable {
 public:
  /// `ahead`: how many batches have their rows read ahead.
  row_pipeline(std::unique_ptr<pipeline> ring, std::unique_ptr<row_reader> reader, std::size_t ahead);
  ~row_pipeline() override;

  /// The next batch, with its rows; null at the end of an epoch, and after the last one.
  const row_entry* next();
  /// Batches that next() has returned, and those before the first one.
  [[nodiscard]] std::int64_t position() const;
  void close() noexcept override;

  [[nodiscard]] pipeline& ring() const;
  [[nodiscard]] row_memory rows_of(const row_entry& batch) const;

 private:
  class inside;

  std::unique_ptr<inside> inside_;
};

}  // namespace ferry::detail
