// SPDX-License-Identifier: Apache-2.0
#include <ferry/loader/detail/closable.hpp>

namespace ferry::detail {

closing_owner::closing_owner(std::shared_ptr<closable> owned) : owned_(std::move(owned)) {}
closing_owner::closing_owner(closing_owner&& source) noexcept = default;

closing_owner& closing_owner::operator=(closing_owner&& source) noexcept {
  std::swap(owned_, source.owned_);
  return *this;
}

closing_owner::~closing_owner() {
  if (owned_ == nullptr) return;
  if (owned_->in_own_process())
    owned_->close();
  else
    process_identity::get().abandon(new std::shared_ptr<closable>(std::move(owned_)));
}

}  // namespace ferry::detail
