#pragma once

#include <ferry/memory/event.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ferry {

/// Which execution space instance work belongs to. A value must not stand for two instances while work of the
/// first is in flight: a stream's number will do, its address may come back too early.
using instance_id = std::uint64_t;

namespace detail {

/// Work that uses a block until `done`.
struct block_use {
  event_handle done;
  instance_id who = 0;
};

/// A block on loan. It goes back to its pool when it is destroyed, together with the uses that may not have
/// ended.
class block_loan {
 public:
  block_loan() = default;
  block_loan(const block_loan&) = delete;
  block_loan& operator=(const block_loan&) = delete;
  virtual ~block_loan() = default;

  /// An event of this instance that is behind all of its uses so far. The taker's is behind the inherited uses
  /// as well, because the taker was put behind them.
  void used_until(event_handle done, instance_id who) {
    if (ordered && taker == who) inherited.clear();
    std::erase_if(uses, [who](const block_use& use) { return use.who == who; });
    if (done != nullptr) uses.push_back({std::move(done), who});
  }

  std::vector<block_use> inherited;  ///< from before this loan
  std::vector<block_use> uses;       ///< of this loan
  instance_id taker = 0;
  bool ordered = false;  ///< whether `taker` is known
};

/// The deleter of a lease, by which a lease is told from other resources.
struct block_return {
  block_loan* loan;
  void operator()(void*) const noexcept { delete loan; }
};

}  // namespace detail

/// Lets go of a lease of a block_cache while work of instance `who` still uses the block: it goes back to its
/// cache at once, and from there to others as block_cache::take says. `done` is an event behind that work;
/// null where it has ended. Copies of the lease keep the block until the last of them is gone.
/// False, and nothing is done, where `resource` is no such lease. Not for several threads on one lease.
inline bool release_behind(std::shared_ptr<void>& resource, event_handle done, instance_id who) {
  const auto* lease = std::get_deleter<detail::block_return>(resource);
  if (lease == nullptr) return false;
  lease->loan->used_until(std::move(done), who);
  resource.reset();
  return true;
}

}  // namespace ferry
