// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace skipgram {

using execution = Kokkos::DefaultExecutionSpace;
/// The model computes in float on the device, whatever the tables hold and wherever they live: its kernels
/// are compiled once.
using batch_rows = ferry::tensor<float, ferry::device_space>;

/// A trainable table. Memory space, path, optimizer and element type are policies of the class behind this
/// interface; one virtual call for each verb and batch is all that the run-time choice costs.
class embedding {
 public:
  embedding() = default;
  embedding(const embedding&) = delete;
  embedding& operator=(const embedding&) = delete;
  virtual ~embedding() = default;

  [[nodiscard]] virtual ferry::ticket gather(const ferry::row_plan& plan, batch_rows& rows) const = 0;
  [[nodiscard]] virtual ferry::ticket step(const ferry::row_plan& plan, const batch_rows& gradients) = 0;
  [[nodiscard]] virtual ferry::ticket copy_to(std::span<float> numbers) const = 0;
  [[nodiscard]] virtual std::string describe() const = 0;
  /// Bytes of one row's weights, and of its optimizer state.
  [[nodiscard]] virtual std::int64_t weight_bytes() const = 0;
  [[nodiscard]] virtual std::int64_t state_bytes() const = 0;
};

struct embedding_spec {
  std::string label;
  std::string space, path, optimizer, dtype;
  std::size_t rows = 0, width = 0;
  double learning_rate = 0.0;
  /// Initial weights are uniform in [-spread, spread); zero where it is 0.
  double spread = 0.0;
  std::uint64_t seed = 0;
};

/// Throws std::invalid_argument for a combination that is not supported, ferry::error where there is not
/// enough memory.
std::unique_ptr<embedding> make_embedding(const execution& exec, const embedding_spec& spec);

}  // namespace skipgram
