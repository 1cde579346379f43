// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/memory_charge.hpp>

#include "registry.hpp"

#include <ferry/memory/detail/require_kokkos.hpp>

#include <utility>

namespace ferry::detail {

memory_charge::memory_charge(std::string_view space, const std::string& label, std::size_t bytes) {
  auto registry = memory_registry::get();
  ledger& books = registry->ledger_of(space);
  memory_account& account = books.claim(require_kokkos(label), bytes);
  account_ = {&account, charge_end{std::move(registry), &books, bytes, false}};
}

void memory_charge::confirm() noexcept {
  charge_end& entry = account_.get_deleter();
  entry.books->confirm(*account_, entry.bytes);
  entry.confirmed = true;
}

void memory_charge::move_to(const std::string& label) {
  charge_end entry = account_.get_deleter();
  memory_account& account = entry.books->move(*account_, label, entry.bytes);
  static_cast<void>(account_.release());
  account_ = {&account, std::move(entry)};
}

bool memory_charge::make_room(std::size_t freed_before) {
  return account_.get_deleter().books->make_room(~std::size_t{0}, freed_before);
}

std::size_t memory_charge::freed_bytes() const { return account_.get_deleter().books->freed_bytes(); }

std::string memory_charge::holdings() const { return account_.get_deleter().books->holdings(); }

void charge_end::operator()(memory_account* account) const noexcept {
  confirmed ? books->close(*account, bytes) : books->cancel(*account, bytes);
}

}  // namespace ferry::detail
