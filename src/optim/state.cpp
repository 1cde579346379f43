// SPDX-License-Identifier: Apache-2.0

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/optim/detail/coefficient_history.hpp>
#include <ferry/optim/detail/options.hpp>
#include <ferry/optim/detail/step_counters.hpp>
#include <ferry/optim/detail/step_inputs.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/optim/make_state.hpp>
#include <ferry/rows/init.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::optim {

using ferry::detail::joined;

void step_counts::require_policy(const char* verb, std::string_view policy,
                                 const ferry::detail::array_label& table) const {
  if (row_policy.empty() || row_policy == policy) return;
  throw invalid_argument(joined("ferry::", verb, ": the rows of '", table.view(), "' count their steps by ",
                                row_policy, "; this step asks for ", policy,
                                ". Give every step the same policy"));
}

void step_counts::require_countable(const char* verb, std::string_view policy,
                                    const ferry::detail::array_label& table) const {
  if (steps < most_row_steps) return;
  throw invalid_argument(joined("ferry::", verb, ": the state of '", table.view(), "' has taken ", steps,
                                " steps, but rows that count by ", policy, " count to ", most_row_steps,
                                "; use step_count::global"));
}

void step_counts::require_steps(std::int64_t count) const {
  if (count < 0) throw invalid_argument(joined("ferry::optim: a state can't have taken ", count, " steps"));
  if (!row_policy.empty() && count > most_row_steps)
    throw invalid_argument(joined("ferry::optim: a state whose rows count their steps by ", row_policy,
                                  " can't have taken ", count, " steps: rows count to ", most_row_steps));
}

namespace {

void take_back(void* owner) { --static_cast<step_counts*>(owner)->steps; }
void skip_step(void* owner, bool counted) {
  auto& counts = *static_cast<step_counts*>(owner);
  if (counted) --counts.steps;
  ++counts.skipped;
}

using count_list = std::vector<std::shared_ptr<step_counts>>;

void take_back_all(void* owner) {
  for (const auto& counts : *static_cast<count_list*>(owner)) take_back(counts.get());
}
void skip_all(void* owner, bool counted) {
  for (const auto& counts : *static_cast<count_list*>(owner)) skip_step(counts.get(), counted);
}

}  // namespace

ferry::detail::rollback rollback_of(std::shared_ptr<step_counts> counts, bool skips) {
  return {std::move(counts), &take_back, skips ? &skip_step : nullptr};
}
ferry::detail::rollback rollback_of(std::vector<std::shared_ptr<step_counts>> counts, bool skips) {
  return {std::make_shared<count_list>(std::move(counts)), &take_back_all, skips ? &skip_all : nullptr};
}

void refuse_moved_contents(const char* owner) {
  throw invalid_argument(joined("ferry::optim::", owner, ": the contents were moved elsewhere"));
}

void refuse_field_name(const char* owner, std::string_view rule, std::string_view name) {
  throw invalid_argument(joined("ferry::optim::", owner, ": ", rule, " has no active state '", name, "'"));
}

}  // namespace ferry::optim

namespace ferry::optim::detail {

void refuse_fields(std::string_view rule, int active, int least) {
  throw invalid_argument(
      joined("ferry::optim::", rule, ": its options use ", active, " fields, but its min_fields is ", least));
}

void coefficient_table::truncate(std::int64_t count) {
  count = std::max<std::int64_t>(0, count);
  if (size_ <= count) return;
  size_ = count;
  capacity_ = 0;  // views may read the entries that went: others come into new memory
  if (on_device_ == nullptr) return;
  const std::lock_guard lock(on_device_->guard);
  on_device_->sent = std::min(on_device_->sent, static_cast<std::size_t>(count) * entry_bytes_);
}

table_view coefficient_table::view(std::int64_t first, std::int64_t count) {
  if (on_device_ == nullptr) on_device_ = std::make_shared<device_copy>();
  return {entries_, on_device_, static_cast<std::size_t>(count) * entry_bytes_, first, count};
}

std::byte* coefficient_table::add(std::size_t entry_bytes) {
  entry_bytes_ = entry_bytes;
  const std::size_t bytes = static_cast<std::size_t>(size_) * entry_bytes;
  if (bytes + entry_bytes > capacity_) {
    const std::size_t capacity = std::max(bytes + bytes / 2, 16 * entry_bytes);
    std::shared_ptr<std::byte[]> longer(new std::byte[capacity]);
    if (bytes != 0) std::memcpy(longer.get(), entries_.get(), bytes);
    entries_ = std::move(longer);
    capacity_ = capacity;
  }
  ++size_;
  return entries_.get() + bytes;
}

template <class T, MemorySpace Space>
void fill_new(const ferry::detail::array_ref<T, Space>& array, [[maybe_unused]] device placement, T value) {
  using exec_space = Kokkos::DefaultExecutionSpace;
  if constexpr (std::is_same_v<Space, device_space>) {
    const auto stream = ferry::detail::engine::get_on<exec_space>(placement.id)->side_stream_of(nullptr);
    ferry::detail::fill(*static_cast<const exec_space*>(stream.get()), array, value);
  } else {
    ferry::detail::fill(Kokkos::DefaultHostExecutionSpace{}, array, value);
  }
}

template <class T, MemorySpace Space>
tensor<T, Space> filled(const std::string& label, device placement, std::span<const std::size_t> extents,
                        T value) {
  tensor<T, Space> array(label, placement, extents);
  fill_new(make_ref(array), array.device(), value);
  return array;
}

template <class StateType>
StateType initial_value(std::string_view rule, const row_field& field) {
  const auto value = static_cast<StateType>(field.initial);
  const auto stored = convert<double>(value);
  const bool holds = ferry::detail::is_finite(stored) == ferry::detail::is_finite(field.initial) &&
                     (stored == 0.0) == (field.initial == 0.0);
  if (!holds)
    require_option(rule, ferry::detail::joined("the initial value of '", field.name, "'").c_str(),
                   field.initial, false, "a number that the elements of the state can hold");
  return value;
}

#define FERRY_FILL_OF(T, SPACE)                                                 \
  template void fill_new(const ferry::detail::array_ref<T, SPACE>&, device, T); \
  template tensor<T, SPACE> filled(const std::string&, device, std::span<const std::size_t>, T);
#define FERRY_FILLS_IN(SPACE)         \
  FERRY_FILL_OF(float, SPACE)         \
  FERRY_FILL_OF(double, SPACE)        \
  FERRY_FILL_OF(half_t, SPACE)        \
  FERRY_FILL_OF(bhalf_t, SPACE)       \
  FERRY_FILL_OF(std::uint32_t, SPACE) \
  FERRY_FILL_OF(std::byte, SPACE)
FERRY_FILLS_IN(device_space)
FERRY_FILLS_IN(pinned_space)
FERRY_FILLS_IN(mapped_space)
FERRY_FILLS_IN(pageable_space)
#undef FERRY_FILLS_IN
#undef FERRY_FILL_OF

template float initial_value<float>(std::string_view, const row_field&);
template double initial_value<double>(std::string_view, const row_field&);
template half_t initial_value<half_t>(std::string_view, const row_field&);
template bhalf_t initial_value<bhalf_t>(std::string_view, const row_field&);

}  // namespace ferry::optim::detail

namespace ferry::detail {

void require_made_for(const char* verb, const untyped_array& field, const untyped_array& table,
                      std::int64_t width) {
  if (field.shape.rows() != table.shape.rows() || field.shape.width() != width)
    throw invalid_argument(joined("ferry::", verb, ": state ", field.note().describe(), " was not made for ",
                                  table.note().describe()));
}

void require_names(const char* verb, const optim::detail::field_list& needed,
                   std::span<const std::string_view> names, std::string_view rule, const array_label& table) {
  const auto unfit = [&](const std::string& need, const std::string& present) {
    throw invalid_argument(joined("ferry::", verb, ": the options of ", rule, " need ", need,
                                  ", but the state of '", table.view(), "' has ", present,
                                  "; make it with the same options"));
  };
  if (static_cast<std::size_t>(needed.fields) != names.size())
    unfit(joined(needed.fields, " state fields"), joined(names.size()));
  for (std::size_t f = 0; f < names.size(); ++f)
    if (needed.facts[f].name != names[f])
      unfit(joined("'", needed.facts[f].name, "'"), joined("'", names[f], "' in its place"));
}

template <ExecutionSpace Exec>
std::shared_ptr<tensor<std::byte, device_space>> mark_uploaded(launch_context<Exec>& call,
                                                               const optim::detail::table_view& table) {
  auto& copy = *table.on_device;
  const device device_of_call{call.device()};
  // Memory is taken and released without the lock: a user's allocation callback may need it.
  std::byte* packed = nullptr;
  std::size_t room = 0;
  for (std::shared_ptr<tensor<std::byte, device_space>> longer;;) {
    std::unique_lock lock(copy.guard);
    if (longer != nullptr && (copy.memory == nullptr || copy.memory->size() < longer->size() ||
                              copy.memory->device() != device_of_call)) {
      std::swap(copy.memory, longer);  // verbs in flight keep the old one
      copy.sent = 0;
    }
    const bool fits = copy.memory != nullptr && copy.memory->size() >= table.bytes &&
                      copy.memory->device() == device_of_call;
    if (fits && copy.sent >= table.bytes) return copy.memory;
    const std::size_t lacking = table.bytes - (fits ? copy.sent : 0);
    if (fits && lacking <= room) {
      const std::byte* entries = table.entries.get() + copy.sent;
      std::memcpy(packed, entries, lacking);
      using backend = execution_backend<Exec>;
      auto& accesses = *copy.memory->accesses();
      for (const auto& event : accesses.before_write(call.id())) backend::wait_for(call.exec(), *event);
      transfer(call.exec(), "ferry::step::updates", copy.memory->data() + copy.sent, device_space::name,
               packed, pinned_space::name, static_cast<std::int64_t>(lacking));
      const auto order = engine::get(call.exec())->lock_order();
      accesses.add_write(call.mark(), call.id());
      copy.sent = table.bytes;
      return copy.memory;
    }
    lock.unlock();
    if (!fits)
      longer = std::make_shared<tensor<std::byte, device_space>>(
          "updates", device_of_call, std::max<std::size_t>(2 * table.bytes, 4096));
    if (lacking > room) {
      packed = call.template pinned<std::byte>(static_cast<std::int64_t>(lacking));
      room = lacking;
    }
  }
}
void refuse_counting_capture(const char* verb) {
  throw invalid_argument(
      joined("ferry::", verb, ": the instance is being captured into a graph, ", counts_each_step));
}

#define FERRY_UPLOADS_OF(EXEC)                                                                   \
  template std::shared_ptr<tensor<std::byte, device_space>> mark_uploaded(launch_context<EXEC>&, \
                                                                          const optim::detail::table_view&);
FERRY_FOR_DEVICE_EXECUTION_SPACES(FERRY_UPLOADS_OF)
#undef FERRY_UPLOADS_OF

}  // namespace ferry::detail
