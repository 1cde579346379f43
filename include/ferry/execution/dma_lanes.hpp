#pragma once

#include <ferry/execution/backend.hpp>
#include <ferry/execution/call.hpp>

#include <array>
#include <cstddef>

namespace ferry::detail {

/// The instances that a ring's transfers go to. One instance leaves a gap of some microseconds between two
/// transfers, since the second begins when the first has ended and said so; two instances fill each other's gaps.
template <class Exec>
class dma_lanes {
 public:
  static constexpr int most = 4;

  /// The verb's own instance: in order with its kernels.
  static dma_lanes own(const call<Exec>& of) { return dma_lanes(of.exec()); }
  /// Beside the verb's own instance, as many as the backend's tuning says; see after() and behind(). A host backend
  /// has only the instance itself.
  static dma_lanes beside(call<Exec>& of) {
    if constexpr (is_host_exec<Exec>) {
      return own(of);
    } else {
      dma_lanes made;
      for (; made.count_ < execution_backend<Exec>::tuning().dma_lanes && made.count_ < most; ++made.count_)
        made.at_[static_cast<std::size_t>(made.count_)] = &of.lane(made.count_);
      return made;
    }
  }

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] const Exec& operator[](int i) const { return *at_[static_cast<std::size_t>(i)]; }

  /// Orders the lanes behind what the verb's own instance has enqueued so far: from then on the buffers that they
  /// write to are the verb's, and those that they read hold what its kernels wrote.
  void after(call<Exec>& of) const {
    if (is_own(of)) return;
    if (const auto now = of.mark(); now != nullptr)
      for (int i = 0; i < count_; ++i) execution_backend<Exec>::wait_for((*this)[i], *now);
  }
  /// Orders the verb's own instance behind the lanes.
  void behind(call<Exec>& of) const {
    if (is_own(of)) return;
    for (int i = 0; i < count_; ++i)
      if (const auto all = of.mark((*this)[i]); all != nullptr)
        execution_backend<Exec>::wait_for(of.exec(), *all);
  }

 private:
  dma_lanes() = default;
  explicit dma_lanes(const Exec& only) : at_{&only}, count_(1) {}
  [[nodiscard]] bool is_own(const call<Exec>& of) const { return at_[0] == &of.exec(); }

  std::array<const Exec*, most> at_{};
  int count_ = 0;
};

}  // namespace ferry::detail
