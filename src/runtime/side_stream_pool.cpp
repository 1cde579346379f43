// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/side_stream_pool.hpp>

#include <memory>
#include <vector>

namespace ferry::detail {

side_stream_pool::side_stream_pool(std::shared_ptr<detail::node_pool> nodes)
    : nodes_(std::move(nodes)), shelf_(std::make_shared<shelf>()) {}

side_stream_pool::~side_stream_pool() {
  std::vector<std::shared_ptr<void>> dying;
  const std::lock_guard lock(shelf_->guard);
  shelf_->closed = true;
  shelf_->idle.clear();
  dying.swap(shelf_->all);
}

}  // namespace ferry::detail
