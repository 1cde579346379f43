// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace ferry::detail {

/// A kernel with its policy, as the policy passes it to Kokkos.
template <class Exec, class Policy, class Functor>
struct ready_kernel {
  static_assert(
      execution_backend<Exec>::template launches_by_argument<Functor, Policy>(),
      "ferry: a kernel with its options must stay below 4 KB, or each launch would wait for the device; this rule, or one of these transforms, has too many.");
  Policy policy;
  Functor functor;
};

/// Blocks of such a functor that a multiprocessor's registers must allow: Functor::blocks_at_once, or one.
template <class Functor>
consteval unsigned int blocks_at_once() {
  if constexpr (requires { Functor::blocks_at_once; })
    return Functor::blocks_at_once;
  else
    return 1;
}

/// A device's range whose blocks have at most Functor::most_threads threads, if the functor declares that.
template <class Exec, class Functor>
consteval auto range_for() {
  using index = Kokkos::IndexType<std::int64_t>;
  using backend = execution_backend<Exec>;
  if constexpr (requires { Functor::most_threads; })
    return std::type_identity<typename backend::template by_argument<Kokkos::RangePolicy<
        Exec, index, Kokkos::LaunchBounds<Functor::most_threads, blocks_at_once<Functor>()>>>>{};
  else
    return std::type_identity<typename backend::template by_argument<Kokkos::RangePolicy<Exec, index>>>{};
}

/// The iterations of a kernel that one host thread runs: a run of neighbours.
struct host_run {
  std::int64_t number;
  std::int64_t runs;

  [[nodiscard]] std::int64_t begin(std::int64_t count) const {
    return count / runs * number + remainder(count, number);
  }
  [[nodiscard]] std::int64_t end(std::int64_t count) const {
    return count / runs * (number + 1) + remainder(count, number + 1);
  }

 private:
  [[nodiscard]] std::int64_t remainder(std::int64_t count, std::int64_t before) const {
    return before < count % runs ? before : count % runs;
  }
};

/// True if each host thread calls the functor once with its whole run, so that the functor computes shared
/// values once. Functors declare this by `takes_runs`.
template <class Functor>
consteval bool by_runs() {
  if constexpr (requires { Functor::takes_runs; })
    return Functor::takes_runs;
  else
    return false;
}

/// The iterations of a host's kernel without the kernel's type: Kokkos's templates are then compiled for each
/// execution space and not for each kernel.
struct host_loop {
  void (*run)(const void* functor, std::int64_t count, const host_run&);
  const void* functor;
  std::int64_t count;
  std::int64_t bytes;        ///< that all iterations read and write
  std::int64_t thread_runs;  ///< for each thread
  std::int64_t runs = 1;

  void operator()(std::int64_t number) const { run(functor, count, host_run{number, runs}); }
};

template <class Functor>
void run_part(const void* argument, [[maybe_unused]] std::int64_t count, const host_run& run) {
  const auto& functor = *static_cast<const Functor*>(argument);
  if constexpr (by_runs<Functor>()) {
    functor(run);
  } else {
    const std::int64_t end = run.end(count);
    for (std::int64_t i = run.begin(count); i < end; ++i) functor(i);
  }
}

/// functor(i) for each i in [0, count). The functor must outlive the loop. It states by bytes_each() how
/// many bytes an iteration reads and writes; one that does not is never small. Kokkos may use more or fewer
/// threads than concurrency(), as within another parallel region: iterations come in several runs for each
/// thread.
template <class Functor>
host_loop loop_over(std::int64_t count, const Functor& functor) {
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
  if constexpr (requires { functor.bytes_each(); }) bytes = count * functor.bytes_each();
  return {&run_part<Functor>, &functor, count, bytes, by_runs<Functor>() ? 1 : 4};
}

/// Runs the iterations by the threads of a host instance, a small kernel in the calling thread. They have
/// ended on return. Compiled for the execution spaces that Kokkos has.
template <HostExecutionSpace Exec>
void launch(const Exec& exec, const std::string& label, host_loop loop);

/// A device's kernel of one iteration for each i in [0, count), count > 0. `functor(i)` takes 64 bits: tables
/// and batches may have more than 2^31 elements.
template <class Exec, class Functor>
auto iterations(const Exec& exec, std::int64_t count, const Functor& functor) {
  static_assert(!is_host_exec<Exec>, "ferry: kernels of a host are launched as a host_loop");
  using range = typename decltype(range_for<Exec, Functor>())::type;
  return ready_kernel<Exec, range, Functor>{range(exec, 0, count), functor};
}

/// functor(team) for each of `teams` teams, of Threads / lanes threads with `lanes` vector lanes each. A
/// device's compiler knows Threads, so the kernel's registers allow `AtOnce` teams of that size per
/// multiprocessor.
template <int Threads, int AtOnce = 1, class Exec, class Functor>
auto teams_of(const Exec& exec, std::int64_t teams, int lanes, const Functor& functor) {
  using policy = typename execution_backend<Exec>::template by_argument<Kokkos::TeamPolicy<
      Exec, Kokkos::LaunchBounds<static_cast<unsigned>(Threads), static_cast<unsigned>(AtOnce)>>>;
  return ready_kernel<Exec, policy, Functor>{policy(exec, static_cast<int>(teams), Threads / lanes, lanes),
                                             functor};
}

/// Runs functor(i) for each i in [0, count) in the calling thread.
template <class Functor>
void launch(const caller_thread&, const std::string&, std::int64_t count, const Functor& functor) {
  run_part<Functor>(&functor, count, host_run{0, 1});
}

/// Enqueues functor(i) for each i in [0, count) on `exec`. Always inlined: on a host it only forwards.
template <class Exec, class Functor>
[[gnu::always_inline]] inline void launch(const Exec& exec, const std::string& label, std::int64_t count,
                                          const Functor& functor) {
  if constexpr (is_host_exec<Exec>) {
    launch(exec, label, loop_over(count, functor));
  } else {
    if (count <= 0) return;
    const auto kernel = iterations(exec, count, functor);
    [[maybe_unused]] const auto launching = execution_backend<Exec>::template lock_launch<decltype(kernel)>();
    Kokkos::parallel_for(label, kernel.policy, kernel.functor);
  }
}

/// i -> i / divisor: by a shift for a power of two, else by a product for i < 2^31 (Granlund and Montgomery,
/// "Division by invariant integers using multiplication", 1994). A division costs more than the load that it
/// addresses.
class fast_divisor {
 public:
  fast_divisor() = default;
  explicit fast_divisor(std::int64_t divisor) : divisor_(divisor) {
    if (divisor <= 0) return;
    int bits = 0;  // 2^bits is at least the divisor
    while (bits < 62 && (std::int64_t{1} << bits) < divisor) ++bits;
    if (std::int64_t{1} << bits == divisor) {
      shift_ = bits;
    } else {
      const auto plain = static_cast<std::uint64_t>(divisor);
      if (bits < 32)
        multiplier_ = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + bits)) + plain - 1) / plain);
      shift_ = -bits;
    }
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t quotient(std::int64_t i) const {
    if (shift_ >= 0) return i >> shift_;
    const auto plain = static_cast<std::uint64_t>(i);
    if ((plain >> 31) == 0) return static_cast<std::int64_t>((plain * multiplier_ >> 31) >> -shift_);
    if ((static_cast<std::uint64_t>(i | divisor_) >> 32) == 0)
      return static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(divisor_);
    return i / divisor_;
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t divisor() const { return divisor_; }

 private:
  std::int64_t divisor_ = 1;
  std::uint32_t multiplier_ = 0;  ///< 0 for a divisor of 2^31 and more, which exceeds each smaller i
  int shift_ = 0;                 ///< of a power of two; else minus the bits of the divisor
};

/// The blocks that kernels may have. A multiprocessor holds 2048 threads.
template <class Occupancy, class Exec>
std::int64_t most_blocks(const Exec& exec) {
  if constexpr (is_host_exec<Exec>)
    return 1;
  else
    return Occupancy::most_blocks(std::max<std::int64_t>(1, exec.concurrency() / 2048));
}

/// "ferry::<verb>::<path>"
inline std::string label_of(const char* verb, std::string_view path) {
  return std::string("ferry::").append(verb).append("::").append(path);
}

}  // namespace ferry::detail
