// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/memory/device.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

template <class Exec>
class device_instance;

/// The devices of the ranks of a group, with an instance for each rank. Kokkos::finalize ends the instances.
class rank_devices {
 public:
  using exec_space = Kokkos::DefaultExecutionSpace;

  /// Makes the instances. Throws invalid_argument for a device that there is none of.
  explicit rank_devices(const std::vector<int>& ids);
  rank_devices(const rank_devices&) = delete;
  rank_devices& operator=(const rank_devices&) = delete;
  ~rank_devices();

  [[nodiscard]] device of(int rank) const;
  [[nodiscard]] exec_space instance(int rank) const;

 private:
  std::vector<int> ids_;
  std::vector<std::shared_ptr<device_instance<exec_space>>> instances_;
};

/// Threads of this process, one for each rank; `devices` is null if they have none.
[[nodiscard]] std::shared_ptr<transport> make_thread_transport(int ranks, std::chrono::nanoseconds deadline,
                                                               std::unique_ptr<const rank_devices> devices);

/// Refuses a child process, whose ranks would speak in the place of its parent's.
void require_own_ranks(const transport& group);

/// See communicator::rank.
[[nodiscard]] int acting_rank(const transport& group);

/// Calls function(rank) on one thread for each rank of this process; see communicator::run.
void run_ranks(transport& group, function_ref<void(int)> function);

}  // namespace ferry::detail

namespace ferry {

namespace detail {

/// A deadline that the clock bears: one longer than a year would overflow it. Throws invalid_argument unless
/// it is positive.
std::chrono::nanoseconds checked_deadline(const char* function, std::chrono::nanoseconds deadline);

}  // namespace detail

/// Options of a communicator.
struct communicator_options {
  /// How long a rank waits in one collective call for the others. Work of the others counts, so it must be
  /// longer than the longest time between two calls of a rank.
  std::chrono::nanoseconds deadline = std::chrono::seconds(60);
};

/// An ordered group of ranks, which share the rows of sharded tables: threads of one process, or processes,
/// see ferry::mpi::communicator. A cheap handle: copies are the same group, and tables keep it alive.
///
///   auto comm = ferry::communicator::threads(4);
///   ferry::sharded_table<float, ferry::mapped_space> big("w", comm, rows, 128);
///   comm.run([&](int rank) { ferry::gather(exec, big, indices[rank], batches[rank]).wait(); });
///
/// A thread that acts for a rank makes *collective* calls: all ranks make the same calls in the same order.
/// If they do not, all of them get protocol_error. A rank that does not come within the deadline, or that
/// has left, gives the others communication_error. Both break the group: every later call on it throws. A
/// rank that fails in a call gives the others peer_error, and all leave that call.
class communicator {
 public:
  /// A group of `ranks` threads of this process. Throws invalid_argument unless ranks >= 1 and the deadline
  /// is positive.
  [[nodiscard]] static communicator threads(int ranks, const communicator_options& options = {});

  /// A group of as many threads of this process as there are ids, each with a device: rank r works on device
  /// ids[r] of ferry::devices(), by an execution space instance of its own, see exec(). The shards of tables
  /// lie on the devices of their ranks, or in host memory near them. Ids may repeat.
  ///
  ///   auto comm = ferry::communicator::devices({0, 1});
  ///   comm.run([&](int rank, const auto& exec) { ferry::gather(exec, big, which[rank], x[rank]).wait(); });
  ///
  /// The instances end with the group, or with Kokkos::finalize. Threads that use several devices must not
  /// make instances of devices themselves at the same time, because Kokkos does not lock its lists of
  /// devices. Throws invalid_argument, naming the devices, for an id without a device, and for an empty list;
  /// device_error if a device can't be used.
  template <class Exec = Kokkos::DefaultExecutionSpace>
  [[nodiscard]] static communicator devices(const std::vector<int>& ids,
                                            const communicator_options& options = {}) {
    static_assert(
        std::is_same_v<Exec, Kokkos::DefaultExecutionSpace>,
        "ferry: communicator::devices makes instances of Kokkos::DefaultExecutionSpace; it takes no other type.");
    return on_devices(ids, options);
  }
  /// Refuses a number of devices. Does not compile.
  template <std::integral Count>
  [[nodiscard]] static communicator devices(Count, const communicator_options& = {}) {
    static_assert(
        sizeof(Count) == 0,
        "ferry: communicator::devices takes the ids of devices, one for each rank: communicator::devices({0, 1}) is a group of two.");
    return communicator(nullptr);
  }

  /// For functions that make communicators of other kinds.
  explicit communicator(std::shared_ptr<detail::transport> group) : group_(std::move(group)) {}

  /// Number of ranks.
  [[nodiscard]] int size() const { return group_->size(); }
  /// The rank that the calling thread acts for. Outside of run() and bind() a process that holds one rank
  /// acts for that rank; if it holds all of several ranks this is -1: a call acts for the group as a
  /// whole, see sharded_table. Throws invalid_argument if it holds some of the ranks.
  [[nodiscard]] int rank() const;
  /// As rank(), for the verbs, which treat the rank of a group of one as the group as a whole: -1.
  [[nodiscard]] int acting_rank() const { return detail::acting_rank(*group_); }

  /// The device of a rank; device{-1} unless the group was made by devices(). Throws out_of_range for a
  /// number outside of [0, size()).
  [[nodiscard]] ferry::device device(int rank) const;
  /// The execution space instance of a rank: in a group of devices one that no other rank has, else Kokkos'
  /// default instance. Copies must not outlive Kokkos. Throws out_of_range for a number outside of
  /// [0, size()); invalid_argument after Kokkos::finalize.
  template <class Exec = Kokkos::DefaultExecutionSpace>
  [[nodiscard]] Exec exec(int rank) const {
    static_assert(
        std::is_same_v<Exec, Kokkos::DefaultExecutionSpace>,
        "ferry: communicator::exec gives instances of Kokkos::DefaultExecutionSpace; it takes no other type.");
    require_rank(rank);
    if constexpr (std::is_same_v<Exec, Kokkos::DefaultExecutionSpace>)
      if (group_->devices() != nullptr) return group_->devices()->instance(rank);
    return Exec{};
  }

  /// Runs f(rank, exec(rank)), f(rank), or f(), on one thread for each rank of this process, and returns when
  /// all have ended. In a group of devices the device of the rank is current in its thread. The calling
  /// thread is the first of them. An exception that leaves f ends the collective calls of the other ranks
  /// with peer_error. run() then throws one of the exceptions: a cause before a consequence (peer_error,
  /// communication_error), of the lowest rank that has one. After that a group of threads can be used again,
  /// unless a protocol_error or communication_error broke it.
  template <class F, class Exec = Kokkos::DefaultExecutionSpace>
  void run(F&& f) const {
    static_assert(
        std::invocable<F&, int, const Exec&> || std::invocable<F&, int> || std::invocable<F&>,
        "ferry: communicator::run needs a function of the rank and its execution space instance, of the rank, or of no argument.");
    const auto call = [&](int rank) {
      if constexpr (std::invocable<F&, int, const Exec&>)
        f(rank, exec<Exec>(rank));
      else if constexpr (std::invocable<F&, int>)
        f(rank);
      else
        f();
    };
    const auto act = [&](int rank) {
      if (group_->devices() == nullptr) return call(rank);
      const typename execution_backend<Exec>::device_guard guard(exec<Exec>(rank));
      call(rank);
    };
    detail::run_ranks(*group_, act);
  }

  /// Makes the calling thread act for a rank during the object's lifetime. End it on the same thread. If an
  /// exception ends it, the other ranks get peer_error.
  class binding {
   public:
    /// For communicator::bind.
    binding(std::shared_ptr<detail::transport> group, int rank);
    binding(const binding&) = delete;
    binding& operator=(const binding&) = delete;
    ~binding();

   private:
    std::shared_ptr<detail::transport> group_;
    int rank_;
    int exceptions_;
    detail::rank_binding binding_;
  };
  /// For threads of your own: this thread acts for `rank` while the object lives. Throws invalid_argument if
  /// another thread acts for it, and out_of_range if there is no such rank in this process.
  [[nodiscard]] binding bind(int rank) const { return {group_, rank}; }

  /// Waits until all ranks have called it. Collective; see the class for errors. Does nothing for a thread
  /// that acts for the group as a whole.
  void barrier() const;

  /// The values that the ranks pass, by rank; of a small trivially copyable type. Collective; see the class
  /// for errors. A thread that acts for the group as a whole gets its value once.
  template <class T>
  [[nodiscard]] std::vector<T> all_gather(const T& part) const {
    static_assert(
        std::is_trivially_copyable_v<T>,
        "ferry: communicator::all_gather sends the bytes of a value, so it must be trivially copyable.");
    const int rank = acting_rank();
    if (rank < 0) return {part};
    std::vector<T> values(static_cast<std::size_t>(size()), part);
    const std::vector<std::byte> bytes = gather_bytes(rank, std::as_bytes(std::span<const T>(&part, 1)));
    T value = part;
    for (std::size_t r = 0; r < values.size(); ++r) {  // vector<bool> has no elements to copy into
      std::memcpy(static_cast<void*>(&value), bytes.data() + r * sizeof(T), sizeof(T));
      values[r] = value;
    }
    return values;
  }

  /// True if both are handles of the same group.
  friend bool operator==(const communicator& a, const communicator& b) { return a.group_ == b.group_; }

  /// The group; for the verbs.
  [[nodiscard]] const std::shared_ptr<detail::transport>& group() const { return group_; }

 private:
  [[nodiscard]] static communicator on_devices(const std::vector<int>& ids,
                                               const communicator_options& options);
  /// The bytes of all ranks, one after the other.
  [[nodiscard]] std::vector<std::byte> gather_bytes(int rank, std::span<const std::byte> part) const;
  void require_rank(int rank) const;

  std::shared_ptr<detail::transport> group_;
};

}  // namespace ferry
