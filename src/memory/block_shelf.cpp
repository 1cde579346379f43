// SPDX-License-Identifier: Apache-2.0
#include "block_shelf.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace ferry::detail {

namespace {

/// True if all work of other instances than `*who` has ended; null: all work. Drops the uses that have ended.
bool is_free_for(shelved_block& block, const instance_id* who) {
  block.uses.drop_ended(who);
  return block.uses.is_only_of(who);
}

}  // namespace

block_shelf::block block_shelf::take(std::size_t least, std::size_t most, const instance_id* who,
                                     std::size_t limit, int device) {
  return idle_.take([&](const std::vector<block>& idle) {
    const auto is_smaller = [](const block& candidate, std::size_t bytes) {
      return candidate->bytes < bytes;
    };
    const auto is_larger = [](std::size_t bytes, const block& candidate) { return bytes < candidate->bytes; };
    const auto first = std::lower_bound(idle.begin(), idle.end(), least, is_smaller);
    const auto last = std::upper_bound(first, idle.end(), most, is_larger);
    auto choice = last;
    if (who != nullptr)
      choice = std::find_if(first, last, [&](const block& candidate) {
        return !candidate->uses.is_empty() && candidate->uses.is_only_of(who);
      });
    if (choice == last)
      choice = std::find_if(first, last, [&](const block& candidate) {
        return candidate->device == device && is_free_for(*candidate, who);
      });
    if (choice == last) choice = static_cast<std::size_t>(last - first) >= limit ? first : idle.end();
    return static_cast<std::size_t>(choice - idle.begin());
  });
}

void block_shelf::put(block returned) noexcept {
  returned->turn = turn_.fetch_add(1, std::memory_order_relaxed);
  if (!idle_.put(std::move(returned)))
    returned->uses.wait_ignoring_errors();
  else if (most_bytes() != ~std::size_t{0})
    free_above_limit();
}

void block_shelf::free_above_limit() noexcept {
  const std::size_t count = most_blocks_.load(std::memory_order_relaxed), bytes = most_bytes();
  for (;;) {
    const block freed = idle_.take([&](const std::vector<block>& idle) {
      std::size_t bytes_idle = 0;
      for (const block& candidate : idle) bytes_idle += candidate->bytes;
      std::size_t oldest = idle.size();
      if (idle.size() <= count && bytes_idle <= bytes) return oldest;
      for (std::size_t i = 0; i < idle.size(); ++i)
        if ((oldest == idle.size() || idle[i]->turn < idle[oldest]->turn) && is_free_for(*idle[i], nullptr))
          oldest = i;
      return oldest;
    });
    if (freed == nullptr) return;
    idle_.forget(1);
  }
}

void block_shelf::close() noexcept {
  for (const auto& last : idle_.close()) last->uses.wait_ignoring_errors();
}

std::size_t block_shelf::idle_bytes() const {
  return idle_.visit([](const std::vector<block>& idle) {
    std::size_t sum = 0;
    for (const auto& candidate : idle) sum += candidate->bytes;
    return sum;
  });
}

std::size_t block_shelf::trim(std::size_t enough, in_flight effort) {
  block dying;
  std::size_t freed = 0;
  idle_.remove_if(
      [&](const block& candidate) {
        return freed < enough && (effort == in_flight::wait || is_free_for(*candidate, nullptr));
      },
      [&](block removed) {
        freed += removed->bytes;
        removed->next = std::move(dying);
        dying = std::move(removed);
      });
  while (dying != nullptr) {
    dying->uses.wait_ignoring_errors();
    dying = std::move(dying->next);
  }
  return freed;
}

std::shared_ptr<shelf_loan> block_shelf::lend(const std::shared_ptr<block_shelf>& shelf, block lent,
                                              const instance_id* who,
                                              const std::shared_ptr<node_pool>& nodes) {
  try {
    return std::allocate_shared<shelf_loan>(node_allocator<shelf_loan>(nodes), shelf, std::move(lent), who);
  } catch (...) {  // no memory for the loan: work in flight may still use the block
    shelf->put(std::move(lent));
    throw;
  }
}

shelf_loan::shelf_loan(std::shared_ptr<block_shelf> home, block_shelf::block lent, const instance_id* who)
    : home_(std::move(home)), block_(std::move(lent)) {
  who != nullptr ? block_->uses.lend_to(*who) : block_->uses.lend();
}

shelf_loan::~shelf_loan() { home_->put(std::move(block_)); }

void shelf_loan::promise(bool) {
  const std::lock_guard lock(guard_);
  block_->uses.promise();
}

void shelf_loan::note(bool, event_handle end, instance_id who) noexcept {
  const std::lock_guard lock(guard_);
  block_->uses.note(std::move(end), who);
}

void shelf_loan::withdraw(bool) noexcept {
  const std::lock_guard lock(guard_);
  block_->uses.withdraw();
}

node_pool::~node_pool() {
  for (free_node* first : free_)
    while (first != nullptr) ::operator delete(std::exchange(first, first->next));
}

void* node_pool::take(std::size_t bytes) {
  if (bytes > largest) return ::operator new(bytes);
  {
    const std::lock_guard lock(guard_);
    free_node*& first = free_[size_class(bytes)];
    if (first != nullptr) return std::exchange(first, first->next);
  }
  return ::operator new((size_class(bytes) + 1) * granule);
}

void node_pool::give_back(void* node, std::size_t bytes) noexcept {
  if (bytes > largest) return ::operator delete(node);
  const std::lock_guard lock(guard_);
  free_node*& first = free_[size_class(bytes)];
  first = ::new (node) free_node{first};
}

}  // namespace ferry::detail
