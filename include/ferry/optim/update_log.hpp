#pragma once

#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
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
    if (!holds<entry>() || history_ || !same(rule, runs_.empty() ? nullptr : &runs_.back().rule)) {
      reset<entry>(1, false);
      runs_.assign(1, run{1, rule});
    }
    constexpr std::int64_t far = std::int64_t{1} << 40;
    const entry settled = rule.template coefficients<Compute>(far);
    while (size() < steps && !settled_) {
      const entry next = rule.template coefficients<Compute>(size() + 1);
      push(next);
      settled_ = std::memcmp(&next, &settled, sizeof next) == 0;
    }
  }

  /// For step_count::catch_up: `rule` is that of step `step`; the earlier ones keep theirs. Steps that were taken back and
  /// come again are written anew.
  template <class Compute>
  void by_history(const Rule& rule, std::int64_t step) {
    if (!history_) begin_at(step);
    while (!runs_.empty() && runs_.back().first >= step) runs_.pop_back();
    if (runs_.empty() || !same(rule, &runs_.back().rule)) runs_.push_back({step, rule});
    extend<Compute>(step - 1);
    push(rule.template coefficients<Compute>(step));
  }

  /// The history up to `step`, computed in Compute: made anew where it was in another type.
  template <class Compute>
  void extend(std::int64_t step) {
    using entry = update<Compute>;
    if (!holds<entry>()) reset<entry>(first_, true);
    const auto wanted = std::max<std::int64_t>(0, step + 1 - first_);
    if (size() > wanted) entries_.resize(static_cast<std::size_t>(wanted) * sizeof(entry));
    sent_ = std::min(sent_, wanted);
    while (size() < wanted) push(rule_at(first_ + size()).template coefficients<Compute>(first_ + size()));
  }
  template <class Compute>
  [[nodiscard]] bool is_in() const {
    return holds<update<Compute>>();
  }

  /// All rows have come to the step before `step`, so nothing earlier is needed any more.
  void begin_at(std::int64_t step) {
    runs_.clear();
    entries_.clear();
    kind_ = nullptr;
    sent_ = 0;
    first_ = step;
    history_ = true;
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
  /// The caller sends them.
  [[nodiscard]] missing send() {
    const auto needed = static_cast<std::size_t>(size()) * entry_bytes_;
    if (mirror_ == nullptr || mirror_->rows() < needed) {  // a new one: verbs in flight share the old one
      mirror_ = std::make_shared<tensor<std::byte, device_space>>("updates",
                                                                  std::max<std::size_t>(2 * needed, 4096));
      sent_ = 0;
    }
    const auto begin = static_cast<std::size_t>(sent_) * entry_bytes_;
    sent_ = size();
    return {mirror_, entries_.data() + begin, begin, needed - begin};
  }

 private:
  struct run {
    std::int64_t first;
    Rule rule;
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
  void reset(std::int64_t first, bool history) {
    kind_ = &kind<Update>::id;
    entry_bytes_ = sizeof(Update);
    entries_.clear();
    first_ = first;
    history_ = history;
    settled_ = false;
    sent_ = 0;
  }
  template <class Update>
  void push(const Update& next) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&next);
    entries_.insert(entries_.end(), bytes, bytes + sizeof next);
  }
  [[nodiscard]] const Rule& rule_at(std::int64_t step) const {
    auto at = runs_.size() - 1;
    while (at > 0 && runs_[at].first > step) --at;
    return runs_[at].rule;
  }
  static bool same(const Rule& a, const Rule* b) {
    static_assert(std::is_trivially_copyable_v<Rule>,
                  "ferry: a rule whose rows count their steps must be trivially copyable: options alone.");
    return b != nullptr && std::memcmp(&a, b, sizeof a) == 0;
  }

  std::vector<run> runs_;
  std::vector<std::byte> entries_;
  const void* kind_ = nullptr;
  std::size_t entry_bytes_ = 1;
  std::int64_t first_ = 1;
  std::int64_t sent_ = 0;
  bool history_ = false;
  bool settled_ = false;
  std::shared_ptr<tensor<std::byte, device_space>> mirror_;
};

}  // namespace ferry::optim
