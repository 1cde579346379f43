// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The lane of a rank that works by execution space instances: work of `sends` makes its parts, and `takes`,
/// which may be an instance of another device, copies those of the others to memory of its device.
template <class Exec>
class instance_lane final : public device_lane {
 public:
  using backend = execution_backend<Exec>;

  instance_lane(const Exec& sends, const Exec& takes)
      : sends_(sends), takes_(takes), engine_(engine::get(sends)) {}

  void publish() override { published_ = engine_->record(sends_); }
  [[nodiscard]] const event_handle& published() const override { return published_; }
  [[nodiscard]] int device() const override { return engine_->device(); }

  void take(const device_lane* sender, std::byte* target, const std::byte* source,
            std::size_t bytes) override {
    static constexpr const char* label = "ferry::distributed::take";
    if (sender != nullptr && sender->published() != nullptr) backend::wait_for(takes_, *sender->published());
    const std::string_view source_space = sender == nullptr ? pinned_space::name : device_space::name;
    const transfer_region region(device_space::name, target, source_space, source, bytes, label);
    if (sender == nullptr)
      backend::copy_async(takes_, label, target, source, bytes);
    else
      backend::copy_from_device_async(takes_, label, target, source, sender->device(), bytes);
  }
  void read(std::byte* target, const std::byte* source, std::size_t bytes) const override {
    if (published_ != nullptr) published_->wait();
    backend::read(target, source, bytes);
  }
  void finish() override {
    static const std::string label = "ferry::distributed::taken";
    backend::fence(takes_, label);
  }
  void abandon() noexcept override {
    try {
      finish();
    } catch (...) {  // the device failed: nothing of it runs any more
    }
  }

 private:
  Exec sends_, takes_;
  std::shared_ptr<engine> engine_;
  event_handle published_;
};

}  // namespace ferry::detail

/// Buffers of rows that travel between ranks.
namespace ferry::detail {

/// The space of such buffers: near the ranks' kernels, but for rows that come from host memory and go there
/// in a program with devices.
template <class Exec, class... Spaces>
using payload_space = std::conditional_t<!is_host_exec<Exec> && (Spaces::is_host_accessible && ...),
                                         pinned_space, near_space<Exec>>;

/// A buffer for work of `exec`: on its device from the cache of the engine, because to allocate and free
/// device memory waits for the device. No work may be in flight when it ends, also after an exception.
template <class T, class Space, class Exec, class... Sizes>
tensor<T, Space> payload([[maybe_unused]] const Exec& exec, const char* label, Sizes... sizes) {
  if constexpr (Space::is_host_accessible) {
    return tensor<T, Space>(label, sizes...);
  } else {
    const std::array<std::size_t, sizeof...(Sizes)> extents{static_cast<std::size_t>(sizes)...};
    const auto shape = ferry::shape<dynamic_rank>::make(extents, label, sizeof(T));
    auto memory = engine::get(exec)->device_scratch(shape.size() * sizeof(T));
    T* const data = static_cast<T*>(memory.get());
    return tensor<T, Space>(label, shape, data, std::move(memory));
  }
}

/// Waits for an instance at the end of a scope.
template <class Exec>
struct fence_at_exit {
  const Exec& exec;

  explicit fence_at_exit(const Exec& instance) : exec(instance) {}
  fence_at_exit(const fence_at_exit&) = delete;
  fence_at_exit& operator=(const fence_at_exit&) = delete;
  ~fence_at_exit() {
    try {
      fence();
    } catch (...) {  // the device failed: nothing of it runs any more
    }
  }
  void fence() const {
    static const std::string label = "ferry::distributed::payload";
    execution_backend<Exec>::fence(exec, label);
  }
};

/// Waits for an instance if a block ends by an exception.
template <class Exec>
struct fence_on_exception {
  const Exec& exec;
  int exceptions = std::uncaught_exceptions();

  explicit fence_on_exception(const Exec& instance) : exec(instance) {}
  fence_on_exception(const fence_on_exception&) = delete;
  fence_on_exception& operator=(const fence_on_exception&) = delete;
  ~fence_on_exception() {
    if (std::uncaught_exceptions() > exceptions) fence_at_exit<Exec>{exec};
  }
};

/// True if both instances are of the device that has a buffer in Space.
template <class Space, class Exec>
bool share_home([[maybe_unused]] const Exec& first, [[maybe_unused]] const Exec& second) {
  if constexpr (Space::is_host_accessible || is_host_exec<Exec>)
    return true;
  else
    return execution_backend<Exec>::device_of(first) == execution_backend<Exec>::device_of(second);
}

/// Copies between buffers of the devices of two instances. Blocks.
template <class Exec>
void copy_home(const Exec& to_exec, void* target, const Exec& from_exec, const void* source,
               std::size_t bytes) {
  if (bytes == 0) return;
  const fence_at_exit<Exec> waits(to_exec);
  execution_backend<Exec>::copy_from_device_async(to_exec, "ferry::distributed::copy_home", target, source,
                                                  execution_backend<Exec>::device_of(from_exec), bytes);
  waits.fence();
}

/// Host memory that kernels of Exec reach at full speed.
template <class Exec>
using wire_space = std::conditional_t<is_host_exec<Exec>, pageable_space, pinned_space>;

/// A contiguous array of rank 1 for host code: its own memory, or a copy in `room`. Waits for the work in
/// flight that writes it, that of `exec` included.
template <class Exec, class T, class Space>
const std::remove_const_t<T>* host_values(const Exec& exec, const array_ref<T, Space>& array,
                                          std::vector<std::remove_const_t<T>>& room) {
  static const std::string label = "ferry::distributed::host_values";
  if (array.accesses != nullptr) array.accesses->wait_for_all();
  if constexpr (Space::is_host_accessible) {
    execution_backend<Exec>::fence(exec, label);
    return array.data;
  } else {
    room.resize(static_cast<std::size_t>(array.rows()));
    if (!room.empty()) copy(exec, array, room).join();
    return room.data();
  }
}

/// A dense array like another one in memory that ranks exchange, see payload().
template <class T, class Wire>
struct wire_copy {
  tensor<T, Wire> buffer;
  array_ref<T, Wire> like;

  template <class Exec, class U, class Space>
  wire_copy(const Exec& exec, const array_ref<U, Space>& array)
      : buffer(payload<T, Wire>(exec, "values of ranks", array.size())) {
    like.rank = array.rank;
    like.extents = array.extents;
    like.make_dense();
    like.data = buffer.data();
  }

  template <class Exec, class U, class Space>
  void take(const Exec& exec, const array_ref<U, Space>& array) {
    copy(exec, array, like).join();
  }
  template <class Exec, class Space>
  void give(const Exec& exec, const array_ref<T, Space>& array) const {
    copy(exec, like, array).join();
  }
  /// The bytes of rows [begin, end).
  [[nodiscard]] std::byte* bytes(std::int64_t begin) {
    return reinterpret_cast<std::byte*>(buffer.data() + begin * like.width());
  }
  [[nodiscard]] std::size_t row_bytes() const { return static_cast<std::size_t>(like.width()) * sizeof(T); }
};

/// "<verb> of a x b", and the element type, which must agree. `first` is the first extent that must.
template <class T, class Array>
call_note note_of_array(const char* verb, const Array& array, std::size_t first) {
  call_note note(verb);
  note.add(" of").add_number(array.rank).add(" extents:");
  for (std::size_t i = first; i < array.rank; ++i) note.add_number(array.extents[i]);
  return note.add_hidden(note_part::types, typeid(T).hash_code());
}

}  // namespace ferry::detail
