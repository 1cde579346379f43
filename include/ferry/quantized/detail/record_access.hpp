// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/quantized/detail/rowwise_int8_rows.hpp>
#include <ferry/quantized/rowwise_int8_tensor.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace ferry::detail {

/// The row of each of a source's items, -1 for none, as a list. Findings go to the ticket.
template <class Exec, class Index, class Bounds>
kernels::listed_rows listed(launch_context<Exec>& call, const kernels::index_rows<Index, Bounds>& source,
                            std::int64_t n) {
  auto* rows = call.template scratch<std::int64_t>(n);
  launch(call.exec(), call.label("resolve"), n,
         kernels::resolve_indices<Index, Bounds>{source, rows, nullptr, nullptr});
  return {rows};
}

/// Records of an 8-bit table, which kernels of the execution space read and decode.
template <class Space>
class table_access<rowwise_int8_tensor<Space>> : public rows_of_kernels<const std::byte, Space> {
 public:
  using gathered = float;

  table_access(const rowwise_int8_tensor<Space>& table, const char*)
      : codes_(codes_of(table)), record_bytes_(static_cast<std::int64_t>(table.row_bytes())) {}

  template <class Exec, class Chosen, bool = false>
  static consteval void require() {
    static_assert(in_batch_order<typename Chosen::template get<path_category, path::automatic>> ||
                      Chosen::template get<path_category, path::automatic>::chosen_at_run_time,
                  "ferry: kernels decode the rows of an 8-bit table where they lie: path::direct alone.");
  }
  template <class Out>
  static consteval void require_decodable() {
    require_quantizable<array_ref<Out, Space>>();
  }

  static auto extents_of(const rowwise_int8_tensor<Space>& table) { return codes_of(table); }
  [[nodiscard]] const auto& table() const { return codes_; }
  [[nodiscard]] std::int64_t row_bytes() const { return record_bytes_; }

  template <class Exec>
  record_rows<const std::byte, Space> rows(launch_context<Exec>& call) const {
    require_direct_reach(call.verb(), call.exec(), codes_);
    call.reads_from(codes_);
    return {codes_};
  }
  /// Indices become a list first, so that one kernel decodes for all their types.
  template <class Exec, class Source>
  static auto places(launch_context<Exec>& call, const Source& source, std::int64_t n,
                     const std::shared_ptr<plan_storage>&) {
    if constexpr (requires { Source::reports; })
      return listed(call, source, n);
    else
      return source;
  }

 private:
  array_ref<const std::byte, Space> codes_;
  std::int64_t record_bytes_;
};

static_assert(RowAccess<table_access<rowwise_int8_tensor<device_space>>>);

}  // namespace ferry::detail
