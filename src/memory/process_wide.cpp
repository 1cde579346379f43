// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/process_wide.hpp>

#include <ferry/error.hpp>
#include <ferry/version.hpp>

#include <Kokkos_Core.hpp>

#include <pthread.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The objects of a process by version and type. Libraries with different versions of ferry share it, so it
/// may not change.
struct process_objects {
  std::recursive_mutex guard;  ///< making one object may ask for another
  std::map<std::string, void*> by_name;
};

}  // namespace ferry::detail

// Its symbol is unique in a process (STB_GNU_UNIQUE): the dynamic linker gives all libraries the first one,
// also those that were opened with RTLD_LOCAL. GCC marks variables of inline functions so, Clang none; hence
// the assembler. A program must export it, which the link options of ferry's target see to.
extern "C" FERRY_SHARED std::atomic<ferry::detail::process_objects*> ferry_objects_of_process;
static_assert(sizeof(ferry_objects_of_process) == sizeof(void*));
#if !defined(__CUDA_ARCH__)
asm(".pushsection .bss.ferry_objects_of_process,\"awG\",%nobits,ferry_objects_of_process,comdat\n"
    ".globl ferry_objects_of_process\n"
    ".type ferry_objects_of_process, %gnu_unique_object\n"
    ".size ferry_objects_of_process, 8\n"
    ".balign 8\n"
    "ferry_objects_of_process:\n"
    ".zero 8\n"
    ".popsection\n");
#endif

namespace ferry::detail {

void* object_of_process(const char* type, void* (*make)()) {
  const std::string name =
      joined("ferry.", FERRY_VERSION_MAJOR, ".", FERRY_VERSION_MINOR, ".", FERRY_VERSION_PATCH, " ", type);
  process_objects* objects = ferry_objects_of_process.load();
  if (objects == nullptr) {
    // Never destroyed: objects with static storage may allocate after the destruction of any other.
    auto fresh = std::make_unique<process_objects>();
    if (ferry_objects_of_process.compare_exchange_strong(objects, fresh.get())) objects = fresh.release();
  }
  const std::lock_guard lock(objects->guard);
  void*& object = objects->by_name[name];
  if (object == nullptr) object = make();
  return object;
}

/// The calls at the next Kokkos::finalize.
struct finalize_calls {
  std::mutex guard;
  std::vector<std::pair<void (*)(void*), void*>> calls;
  bool is_hooked = false;
  bool is_finalized = false;

  static finalize_calls& get() {
    static finalize_calls& list = process_wide<finalize_calls>();
    return list;
  }
  void run() {
    for (;;) {
      std::unique_lock lock(guard);
      is_finalized = calls.empty();
      if (is_finalized) return;
      const auto [release, context] = calls.back();
      calls.pop_back();
      lock.unlock();
      release(context);
    }
  }
};

// Kokkos does not lock its list of hooks, so ferry pushes no other hook than this one.
void call_at_finalize(void (*release)(void* context), void* context) {
  finalize_calls& list = finalize_calls::get();
  const std::lock_guard lock(list.guard);
  // Another hook uses ferry after this one has run. Kokkos takes no more hooks then, so new objects stay.
  if (list.is_finalized) return;
  if (!list.is_hooked) {
    Kokkos::push_finalize_hook([] { finalize_calls::get().run(); });
    list.is_hooked = true;
  }
  list.calls.emplace_back(release, context);
}

std::shared_ptr<void> finalized_object::get(std::shared_ptr<void> (*make)()) {
  const std::lock_guard lock(guard_);
  if (object_ == nullptr) object_ = make();
  if (!registered_ && Kokkos::is_initialized()) {
    call_at_finalize([](void* object) { static_cast<finalized_object*>(object)->release(); }, this);
    registered_ = true;
  }
  return object_;
}

void finalized_object::release() noexcept {
  std::shared_ptr<void> last;  // destroyed after the lock is released
  const std::lock_guard lock(guard_);
  last.swap(object_);
  registered_ = false;
}

namespace {

/// From the load of the program or library on: a fork before the first use of ferry counts, too.
[[maybe_unused]] const process_identity& identity_at_load = process_identity::get();

}  // namespace

process_identity& process_identity::get() {
  static process_identity& identity = process_wide<process_identity>();
  return identity;
}

process_identity::process_identity() {
  ::pthread_atfork(nullptr, nullptr, [] {
    process_identity& identity = get();
    identity.generation_.fetch_add(1, std::memory_order_relaxed);
    if (Kokkos::is_initialized()) identity.lost_kokkos_.store(true, std::memory_order_relaxed);
  });
}

void process_identity::abandon(const void* object) noexcept {
  auto* const entry = new (std::nothrow) abandoned{object, abandoned_.load(std::memory_order_relaxed)};
  if (entry == nullptr) return;
  while (!abandoned_.compare_exchange_weak(entry->next, entry)) {
  }
}

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

void require_kokkos(std::string_view subject) {
  if (Kokkos::is_initialized()) return;
  throw invalid_argument(joined(subject.starts_with("ferry") ? "" : "ferry::", subject, ": Kokkos ",
                                Kokkos::is_finalized() ? "has been finalized" : "is not initialized"));
}

void refuse_lost_kokkos(std::string_view call) {
  throw invalid_argument(joined(
      call.starts_with("ferry::") ? "" : "ferry::", call,
      ": this process was forked after Kokkos::initialize, so the threads and devices of Kokkos stay with the parent, and its kernels would wait for them for ever; fork before Kokkos::initialize, or start the process by exec (multiprocessing: 'spawn')"));
}

}  // namespace ferry::detail
