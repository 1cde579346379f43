// SPDX-License-Identifier: Apache-2.0
#include <ferry/loader/batch_source.hpp>

#include <ferry/error.hpp>

#include <cstring>

namespace ferry::detail {

batch_shape batch_shape_of(const untyped_array& table, const untyped_array& first) {
  const array_shape& shape = table.shape;
  if (shape.rank == 0 || !shape.has_dense_rows())
    throw invalid_argument("ferry::samples_of: " + table.note().describe() +
                           " has no rows, or its rows are strided; use ferry::copy to make a dense table");
  if (shape.rows() != first.shape.rows())
    throw invalid_argument("ferry::samples_of: " + table.note().describe() + " and " +
                           first.note().describe() + " differ in their number of rows");
  batch_shape field;
  field.label = shape.label;
  for (std::size_t i = 1; i < shape.rank; ++i)
    field.extents.push_back(static_cast<std::size_t>(shape.extents[i]));
  return field;
}

void take_rows(const batch_request& request, const untyped_array& table, std::byte* data) {
  if (table.shape.accesses != nullptr) table.shape.accesses->wait_for_writes();
  const std::size_t bytes = static_cast<std::size_t>(table.shape.width()) * table.element_bytes;
  if (bytes == 0) return;
  const std::int64_t stride = table.shape.row_stride() * static_cast<std::int64_t>(table.element_bytes);
  const auto* rows = static_cast<const std::byte*>(table.data);
  const auto& samples = request.samples;
  constexpr std::size_t ahead = 8;  // random rows: the memory's latency counts
  for (std::size_t i = 0; i < samples.size(); ++i, data += bytes) {
#if defined(__GNUC__)
    if (i + ahead < samples.size()) __builtin_prefetch(rows + samples[i + ahead] * stride);
#endif
    std::memcpy(data, rows + samples[i] * stride, bytes);
  }
}

}  // namespace ferry::detail
