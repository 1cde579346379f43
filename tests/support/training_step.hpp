// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/arrays.hpp"
#include "support/random.hpp"

#include <cstddef>
#include <cstdint>

/// One step of a training loop that runs on the device alone: every verb on fresh indices, nothing waited for.
namespace ferry_test {

template <class Space>
struct training_step {
  static constexpr std::size_t rows = 5000, width = 16, n = 3000;

  explicit training_step(const exec_space& instance) : exec(instance) {
    auto random = generator(91);
    put(table, values<float>(random, rows * width));
    put(grads, values<float>(random, n * width));
    put(ids, indices<std::int64_t>(random, n, rows));
    put(distinct, unique_indices<std::int64_t>(random, n, rows));
  }

  /// `finish` gets every ticket.
  template <class Finish>
  void run(const Finish& finish) {
    const ferry::path::direct direct;
    const auto plan = ferry::make_plan(exec, ids, rows);
    finish(ferry::gather(exec, table, plan, batch, direct));
    finish(ferry::step(exec, adam, table, state, plan, grads, direct));
    finish(ferry::gather(exec, table, ids, batch, direct));
    finish(ferry::scatter(exec, table, ids, batch, direct));
    finish(ferry::scatter_add(exec, table, ids, grads, direct));
    finish(ferry::scatter(exec, table, distinct, batch, direct, ferry::duplicates::assume_unique{}));
    finish(ferry::copy(exec, batch, second, direct));
  }

  exec_space exec;
  ferry::optim::adam adam{};
  ferry::tensor<float, Space> table{"table", rows, width};
  ferry::tensor<float, ferry::device_space> batch{"batch", n, width};
  ferry::tensor<float, ferry::device_space> second{"other", n, width};
  ferry::tensor<float, ferry::device_space> grads{"grads", n, width};
  ferry::tensor<std::int64_t, ferry::device_space> ids{"which", n};
  ferry::tensor<std::int64_t, ferry::device_space> distinct{"distinct", n};
  ferry::optim::state<ferry::optim::adam, float, Space> state = ferry::optim::make_state(adam, table);
};

}  // namespace ferry_test
