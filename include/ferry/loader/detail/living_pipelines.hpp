#pragma once

#include <ferry/loader/detail/pipeline.hpp>
#include <ferry/memory/detail/until_finalize.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The prefetchers of the process. Kokkos::finalize stops those that still live: neither their instances nor
/// their memory may outlive Kokkos. Thread-safe.
class living_pipelines {
 public:
  living_pipelines() = default;
  living_pipelines(const living_pipelines&) = delete;
  living_pipelines& operator=(const living_pipelines&) = delete;
  ~living_pipelines() {
    for (const auto& each : list_)
      if (const auto alive = each.lock()) alive->close();
  }
  void add(const std::shared_ptr<pipeline>& made) {
    const std::lock_guard lock(guard_);
    std::erase_if(list_, [](const auto& each) { return each.expired(); });
    list_.push_back(made);
  }

 private:
  std::mutex guard_;
  std::vector<std::weak_ptr<pipeline>> list_;
};

/// The owner of a pipeline. In a child process it leaks the pipeline: its threads are not there to be joined,
/// and its locks may be held by them.
class pipeline_owner {
 public:
  explicit pipeline_owner(std::shared_ptr<pipeline> owned) : owned_(std::move(owned)) {
    until_finalize<living_pipelines>()->add(owned_);
  }
  pipeline_owner(pipeline_owner&&) noexcept = default;
  pipeline_owner& operator=(pipeline_owner&& other) noexcept {
    std::swap(owned_, other.owned_);
    return *this;
  }
  pipeline_owner(const pipeline_owner&) = delete;
  pipeline_owner& operator=(const pipeline_owner&) = delete;
  ~pipeline_owner() {
    if (owned_ == nullptr) return;
    if (owned_->in_own_process())
      owned_->close();
    else
      static_cast<void>(new std::shared_ptr<pipeline>(std::move(owned_)));
  }
  [[nodiscard]] pipeline& operator*() const { return *owned_; }
  [[nodiscard]] pipeline* operator->() const { return owned_.get(); }

 private:
  std::shared_ptr<pipeline> owned_;
};

}  // namespace ferry::detail
