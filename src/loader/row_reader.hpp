// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/loader/detail/gather_listed.hpp>
#include <ferry/loader/detail/row_pipeline.hpp>
#include <ferry/loader/detail/slot.hpp>
#include <ferry/plan/row_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ferry::detail {

/// Plans batches and reads their rows, for a row_pipeline, which knows no types. The rows of a batch lie in a
/// room, one of a fixed number.
class row_reader {
 public:
  row_reader() = default;
  row_reader(const row_reader&) = delete;
  row_reader& operator=(const row_reader&) = delete;
  virtual ~row_reader() = default;

  /// True if the user's instance is being captured into a graph.
  [[nodiscard]] virtual bool capturing() const = 0;
  [[nodiscard]] virtual std::size_t rooms() const = 0;
  /// The plan of a slot's indices.
  [[nodiscard]] virtual row_plan plan(const slot& batch, const slot_field& indices) const = 0;
  /// Lets later early reads begin after the steps before this point and the writes of other instances.
  virtual void order_after_steps() = 0;
  /// Begins the early read of a batch whose use comes after the steps of `window`.
  virtual void begin(std::size_t room, const row_plan& plan, const std::vector<row_plan>& window) = 0;
  /// Enqueues the late read on the user's instance. It writes to the same array as the early one, so it comes
  /// after that.
  virtual void end(std::size_t room, std::int64_t positions) = 0;
  [[nodiscard]] virtual row_memory rows(std::size_t room, std::int64_t positions) = 0;
  /// Waits for the early reads.
  virtual void close() noexcept = 0;
};

/// `positions`: the most that a batch has.
template <ExecutionSpace Exec>
std::unique_ptr<row_reader> make_row_reader(const Exec& exec, const row_request<Exec>& request,
                                            std::size_t positions, std::size_t rooms);

}  // namespace ferry::detail
