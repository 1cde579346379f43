// SPDX-License-Identifier: Apache-2.0
#include "block_shelf.hpp"

#include <memory>
#include <vector>

namespace ferry::detail {

bool shelved_block::is_free_for(const instance_id* who) {
  std::erase_if(uses, [who](const block_use& use) {
    return (who == nullptr || use.who != *who) && has_ended(*use.done);
  });
  return is_own_of(who);
}

bool shelved_block::is_own_of(const instance_id* who) const {
  bool own = true;
  for (const block_use& use : uses) own = own && who != nullptr && use.who == *who;
  return own;
}

void shelved_block::end() noexcept {
  for (const auto& use : uses) try {
      use.done->wait();
    } catch (...) {
    }
  uses.clear();
}

block_shelf::block block_shelf::add(block made) {
  const std::lock_guard lock(guard_);
  blocks_.reserve(made_ + 1);
  ++made_;
  return made;
}

block_shelf::block block_shelf::take(std::size_t least, std::size_t most, const instance_id* who,
                                     std::size_t limit) {
  const std::lock_guard lock(guard_);
  const std::size_t first = least == 0 ? 0 : after(least - 1);
  const std::size_t last = after(most);
  if (who != nullptr)
    for (std::size_t at = first; at < last; ++at)
      if (!blocks_[at]->uses.empty() && blocks_[at]->is_own_of(who)) return remove(at);
  for (std::size_t at = first; at < last; ++at)
    if (blocks_[at]->is_free_for(who)) return remove(at);
  if (last > first && last - first >= limit) return remove(first);
  return {};
}

void block_shelf::put(block back) noexcept {
  {
    const std::lock_guard lock(guard_);
    if (!closed_) {
      const std::size_t place = after(back->bytes);
      idle_bytes_ += back->bytes;
      blocks_.push_back(nullptr);
      for (std::size_t at = blocks_.size() - 1; at > place; --at) blocks_[at] = std::move(blocks_[at - 1]);
      blocks_[place] = std::move(back);
      return;
    }
  }
  back->end();
}

void block_shelf::close() noexcept {
  std::vector<block> dying;
  {
    const std::lock_guard lock(guard_);
    closed_ = true;
    dying.swap(blocks_);
    idle_bytes_ = 0;
  }
  for (const auto& each : dying) each->end();
}

std::size_t block_shelf::idle_bytes() const {
  const std::lock_guard lock(guard_);
  return idle_bytes_;
}

std::size_t block_shelf::trim(std::size_t enough, in_flight effort) {
  block dying;
  std::size_t freed = 0;
  {
    const std::lock_guard lock(guard_);
    for (std::size_t at = blocks_.size(); at != 0 && freed < enough;) {
      --at;
      if (effort == in_flight::skip && !blocks_[at]->is_free_for(nullptr)) continue;
      freed += blocks_[at]->bytes;
      block one = remove(at);
      one->next = std::move(dying);
      dying = std::move(one);
      --made_;
    }
  }
  while (dying != nullptr) {
    dying->end();
    dying = std::move(dying->next);
  }
  return freed;
}

std::shared_ptr<shelf_loan> block_shelf::lend(const std::shared_ptr<block_shelf>& from, block lent,
                                              const instance_id* who,
                                              const std::shared_ptr<node_pool>& nodes) {
  try {
    return std::allocate_shared<shelf_loan>(node_allocator<shelf_loan>(nodes), from, std::move(lent), who);
  } catch (...) {  // no memory for the loan: work in flight may still use the block
    from->put(std::move(lent));
    throw;
  }
}

shelf_loan::shelf_loan(std::shared_ptr<block_shelf> home, block_shelf::block lent, const instance_id* who)
    : home_(std::move(home)), block_(std::move(lent)) {
  inherited.swap(block_->uses);
  uses.swap(block_->spare);
  ordered = who != nullptr;
  if (ordered) taker = *who;
}

shelf_loan::~shelf_loan() {
  for (block_use& use : uses) inherited.push_back(std::move(use));
  uses.clear();
  inherited.swap(block_->uses);
  uses.swap(block_->spare);
  home_->put(std::move(block_));
}

std::size_t block_shelf::after(std::size_t bytes) const {
  std::size_t first = 0;
  for (std::size_t last = blocks_.size(); first < last;) {
    const std::size_t middle = first + (last - first) / 2;
    if (blocks_[middle]->bytes <= bytes)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

block_shelf::block block_shelf::remove(std::size_t at) noexcept {
  idle_bytes_ -= blocks_[at]->bytes;
  block taken = std::move(blocks_[at]);
  blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at));
  return taken;
}

}  // namespace ferry::detail
