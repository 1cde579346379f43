// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/coded_shards.hpp>
#include <ferry/distributed/sharded/detail/read_shards.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

/// The rows of a batch from the shards of all ranks, packed by their owners and exchanged.
namespace ferry::detail {

/// Rows that a batch asks for, packed in the order of its buckets. Each rank may ask for each different row
/// of its batch once.
template <class Exec, class Table>
class row_requests {
 public:
  row_requests(collective& call, const char* verb, const Exec& exec, const Table& table)
      : call_(call), verb_(verb), exec_(exec), table_(table) {}
  row_requests(const row_requests&) = delete;
  row_requests& operator=(const row_requests&) = delete;

  /// Brings the rows that ranks ask for to their owners: an all_gather and an exchange; none for a plan.
  template <class Bounds, class Named>
  void ask(const Named& named, bool by_rows) {
    if constexpr (is_sharded_plan<Named>)
      if (!by_rows) return ask(named.storage());
    const auto& list = list_of_batch(named);
    if (by_rows) {
      different_ = plan_of_list<Bounds>(exec_, list, static_cast<std::int64_t>(table_.rows()));
      listed_ = bucket_different_rows(verb_, exec_, table_, *different_);
    } else {
      listed_ = bucket_rows<Bounds>(verb_, exec_, table_, list);
    }
    call_.keep(listed_.memory);
    exchange_rows();
  }
  /// As above, for the rows of buckets, or of a plan.
  /// @{
  void ask(const buckets& items) {
    items_ = &items;
    exchange_rows();
  }
  void ask(const sharded_plan_storage<Exec>& plan) {
    plan_ = &plan;
    items_ = &plan.items;
    in_begin_ = plan.headers.in_begin;
  }
  /// @}
  [[nodiscard]] const buckets& items() const { return *items_; }

  /// Fetches the rows by an exchange, `columns` elements of T each, into a buffer on the device of the
  /// batch's instance. reader(shard_exec, table, rank, rows, out) reads those of a shard.
  template <class T, class Home, class Reader>
  [[nodiscard]] tensor<T, Home> fetch(const Reader& reader, std::int64_t columns) const {
    auto arrived = payload<T, Home>(exec_, "gathered rows", items_->items(), columns);
    for (int r = call_.first(); r < call_.last(); ++r) {
      read_shard(reader, r, arrived, columns);
      if (items_->everywhere) break;  // all shards have the same rows
    }
    if (is_local()) call_.agree();  // after the reads, so that a rank that fails in them tells the others
    return arrived;
  }
  /// For each position the number of its row among those, -1 for none. Enqueues only.
  [[nodiscard]] tensor<std::int64_t, near_space<Exec>> slots() const {
    return slots_of(verb_, exec_, *items_, different_ ? &*different_ : nullptr);
  }
  /// out[p] = the row of position p. Blocks.
  template <class Arrived, class Out, class OutSpace>
  void place(const Arrived& arrived, const array_ref<Out, OutSpace>& out) const {
    if constexpr (requires { typename Arrived::quantization; }) {
      gather(exec_, arrived, list_view<Exec>(slots()), out, bounds::skip{}).join();
    } else if (different_) {
      const auto list = slots();
      gather(exec_, arrived, list_view<Exec>(list), out, buffer_path<Exec, OutSpace>{}, bounds::skip{})
          .join();
    } else {
      scatter(exec_, out, list_view<Exec>(items_->place, items_->items()), arrived,
              buffer_path<Exec, OutSpace>{}, bounds::unchecked{}, duplicates::assume_unique{})
          .join();
    }
  }
  /// A ticket with the error of bad indices in this thread's batch.
  [[nodiscard]] ticket finish() const {
    // After the last phase an allocation may fail on this rank alone.
    if (items_->report.out_of_range == 0) return {};
    batch_findings batch;
    batch.out_of_range = items_->report.out_of_range;
    batch.first_position = items_->report.first_position;
    batch.first_index = items_->report.first_index;
    batch.positions = items_->positions;
    batch.signed_indices = items_->signed_indices ? 1 : 0;
    return ticket_of_error(all_findings(verb_, whole_ref(table_).note(), {batch}, true).error());
  }

 private:
  [[nodiscard]] Exec instance(int rank) const { return shard_instance(table_.comm(), rank, exec_); }
  /// True if this thread reads all rows of its batch itself.
  [[nodiscard]] bool is_local() const { return call_.is_whole() || items_->everywhere; }
  void exchange_rows() {
    if (is_local()) return;
    in_begin_ = exchange_headers(call_, *items_, {}, {}).in_begin;
    rows_in_ = rows_for(call_.rank(), in_begin_);
  }
  /// The rows of the shard of a rank that batches ask for.
  [[nodiscard]] tensor<std::int64_t, near_space<Exec>> rows_for(
      int rank, const std::vector<std::int64_t>& begin) const {
    const Exec shard_exec = instance(rank);
    auto rows = payload<std::int64_t, near_space<Exec>>(shard_exec, "rows of all ranks", begin.back());
    exchange_parts parts(call_, rank, is_local());
    parts.add(*items_, items_->rows, begin, rows.data(), 1);
    parts.template move<near_space<Exec>>(exec_, shard_exec);
    return rows;
  }
  /// Reads the rows of a shard, and sends them to the ranks that have asked.
  template <class Reader, class T, class Home>
  void read_shard(const Reader& reader, int rank, tensor<T, Home>& arrived, std::int64_t columns) const {
    const Exec shard_exec = instance(rank);
    const auto [first, last] = items_->group(rank);
    if (is_local() && first == last) return;
    if (is_local() && share_home<near_space<Exec>>(exec_, shard_exec)) {
      auto rows = arrived.rows_between(first, last);
      return reader(shard_exec, table_, rank, list_view<Exec>(items_->rows + first, last - first), rows);
    }
    const std::vector<std::int64_t> begin =
        is_local() ? std::vector<std::int64_t>{0, last - first} : in_begin_;
    auto leaving = payload<T, Home>(shard_exec, "rows for others", begin.back(), columns);
    if (is_local())
      reader(shard_exec, table_, rank, list_view<Exec>(rows_for(rank, begin)), leaving);
    else if (plan_ != nullptr)
      reader(shard_exec, table_, rank, plan_->owned_by(rank).plan, leaving);
    else
      reader(shard_exec, table_, rank, list_view<Exec>(rows_in_), leaving);
    exchange_parts parts(call_, rank, is_local());
    parts.add_back(*items_, arrived.data(), begin, leaving.data(), columns);
    parts.template move<Home>(shard_exec, exec_);
  }

  collective& call_;
  const char* verb_;
  const Exec& exec_;
  const Table& table_;
  buckets listed_;
  const buckets* items_ = &listed_;
  const sharded_plan_storage<Exec>* plan_ = nullptr;
  std::optional<row_plan> different_;
  std::vector<std::int64_t> in_begin_;
  tensor<std::int64_t, near_space<Exec>> rows_in_;
};

template <class Q, class Space, class ScaleSpace, class Spread>
struct sharded_kind<sharded_quantized_table<Q, Space, ScaleSpace, Spread>> {
  using gathered = float;
  template <class S>
  static constexpr bool lies_in = std::is_same_v<S, Space> || std::is_same_v<S, ScaleSpace>;
  template <class Out>
  static consteval void require_output() {
    require_quantizable<Out>();
  }
  template <class Table, class Use>
  static void for_each_part(Table& table, const Use& use) {
    use(table.stored());
    if constexpr (has_scale_array<Q>) use(table.scales());
  }
};

/// The rows that were asked for, read by the policies of the call; of a quantized table codes and scales,
/// which the rank that asks decodes.
/// @{
template <class Chosen, class Home, class Exec, class T, class Space, class Spread>
tensor<T, Home> fetch_rows(const row_requests<Exec, sharded_table<T, Space, Spread>>& requests,
                           const sharded_table<T, Space, Spread>& table) {
  return requests.template fetch<T, Home>(shard_reader<shard_read_path_t<Chosen, Exec, Space>>{},
                                          static_cast<std::int64_t>(table.width()));
}
template <class Chosen, class Home, class Exec, class Q, class Space, class ScaleSpace, class Spread>
quantized_tensor<Q, Home, Home> fetch_rows(
    const row_requests<Exec, sharded_quantized_table<Q, Space, ScaleSpace, Spread>>& requests,
    const sharded_quantized_table<Q, Space, ScaleSpace, Spread>& table) {
  const auto fetch_part = [&]<class Path, class Part>(std::type_identity<Path>, const Part& part) {
    const auto read = [&](const Exec& shard_exec, const auto&, int rank, const auto& rows, auto& out) {
      gather(shard_exec, part.shard(rank), rows, out, Path{}, bounds::unchecked{}).join();
    };
    return requests.template fetch<typename Part::value_type, Home>(read,
                                                                    static_cast<std::int64_t>(part.width()));
  };
  using path_of_codes = shard_read_path_t<Chosen, Exec, Space>;
  quantized_tensor<Q, Home, Home> arrived(table.label(), 0, table.width());
  if constexpr (Q::in_records) {
    arrived.records() = fetch_part(std::type_identity<path_of_codes>{}, table.stored());
  } else {
    arrived.codes() = fetch_part(std::type_identity<path_of_codes>{}, table.stored());
    if constexpr (has_scales<Q>)
      arrived.scales() = fetch_part(std::type_identity<buffer_path<Exec, ScaleSpace>>{}, table.scales());
    if constexpr (Q::has_tensor_scale) arrived.set_scale(table.scale());
  }
  return arrived;
}
/// @}

}  // namespace ferry::detail
