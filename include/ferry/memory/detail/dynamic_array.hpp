// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <new>
#include <type_traits>

namespace ferry::detail {

/// A std::vector with the few functions that the runtime needs. Each type of std::vector that grows costs a
/// source that calls a verb 40 milliseconds, this class less than half. Elements move without exceptions.
template <class T>
class dynamic_array {
 public:
  using value_type = T;

  dynamic_array() noexcept = default;
  explicit dynamic_array(std::size_t count) : dynamic_array() { resize(count); }
  dynamic_array(std::initializer_list<T> items) : dynamic_array(items.begin(), items.end()) {}
  template <class Iterator>
  dynamic_array(Iterator first, Iterator last) : dynamic_array() {
    append(first, last);
  }
  dynamic_array(const dynamic_array& other) : dynamic_array(other.begin(), other.end()) {}
  dynamic_array(dynamic_array&& other) noexcept { swap(other); }
  ~dynamic_array() { free(); }
  dynamic_array& operator=(const dynamic_array& other) {
    dynamic_array copy(other);
    swap(copy);
    return *this;
  }
  dynamic_array& operator=(dynamic_array&& other) noexcept {
    dynamic_array taken(static_cast<dynamic_array&&>(other));
    swap(taken);
    return *this;
  }
  void swap(dynamic_array& other) noexcept {
    exchange(items_, other.items_);
    exchange(size_, other.size_);
    exchange(capacity_, other.capacity_);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T* data() noexcept { return items_; }
  [[nodiscard]] const T* data() const noexcept { return items_; }
  [[nodiscard]] T* begin() noexcept { return items_; }
  [[nodiscard]] T* end() noexcept { return items_ + size_; }
  [[nodiscard]] const T* begin() const noexcept { return items_; }
  [[nodiscard]] const T* end() const noexcept { return items_ + size_; }
  T& operator[](std::size_t at) noexcept { return items_[at]; }
  const T& operator[](std::size_t at) const noexcept { return items_[at]; }
  [[nodiscard]] T& front() noexcept { return items_[0]; }
  [[nodiscard]] const T& front() const noexcept { return items_[0]; }
  [[nodiscard]] T& back() noexcept { return items_[size_ - 1]; }
  [[nodiscard]] const T& back() const noexcept { return items_[size_ - 1]; }

  friend bool operator==(const dynamic_array& a, const dynamic_array& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t at = 0; at < a.size_; ++at)
      if (!(a.items_[at] == b.items_[at])) return false;
    return true;
  }

  void reserve(std::size_t count) {
    if (count > capacity_) move_to(count);
  }
  /// New elements have the value T{}.
  void resize(std::size_t count) {
    reserve(count);
    while (size_ > count) pop_back();
    for (; size_ < count; ++size_) new (static_cast<void*>(items_ + size_)) T{};
  }
  /// The item may be an element of this array.
  T& push_back(T item) {
    if (size_ == capacity_) move_to(size_ == 0 ? 1 : 2 * size_);
    return push_reserved(static_cast<T&&>(item));
  }
  /// For an array whose capacity() is greater than its size().
  T& push_reserved(T item) noexcept {
    T* const added = new (static_cast<void*>(items_ + size_)) T(static_cast<T&&>(item));
    ++size_;
    return *added;
  }
  template <class Iterator>
  void append(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }
  void pop_back() noexcept { items_[--size_].~T(); }
  void clear() noexcept {
    while (size_ != 0) pop_back();
  }
  void erase(T* at) noexcept {
    for (T* next = at + 1; next != end(); ++at, ++next) *at = static_cast<T&&>(*next);
    pop_back();
  }
  /// Keeps the order of the others.
  template <class Predicate>
  void erase_if(const Predicate& is_gone) {
    std::size_t kept = 0;
    for (std::size_t at = 0; at < size_; ++at) {
      if (is_gone(items_[at])) continue;
      if (kept != at) items_[kept] = static_cast<T&&>(items_[at]);
      ++kept;
    }
    while (size_ > kept) pop_back();
  }

 private:
  template <class Value>
  static void exchange(Value& one, Value& other) noexcept {
    const Value before = one;
    one = other;
    other = before;
  }
  void move_to(std::size_t capacity) {
    static_assert(std::is_nothrow_move_constructible_v<T>);
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    constexpr std::size_t each = sizeof(T);  // NOLINT(bugprone-sizeof-expression): T may be a pointer
    if (capacity > static_cast<std::size_t>(-1) / 2 / each) throw std::bad_array_new_length();
    T* const moved = static_cast<T*>(::operator new(capacity* each));
    for (std::size_t at = 0; at < size_; ++at) {
      new (static_cast<void*>(moved + at)) T(static_cast<T&&>(items_[at]));
      items_[at].~T();
    }
    ::operator delete(items_);
    items_ = moved;
    capacity_ = capacity;
  }
  void free() noexcept {
    clear();
    ::operator delete(items_);
  }

  T* items_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace ferry::detail
