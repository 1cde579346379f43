// SPDX-License-Identifier: Apache-2.0
#include <ferry/plan/row_plan.hpp>

#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/spaces.hpp>

namespace ferry {

namespace {

/// Keeps the arrays of a plan, and records the making of the plan for their readers.
struct plan_reads {
  detail::access_tracker accesses;
  std::shared_ptr<detail::plan_storage> plan;
};

}  // namespace

void row_plan::require_space(const char* name, std::string_view space, bool reached_by_host) const {
  const bool fits = storage_->on_host ? reached_by_host
                                      : space == storage_->space || (space == device_space::name &&
                                                                     storage_->space != pageable_space::name);
  if (!fits)
    throw invalid_argument("ferry::row_plan::" + std::string(name) + ": the arrays of a plan by the " +
                           std::string(storage_->backend) + " backend lie in " +
                           std::string(storage_->space) + ", not in " + std::string(space) +
                           "; name the space: plan." + name + "<ferry::" + std::string(storage_->space) +
                           ">()");
}

std::shared_ptr<detail::access_tracker> row_plan::accesses() const {
  if (storage_->accesses != nullptr) return storage_->accesses;
  const auto reads = std::make_shared<plan_reads>();
  reads->plan = storage_;
  reads->accesses.add_write(storage_->completion, storage_->made_by);
  return {reads, &reads->accesses};
}

}  // namespace ferry
