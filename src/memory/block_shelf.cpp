// SPDX-License-Identifier: Apache-2.0
#include "block_shelf.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
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

block_shelf::block block_shelf::take(std::size_t least, std::size_t most, const instance_id* who,
                                     std::size_t limit) {
  return idle_.take([&](const std::vector<block>& idle) {
    const auto is_smaller = [](const block& each, std::size_t bytes) { return each->bytes < bytes; };
    const auto is_larger = [](std::size_t bytes, const block& each) { return bytes < each->bytes; };
    const auto first = std::lower_bound(idle.begin(), idle.end(), least, is_smaller);
    const auto last = std::upper_bound(first, idle.end(), most, is_larger);
    auto found = last;
    if (who != nullptr)
      found = std::find_if(first, last,
                           [&](const block& each) { return !each->uses.empty() && each->is_own_of(who); });
    if (found == last)
      found = std::find_if(first, last, [&](const block& each) { return each->is_free_for(who); });
    if (found == last) found = static_cast<std::size_t>(last - first) >= limit ? first : idle.end();
    return static_cast<std::size_t>(found - idle.begin());
  });
}

void block_shelf::put(block returned) noexcept {
  if (!idle_.put(std::move(returned))) returned->end();
}

void block_shelf::close() noexcept {
  for (const auto& last : idle_.close()) last->end();
}

std::size_t block_shelf::idle_bytes() const {
  return idle_.visit([](const std::vector<block>& idle) {
    std::size_t sum = 0;
    for (const auto& each : idle) sum += each->bytes;
    return sum;
  });
}

std::size_t block_shelf::trim(std::size_t enough, in_flight effort) {
  block dying;
  std::size_t freed = 0;
  idle_.remove_if(
      [&](const block& each) {
        return freed < enough && (effort == in_flight::wait || each->is_free_for(nullptr));
      },
      [&](block removed) {
        freed += removed->bytes;
        removed->next = std::move(dying);
        dying = std::move(removed);
      });
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

}  // namespace ferry::detail
