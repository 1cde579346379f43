// SPDX-License-Identifier: Apache-2.0
#include "support/tables.hpp"

#include <ferry/rows/init_scaled.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Initial values, results in new tensors, and indices of the host.
namespace ferry_bench {
namespace {

template <class Work>
timing wall_of(const Work& work, int times = 9) {
  timing durations;
  work();
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    durations.add(seconds_since(begin) * 1e3);
  }
  return durations;
}

void add(session& run, const std::string& name, const timing& times, double bytes, const char* counts,
         const std::string& ceiling = {}) {
  figure result;
  result.name = name;
  result.time.device = times;
  result.time.wall = times;
  result.bytes = bytes;
  result.counts = counts;
  if (!ceiling.empty()) result.ceiling = run.ceiling(ceiling);
  result.verified = true;
  run.results().add(result);
}

/// The share of the ceiling is the time of a copy of the tensor over that of its initialisation.
void fill_device(session& run) {
  const std::size_t bytes = std::min(run.device_table_bytes(), std::size_t{4} << 30);
  static_cast<void>(run.ceiling("ceiling.device_copy"));  // measured before the table takes memory
  ferry::tensor<float, ferry::device_space> table("table", bytes / 512, 128);
  const auto time = [&](const std::string& name, const auto& fill) {
    add(run, "init.device." + name, wall_of(fill), 2.0 * static_cast<double>(bytes), "as if copied",
        "ceiling.device_copy");
  };
  const auto& exec = run.exec();
  time("zeros", [&] { ferry::init::zeros(exec, table); });
  time("constant", [&] { ferry::init::constant(exec, table, 0.25f); });
  time("uniform", [&] { ferry::init::uniform(exec, table, -0.1, 0.1, run.fresh_seed()); });
  time("normal", [&] { ferry::init::normal(exec, table, 0.0, 0.02, run.fresh_seed()); });
  time("trunc_normal",
       [&] { ferry::init::trunc_normal(exec, table, 0.0, 0.02, -0.04, 0.04, run.fresh_seed()); });
}

void fill_host(session& run) {
  const std::size_t bytes = std::min(run.host_table_bytes(), std::size_t{1} << 30);
  ferry::tensor<float, ferry::pageable_space> table("table", bytes / 512, 128);
  const auto time = [&](const std::string& name, const auto& fill) {
    add(run, "init.pageable." + name, wall_of(fill, 3), static_cast<double>(bytes), "written");
  };
  const auto& exec = run.exec();
  time("zeros", [&] { ferry::init::zeros(exec, table); });
  time("uniform", [&] { ferry::init::uniform(exec, table, -0.1, 0.1, run.fresh_seed()); });
  time("normal", [&] { ferry::init::normal(exec, table, 0.0, 0.02, run.fresh_seed()); });
}

/// Rows of 512 bytes in a tensor that each call makes, next to one that is kept.
void gather_into_new(session& run) {
  const auto& exec = run.exec();
  ferry::tensor<float, ferry::device_space> table("table", 1 << 20, 128);
  ferry::init::uniform(exec, table, -1.0, 1.0, run.fresh_seed());
  for (const std::size_t n : {std::size_t{1024}, std::size_t{131072}}) {
    const std::string suffix = "." + std::to_string(n);
    const double bytes = static_cast<double>(n) * 512;
    row_indices indices("indices", n);
    batch_tensor batch("batch", n, 128);
    const auto draw = [&] { ferry::init::uniform(exec, indices, 0.0, 1 << 20, run.fresh_seed()); };
    draw();
    add(run, "results.kept" + suffix, wall_of([&] { ferry::gather(exec, table, indices, batch).wait(); }),
        bytes, "payload");
    add(run, "results.new_batch" + suffix, wall_of([&] {
          batch_tensor fresh("batch", n, 128);
          ferry::gather(exec, table, indices, fresh).wait();
        }),
        bytes, "payload");
    add(run, "results.gather.device" + suffix,
        wall_of([&] { static_cast<void>(ferry::gather<ferry::device_space>(exec, table, indices).get()); }),
        bytes, "payload");
    add(run, "results.gather.pinned" + suffix,
        wall_of([&] { static_cast<void>(ferry::gather<ferry::pinned_space>(exec, table, indices).get()); }),
        bytes, "payload");
    add(run, "results.clone" + suffix, wall_of([&] { static_cast<void>(batch.clone(exec).get()); }), bytes,
        "payload");
    add(run, "results.pinned_tensor" + suffix,
        wall_of([&] { const ferry::tensor<float, ferry::pinned_space> block("result", n, 128); }), bytes,
        "made");
  }
}

/// Indices in a vector of the host, next to those in device memory.
void gather_by_vector(session& run) {
  const auto& exec = run.exec();
  ferry::tensor<float, ferry::device_space> table("table", 1 << 20, 128);
  ferry::init::zeros(exec, table);
  for (const std::size_t n : {std::size_t{16384}, std::size_t{131072}}) {
    const std::string suffix = "." + std::to_string(n);
    row_indices indices("indices", n);
    batch_tensor batch("batch", n, 128);
    ferry::init::uniform(exec, indices, 0.0, 1 << 20, run.fresh_seed());
    ferry::tensor<std::int64_t, ferry::pageable_space> copied("copied", n);
    ferry::copy(exec, indices, copied).wait();
    const std::vector<std::int64_t> listed(copied.data(), copied.data() + n);
    const double bytes = static_cast<double>(n) * 512;
    const auto device = wall_of([&] { ferry::gather(exec, table, indices, batch).wait(); }, 31);
    const auto host = wall_of([&] { ferry::gather(exec, table, listed, batch).wait(); }, 31);
    add(run, "indices.device" + suffix, device, bytes, "payload");
    add(run, "indices.vector" + suffix, host, bytes, "payload");
    run.results().ratio("indices.vector" + suffix, "indices.device" + suffix,
                        host.median() / device.median());
  }
}

const registration device_cases{"init.device", fill_device};
const registration host_cases{"init.pageable", fill_host};
const registration result_cases{"init.results", gather_into_new};
const registration index_cases{"init.indices", gather_by_vector};

}  // namespace
}  // namespace ferry_bench
