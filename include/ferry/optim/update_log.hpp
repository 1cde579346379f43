#pragma once

#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::optim {

/// The updates of many steps, for rows that are not all at the same one: made on the host, kept there, and sent to a
/// device's memory entry by entry as they are needed there.
template <class Rule>
class update_log {
 public:
  /// The update of a step, computed in Compute.
  template <class Compute>
  using update = decltype(std::declval<const Rule&>().template coefficients<Compute>(std::int64_t{}));

  /// For step_count::per_row: the updates of steps 1, 2, ... by today's options, up to `steps` or to the one from which on
  /// they do not change any more.
  template <class Compute>
  void by_count(const Rule& rule, std::int64_t steps) {
    using entry = update<Compute>;
    if (!holds<entry>() || runs_.empty() || !same(rule, runs_.back().rule)) {
      reset<entry>(1);
      runs_.assign(1, run{1, rule, 1, rule});
    }
    if (settled_ || size() >= steps) return;
    const entry settled = rule.template coefficients<Compute>(std::int64_t{1} << 40);
    while (size() < steps && !settled_) {
      const entry next = rule.template coefficients<Compute>(size() + 1);
      push(next);
      settled_ = same(next, settled);
    }
  }

  /// For step_count::catch_up: step `step` goes by these options. A step that was taken back and comes again is noted anew.
  void note(const Rule& rule, std::int64_t step) {
    while (!runs_.empty() && runs_.back().first >= step) runs_.pop_back();
    truncate(step - first_);
    if (!runs_.empty() && same(rule, runs_.back().rule)) return;
    run next{step, rule, step, rule};
    if (!runs_.empty() && same_but_rate(rule, runs_.back().rule)) {
      next.rest_first = runs_.back().rest_first;
      next.rest_rule = faster(rule, runs_.back().rest_rule);
    }
    runs_.push_back(next);
  }

  /// The updates of all noted steps up to `step`, computed in Compute: made anew where they were in another type.
  template <class Compute>
  void extend(std::int64_t step) {
    using entry = update<Compute>;
    if (!holds<entry>()) reset<entry>(first_);
    const std::int64_t wanted = runs_.empty() ? 0 : std::max<std::int64_t>(0, step + 1 - first_);
    truncate(wanted);
    while (size() < wanted)
      push(run_of(first_ + size()).rule.template coefficients<Compute>(first_ + size()));
  }
  template <class Compute>
  [[nodiscard]] bool is_in() const {
    return holds<update<Compute>>();
  }

  /// The first of the steps up to `step` whose options differ in lr at most, and those options with the largest lr: an
  /// element that these leave at rest stays there.
  template <class Compute>
  [[nodiscard]] std::pair<std::int64_t, update<Compute>> rest(std::int64_t step, const Rule& rule) const {
    if (runs_.empty() || step < first_) return {step + 1, rule.template coefficients<Compute>(step + 1)};
    const run& at = run_of(step);
    return {at.rest_first, at.rest_rule.template coefficients<Compute>(at.rest_first)};
  }

  /// All rows have come to the step before `step`, so nothing earlier is needed any more.
  void begin_at(std::int64_t step) {
    runs_.clear();
    entries_.clear();
    kind_ = nullptr;
    sent_ = 0;
    first_ = step;
  }

  /// Step of the first entry.
  [[nodiscard]] std::int64_t first() const { return first_; }

  /// The entries, of type update<Compute>.
  [[nodiscard]] const void* entries() const { return entries_.data(); }
  [[nodiscard]] std::int64_t size() const {
    return kind_ == nullptr ? 0 : static_cast<std::int64_t>(entries_.size() / entry_bytes_);
  }

  /// The entries that a device's memory lacks, and the memory, with room for all of them.
  struct missing {
    std::shared_ptr<tensor<std::byte, device_space>> memory;
    const std::byte* from;
    std::size_t begin, bytes;
  };
  /// The caller sends them, and then says so.
  [[nodiscard]] missing lacking() {
    const auto needed = static_cast<std::size_t>(size()) * entry_bytes_;
    if (mirror_ == nullptr || mirror_->rows() < needed) {  // a new one: verbs in flight share the old one
      mirror_ = std::make_shared<tensor<std::byte, device_space>>("updates",
                                                                  std::max<std::size_t>(2 * needed, 4096));
      sent_ = 0;
    }
    const auto begin = static_cast<std::size_t>(sent_) * entry_bytes_;
    return {mirror_, entries_.data() + begin, begin, needed - begin};
  }
  void sent() { sent_ = size(); }

 private:
  struct run {
    std::int64_t first;
    Rule rule;
    std::int64_t rest_first;  ///< see rest
    Rule rest_rule;
  };

  template <class Update>
  struct kind {
    static constexpr char id = 0;
  };
  template <class Update>
  [[nodiscard]] bool holds() const {
    return kind_ == &kind<Update>::id;
  }
  template <class Update>
  void reset(std::int64_t first) {
    kind_ = &kind<Update>::id;
    entry_bytes_ = sizeof(Update);
    entries_.clear();
    first_ = first;
    settled_ = false;
    sent_ = 0;
  }
  template <class Update>
  void push(const Update& next) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&next);
    entries_.insert(entries_.end(), bytes, bytes + sizeof next);
  }
  void truncate(std::int64_t count) {
    if (size() > count) entries_.resize(static_cast<std::size_t>(count) * entry_bytes_);
    sent_ = std::min(sent_, std::max<std::int64_t>(0, count));
  }
  /// Only where a step has been noted.
  [[nodiscard]] const run& run_of(std::int64_t step) const {
    auto at = runs_.size() - 1;
    while (at > 0 && runs_[at].first > step) --at;
    return runs_[at];
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
  static bool same_but_rate(const Rule& a, const Rule& b) {
    Rule with = a;
    if constexpr (requires { with.lr = b.lr; }) with.lr = b.lr;
    return same(with, b);
  }
  static Rule faster(const Rule& a, const Rule& b) {
    if constexpr (requires { a.lr < b.lr; })
      return a.lr < b.lr ? b : a;
    else
      return a;
  }

  std::vector<run> runs_;
  std::vector<std::byte> entries_;
  const void* kind_ = nullptr;
  std::size_t entry_bytes_ = 1;
  std::int64_t first_ = 1;
  std::int64_t sent_ = 0;
  bool settled_ = false;
  std::shared_ptr<tensor<std::byte, device_space>> mirror_;
};

}  // namespace ferry::optim
