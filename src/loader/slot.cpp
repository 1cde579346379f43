// SPDX-License-Identifier: Apache-2.0
#include <ferry/loader/detail/slot.hpp>

#include <ferry/error.hpp>

#include <limits>
#include <string>

namespace ferry::detail {

namespace {

constexpr auto most_slot_bytes = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());

[[noreturn]] void refuse_slots(const char* user) {
  throw invalid_argument(
      std::string("ferry::") + user +
      ": the slots of the ring do not fit the address space; choose a smaller batch or depth");
}

}  // namespace

void slot_layout::add(const batch_shape& shape, std::size_t element_bytes, std::int64_t batch) {
  std::vector<std::size_t> sizes{static_cast<std::size_t>(batch)};
  sizes.insert(sizes.end(), shape.extents.begin(), shape.extents.end());
  slot_field field;
  field.label = shape.label;
  field.extents = ferry::shape<dynamic_rank>::make({sizes.data(), sizes.size()}, shape.label, element_bytes);
  field.offset = bytes;
  field.row_bytes = field.extents.width() * element_bytes;
  const std::size_t more = (field.extents.size() * element_bytes + 255) / 256 * 256;
  fields.push_back(std::move(field));
  if (more > most_slot_bytes - bytes) refuse_slots(user);
  bytes += more;
}

std::size_t slot_layout::bytes_of(std::size_t slots) const {
  if (bytes != 0 && slots > most_slot_bytes / bytes) refuse_slots(user);
  return bytes * slots;
}

}  // namespace ferry::detail
