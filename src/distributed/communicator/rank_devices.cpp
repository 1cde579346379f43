// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/communicator/detail/rank_devices.hpp>

#include "../../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace ferry::detail {

namespace {

void require_rank_device(int id) {
  using backend = execution_backend<rank_devices::exec_space>;
  const int count = backend::device_count();
  if (id >= 0 && id < count) return;
  std::string known;
  for (int device = 0; device < count; ++device)
    known +=
        (device == 0 ? "" : ", ") + std::to_string(device) + " (" + backend::summary_of(device).name + ")";
  throw invalid_argument("ferry::communicator::devices: there is no device " + std::to_string(id) +
                         "; ferry::devices() lists " + (known.empty() ? "none" : known));
}

}  // namespace

rank_devices::rank_devices(const std::vector<int>& ids) : ids_(ids) {
  for (const int id : ids_) require_rank_device(id);
  for (const int id : ids_) instances_.push_back(device_instance<exec_space>::on(id));
}

rank_devices::~rank_devices() = default;

device rank_devices::of(int rank) const { return {ids_.at(static_cast<std::size_t>(rank))}; }

rank_devices::exec_space rank_devices::instance(int rank) const {
  return instances_.at(static_cast<std::size_t>(rank))->get();
}

}  // namespace ferry::detail
