// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The numbers of a state.
struct state_counts {
  std::int64_t steps = 0;
  std::int64_t skipped = 0;
  std::uint64_t seed = 0;
  std::string_view row_policy;
};

/// The recorded steps of step_count::catch_up, see history_numbers.
struct recorded_steps {
  std::int64_t first = 0;
  bool in_double = false;
  std::vector<std::uint64_t> numbers;
};

/// An optimizer with its state: the rule and its options, the fields, the step counters, the seed, and the
/// recorded steps. state_entry knows their types.
class stored_state : public checkpoint_entry {
 public:
  void describe(manifest_entry& description, std::vector<checkpoint_array>& arrays) const override;
  void prepare(const load_source& source, const manifest_entry& stored,
               std::vector<load_step>& steps) override;

 protected:
  /// `is_const`: the options of the optimizer are compared on load instead of set.
  stored_state(std::string name, const std::vector<checkpoint_array>& fields, bool is_const);

  /// The present state.
  /// @{
  [[nodiscard]] virtual std::vector<manifest_fact> optimizer() const = 0;
  [[nodiscard]] virtual state_counts counts() const = 0;
  [[nodiscard]] virtual recorded_steps recorded() const = 0;
  [[nodiscard]] virtual checkpoint_array saved_counters() const = 0;
  /// @}

  /// Values that commit() sets. begin_load() drops an earlier one, and waits for the work on the counters,
  /// which commit() frees. load_options() throws invalid_argument for options that the optimizer refuses;
  /// load_recorded() takes steps without numbers, too, and returns why they are none, or an empty text. @{
  [[nodiscard]] virtual state_counts& begin_load() = 0;
  virtual void load_options(const std::vector<manifest_fact>& options) = 0;
  [[nodiscard]] virtual std::string load_recorded(const recorded_steps& recorded) = 0;
  virtual checkpoint_array loaded_counters(std::size_t rows) = 0;
  /// @}

  /// The chunks of the file's counters that this object checks: the first, and every how many after it.
  [[nodiscard]] virtual std::pair<std::size_t, std::size_t> share_of_counters() const { return {0, 1}; }

 private:
  [[nodiscard]] std::int64_t whole(const load_source& source, const manifest_entry& stored, const char* fact,
                                   std::optional<std::int64_t> least) const;
  void prepare_options(const load_source& source, const manifest_entry& stored);
  /// The counters of the rows go into a new tensor: there may be none yet, or those of another policy.
  /// Returns the number of the file's arrays that it knows.
  std::size_t prepare_rows(const load_source& source, const manifest_entry& stored, state_counts& next,
                           std::vector<load_step>& steps);
  /// Kernels look up the steps that a row has missed, so they must be in the history.
  void require_recorded(const load_source& source, const manifest_array& counters, std::int64_t least,
                        std::int64_t steps) const;

  std::vector<kept_array> fields_;
  bool is_const_;
};

}  // namespace ferry::detail
