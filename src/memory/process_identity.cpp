// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/process_identity.hpp>

#include <ferry/error.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/detail/require_kokkos.hpp>

#include <Kokkos_Core.hpp>

#include <pthread.h>

#include <new>
#include <string>

namespace ferry::detail {

namespace {

/// From the load of the program or library on: a fork before the first use of ferry counts, too.
[[maybe_unused]] const process_identity& identity_at_load = process_identity::get();

}  // namespace

process_identity& process_identity::get() {
  static process_identity& identity = process_wide<process_identity>();
  return identity;
}

process_identity::process_identity() { ::pthread_atfork(nullptr, nullptr, &process_identity::begin_child); }

void process_identity::abandon(const void* object) noexcept {
  auto* const entry = new (std::nothrow) abandoned{object, abandoned_.load(std::memory_order_relaxed)};
  if (entry == nullptr) return;
  while (!abandoned_.compare_exchange_weak(entry->next, entry)) {
  }
}

void process_identity::begin_child() noexcept {
  process_identity& identity = get();
  identity.generation_.fetch_add(1, std::memory_order_relaxed);
  if (Kokkos::is_initialized()) identity.lost_kokkos_.store(true, std::memory_order_relaxed);
}

process_mark::process_mark() noexcept : generation_(process_identity::get().generation()) {}

bool process_mark::is_here() const noexcept { return generation() == process_identity::get().generation(); }

void refuse_child(std::string_view call, std::string_view owner, std::string_view advice) {
  throw invalid_argument(joined("ferry::", call, ": this process was forked from the one that ", owner,
                                " and has none of its threads; ", advice));
}

std::unique_lock<std::mutex> lock_unless_lost(std::mutex& guard, process_mark& user, std::string_view call) {
  if (user.is_here()) return std::unique_lock(guard);
  std::unique_lock lock(guard, std::try_to_lock);
  if (!lock.owns_lock())
    refuse_child(call, "was in a call of this object", "make an object of the child's own");
  user = process_mark();
  return lock;
}

void refuse_without_kokkos(std::string_view subject) {
  throw invalid_argument(
      std::string(subject.starts_with("ferry") ? "" : "ferry::")
          .append(subject)
          .append(Kokkos::is_finalized() ? ": Kokkos has been finalized" : ": Kokkos is not initialized"));
}

void refuse_lost_kokkos(std::string_view call) {
  constexpr std::string_view prefix = "ferry::";
  if (call.substr(0, prefix.size()) == prefix) call.remove_prefix(prefix.size());
  throw invalid_argument(joined(
      prefix, call,
      ": this process was forked after Kokkos::initialize, so the threads and devices of Kokkos stay with the parent, and its kernels would wait for them for ever; fork before Kokkos::initialize, or start the process by exec (multiprocessing: 'spawn')"));
}

}  // namespace ferry::detail
