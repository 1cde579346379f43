// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::optim::detail {

/// A table's entries in a device's memory. A sender holds the guard until the memory's accesses include the
/// end of its copy, so that readers in other threads are ordered after the copy.
struct device_copy {
  std::mutex guard;
  std::shared_ptr<tensor<std::byte, device_space>> memory;
  std::size_t sent = 0;  ///< bytes
};

/// The first entries of a table. They do not change while a view exists.
struct table_view {
  std::shared_ptr<const std::byte[]> entries;
  std::shared_ptr<device_copy> on_device;
  std::size_t bytes = 0;
  std::int64_t first = 1;  ///< step of the first entry
  std::int64_t count = 0;
};

/// A growing array of trivially copyable entries of one type. The host makes and keeps the entries, and
/// uploads those that a device needs. The owner locks. Entries are added at the end, beyond all views. A
/// longer array replaces a full one and one whose last entries went, which existing views keep.
class coefficient_table {
 public:
  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Bytes of host memory.
  [[nodiscard]] std::size_t bytes() const { return capacity_; }

  template <class Entry>
  void push(const Entry& next) {
    static_assert(
        std::is_trivially_copyable_v<Entry> && alignof(Entry) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__,
        "ferry: what a rule gives for a step is copied byte by byte, so it must be trivially copyable and not aligned to more than operator new is.");
    std::memcpy(add(sizeof next), &next, sizeof next);
  }

  /// Keeps the first `count` entries.
  void truncate(std::int64_t count);

  [[nodiscard]] table_view view(std::int64_t first, std::int64_t count);

 private:
  /// The memory of one more entry.
  std::byte* add(std::size_t entry_bytes);

  std::shared_ptr<std::byte[]> entries_;
  std::size_t capacity_ = 0;
  std::size_t entry_bytes_ = 0;
  std::int64_t size_ = 0;
  std::shared_ptr<device_copy> on_device_;
};

}  // namespace ferry::optim::detail

namespace ferry::optim {

/// The updates of many steps, for rows that are at different steps. Thread-safe: a verb that only reads adds
/// missing entries under a lock, then uses a view that later calls do not change. Steps computed in float and
/// in double have separate tables.
template <class Rule>
class coefficient_history {
 public:
  /// True if the rule has an lr that a schedule may change.
  static constexpr bool has_rate = requires(Rule & rule) {
    rule.lr = rule.lr;
    requires std::is_arithmetic_v<std::remove_reference_t<decltype((rule.lr))>>;
  };

  /// Steps from `first` on have these options except lr.
  struct span_of_steps {
    std::int64_t first;
    Rule rule;
  };
  /// The lr of steps from `first` on, and the largest lr since the span began. A learning-rate schedule adds
  /// one entry per step.
  struct rated {
    std::int64_t first;
    double lr;
    double most;
  };
  /// The last steps, since which at most lr has changed. The rule has the largest lr since then: an element
  /// that it leaves at rest stays at rest.
  struct last_span {
    std::int64_t first;
    std::int64_t same_lr;  ///< since when lr has not changed, either
    Rule rule;
  };
  /// The source of the updates of missed steps; all that a file needs to keep.
  struct recording {
    std::int64_t first = 1;  ///< earlier steps have been applied to all rows
    bool in_double = false;  ///< true if the last step was computed in double
    std::vector<span_of_steps> spans;
    std::vector<rated> rates;
  };

  /// For step_count::per_row: the step-dependent terms of the updates of steps 1, 2, ..., up to `steps` or to
  /// the step after which they no longer change. For a rule without by_step() the entries are whole updates
  /// with the present options.
  template <class Compute>
  [[nodiscard]] detail::table_view by_count(const Rule& rule, std::int64_t steps) {
    const std::lock_guard lock(guard_);
    counted& counts = counted_[slot<Compute>];
    const auto source = step_source(rule);
    if (!counts.source || !same(*counts.source, source)) {
      counts.table.truncate(0);
      counts.source.emplace(source);
      counts.converged = false;
    }
    if (!counts.converged && counts.table.size() < steps) {
      const auto entry = [&source](std::int64_t step) {
        if constexpr (ScheduledOptimizer<Rule>)
          return source.template at<Compute>(step);
        else
          return source.template coefficients<Compute>(step);
      };
      const auto last = entry(std::int64_t{1} << 40);
      while (!counts.converged && counts.table.size() < steps) {
        const auto next = entry(counts.table.size() + 1);
        counts.table.push(next);
        counts.converged = same(next, last);
      }
    }
    return counts.table.view(1, counts.table.size());
  }

  /// Call before record(): takes the memory that record() needs.
  void make_room() {
    const std::lock_guard lock(guard_);
    one_more(log_.spans);
    one_more(log_.rates);
  }
  /// For step_count::catch_up: records the options of step `step`, and whether it was computed in double. A
  /// step that was taken back and repeated replaces its entry. Allocates nothing after make_room().
  void record(const Rule& rule, std::int64_t step, bool in_double) {
    const std::lock_guard lock(guard_);
    auto& [first, last_in_double, spans, rates] = log_;
    while (!rates.empty() && rates.back().first >= step) rates.pop_back();
    while (!spans.empty() && spans.back().first >= step) spans.pop_back();
    for (auto& table : history_) table.truncate(step - first);
    last_in_double = in_double;
    bool goes_on = !spans.empty();
    if (goes_on) {
      Rule last = spans.back().rule;
      if constexpr (has_rate) last.lr = rule.lr;
      goes_on = same(rule, last);
    }
    if (!goes_on) spans.push_back({step, rule});
    if constexpr (has_rate) {
      const auto lr = static_cast<double>(rule.lr);
      if (goes_on && lr == rates.back().lr) return;
      rates.push_back({step, lr, goes_on && !(rates.back().most < lr) ? rates.back().most : lr});
    }
  }

  /// The updates of all recorded steps up to `step`, computed in Compute.
  template <class Compute>
  [[nodiscard]] detail::table_view history(std::int64_t step) {
    const std::lock_guard lock(guard_);
    auto& table = history_[slot<Compute>];
    const std::int64_t length = log_.spans.empty() ? 0 : std::max<std::int64_t>(0, step + 1 - log_.first);
    while (table.size() < length) {
      const std::int64_t next = log_.first + table.size();
      table.push(options(next, &rated::lr).template coefficients<Compute>(next));
    }
    return table.view(log_.first, length);
  }

  /// The steps up to `step` since which at most lr has changed. `rule` if no step has been recorded.
  [[nodiscard]] last_span last_options(std::int64_t step, const Rule& rule) const {
    const std::lock_guard lock(guard_);
    if (log_.spans.empty() || step < log_.first) return {step + 1, step + 1, rule};
    const std::int64_t first = last_until(log_.spans, step).first;
    return {first, has_rate ? last_until(log_.rates, step).first : first, options(step, &rated::most)};
  }

  [[nodiscard]] bool is_in_double() const {
    const std::lock_guard lock(guard_);
    return log_.in_double;
  }

  /// All rows are up to date with the step before `step`, so earlier entries are dropped.
  void begin_at(std::int64_t step) {
    std::array<detail::coefficient_table, 2> dropped;  // without the lock: callbacks of a user may need it
    const std::lock_guard lock(guard_);
    drop(log_.spans);
    drop(log_.rates);
    log_.in_double = false;
    log_.first = step;
    history_.swap(dropped);
  }

  /// A copy of the recorded steps, and its restoration. restore() allocates nothing.
  /// @{
  [[nodiscard]] recording recorded() const {
    const std::lock_guard lock(guard_);
    return log_;
  }
  void restore(recording&& saved) noexcept {
    std::array<detail::coefficient_table, 2> dropped;  // as above
    const std::lock_guard lock(guard_);
    std::swap(log_, saved);
    history_.swap(dropped);
  }
  /// @}

  /// Bytes of host memory of the recorded steps.
  [[nodiscard]] std::size_t history_bytes() const {
    const std::lock_guard lock(guard_);
    return log_.spans.capacity() * sizeof(span_of_steps) + log_.rates.capacity() * sizeof(rated) +
           history_[0].bytes() + history_[1].bytes();
  }

 private:
  static auto step_source(const Rule& rule) {
    if constexpr (ScheduledOptimizer<Rule>)
      return rule.by_step();
    else
      return rule;
  }
  using source_type = decltype(step_source(std::declval<const Rule&>()));
  struct counted {
    detail::coefficient_table table;
    std::optional<source_type> source;
    bool converged = false;
  };

  template <class Compute>
  static constexpr std::size_t slot = std::is_same_v<Compute, double> ? 1 : 0;

  template <class T>
  static void one_more(std::vector<T>& entries) {
    if (entries.size() == entries.capacity())
      entries.reserve(std::max<std::size_t>(4, entries.size() + entries.size() / 2));
  }
  /// Keeps the capacity that make_room() took.
  template <class T>
  static void drop(std::vector<T>& entries) {
    entries.clear();
    if (entries.capacity() > 64) std::vector<T>().swap(entries);
  }
  /// The last of some entries that begins at or before `step`.
  template <class T>
  static const T& last_until(const std::vector<T>& entries, std::int64_t step) {
    const auto next = std::upper_bound(entries.begin(), entries.end(), step,
                                       [](std::int64_t s, const T& entry) { return s < entry.first; });
    return next == entries.begin() ? entries.front() : *(next - 1);
  }
  Rule options(std::int64_t step, [[maybe_unused]] double rated::*rate) const {
    Rule rule = last_until(log_.spans, step).rule;
    if constexpr (has_rate) rule.lr = static_cast<decltype(rule.lr)>(last_until(log_.rates, step).*rate);
    return rule;
  }

  template <class T>
  static bool same(const T& a, const T& b) {
    static_assert(std::is_trivially_copyable_v<T>,
                  "ferry: a rule whose rows count their steps must be trivially copyable: options alone.");
    if constexpr (std::equality_comparable<T>)
      return a == b;
    else
      return std::memcmp(&a, &b, sizeof a) == 0;
  }

  mutable std::mutex guard_;
  std::array<counted, 2> counted_;
  recording log_;
  std::array<detail::coefficient_table, 2> history_;
};

}  // namespace ferry::optim
