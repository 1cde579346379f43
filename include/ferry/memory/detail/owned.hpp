// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>

namespace ferry::detail {

struct delete_object {
  template <class T>
  void operator()(T* object) const noexcept {
    static_assert(sizeof(T) != 0);
    delete object;
  }
};

/// An expiring owner of a T or of an object of a derived class.
template <class Other, class T>
concept GivesUp = !std::is_reference_v<Other> && requires(Other & other, T*& object) {
  object = other.release();
};

/// The only owner of an object. std::unique_ptr does the same; its tuple of pointer and deleter costs a
/// source that includes ferry five milliseconds for each type, this class less than one.
template <class T, class Delete = delete_object>
class owned {
 public:
  owned() noexcept = default;
  owned(std::nullptr_t) noexcept {}
  explicit owned(T* object) noexcept : object_(object) {}
  owned(owned&& other) noexcept : object_(other.release()) {}
  /// Takes over from the owner of a derived class, which may be a std::unique_ptr.
  template <GivesUp<T> Other>
  owned(Other&& other) noexcept  // NOLINT(bugprone-forwarding-reference-overload): GivesUp
      : object_(other.release()) {}
  ~owned() {
    if (object_ != nullptr) Delete()(object_);
  }
  owned& operator=(owned&& other) noexcept {
    reset(other.release());
    return *this;
  }

  void reset(T* object = nullptr) noexcept {
    T* const before = object_;
    object_ = object;
    if (before != nullptr) Delete()(before);
  }
  [[nodiscard]] T* release() noexcept {
    T* const object = object_;
    object_ = nullptr;
    return object;
  }

  [[nodiscard]] T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  friend bool operator==(const owned& owner, std::nullptr_t) noexcept { return owner.object_ == nullptr; }

 private:
  T* object_ = nullptr;
};

template <class T, class... Arguments>
owned<T> make_owned(Arguments&&... arguments) {
  return owned<T>(new T(static_cast<Arguments&&>(arguments)...));
}

}  // namespace ferry::detail
