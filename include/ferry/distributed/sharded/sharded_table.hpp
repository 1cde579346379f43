// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/concepts/sharding.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/distributed/sharded/shardings.hpp>
#include <ferry/distributed/shared/detail/shared_segment.hpp>
#include <ferry/distributed/shared/share.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The shards of a table that lie in other processes of the machine, as a device of this one reads them.
struct opened_shards {
  std::vector<std::shared_ptr<std::byte>> data;  ///< by rank; null for the own one and those without rows
  std::shared_ptr<access_tracker> reads;         ///< of all of them in flight; null if none were opened
  int device = -1;                               ///< which reads them
  bool by_all = false;                           ///< true if all ranks have opened those of all others
  std::string why_not;                           ///< could they not be opened
};

/// True if the ranks are processes of one rank each, whose shards others can open.
template <class Space, class Spread>
bool opens_shards(const communicator& comm) {
  if constexpr (shares_memory<Space>() && !Spread::replicates)
    return comm.group()->local_count() == 1 && comm.size() > 1;
  else
    return false;
}

/// Tells the other ranks of this one's shard, which `share_own` shares, and opens theirs for a device by
/// `open`. Two phases of the call. If a rank can't share or open, its table serves all the same: kernels that
/// read the shards of all ranks alone need them, and path::peer says why it has none.
opened_shards open_shards(collective& call, const communicator& comm,
                          const std::shared_ptr<access_tracker>& accesses, int device,
                          function_ref<shared_handle()> share_own,
                          std::shared_ptr<std::byte> (*open)(const shared_record&, int device));

/// As above, of a shard.
template <class T, class Space>
opened_shards open_shards(collective& call, const communicator& comm, const tensor<T, Space>& shard) {
  return open_shards(
      call, comm, shard.accesses(), shard.device().id, [&shard] { return share(shard); },
      &opened_memory<Space>);
}

}  // namespace ferry::detail

namespace ferry {

/// A table whose rows are spread over the ranks of a communicator. The verbs take it where they take a table.
///
///   auto comm = ferry::communicator::threads(4);
///   ferry::sharded_table<float, ferry::mapped_space> big("w", comm, rows, 128);
///
/// A call by a thread that acts for a rank is collective: all ranks call the verb, each with a batch of its
/// own, which may be empty. It means what one device would do with the batches one after the other, by rank,
/// and gives the same bits for every number of ranks and every sharding. A thread that acts for the group as
/// a whole (outside of communicator::run, where this process holds all ranks) uses the table like an ordinary
/// one.
///
/// In a group of devices the shard of a rank in device_space lies on the device of the rank, those in the
/// other spaces lie in host memory near it. A verb that acts for the group as a whole works on each shard by
/// the instance of its rank, and is ordered with `exec` as it blocks.
///
/// If the ranks are processes of one machine, gathers read shards in device_space by the other processes'
/// memory, which the constructor opens. A shard's memory lives until they have closed it.
///
/// Constructed inside of communicator::run, collectively, each rank's object holds the shard of that rank.
/// Constructed outside, the object holds all shards of this process, and the ranks of a later run share it.
/// Move-only.
template <Element T, MemorySpace Space, class Spread = sharding::cyclic>
class sharded_table {
  static_assert(detail::require_sharding<Spread>());
  static_assert(
      !Quantization<T>,
      "ferry: the first argument of a sharded_table is the type of its elements; quantized rows are spread as a sharded_quantized_table<Quantization, Space>.");

 public:
  using value_type = T;          ///< elements
  using memory_space = Space;    ///< where the shards lie
  using sharding_type = Spread;  ///< how the rows are spread

  /// Allocates the shards of the ranks that the calling thread acts for. Elements are not initialised: see
  /// ferry::init. Label, extents and sharding must be the same on all ranks. Throws invalid_argument for
  /// negative extents, bad_alloc and budget_exceeded; peer_error if that happened to another rank;
  /// protocol_error if the ranks' arguments differ.
  template <std::integral Rows, std::integral Width>
  sharded_table(std::string label, const communicator& comm, Rows rows, Width width, Spread spread = {})
      : label_(std::make_shared<const std::string>(std::move(label))),
        comm_(comm),
        spread_(spread),
        rows_(static_cast<std::int64_t>(rows)),
        width_(static_cast<std::int64_t>(width)) {
    detail::call_note note("sharded_table '");
    note.add(*label_).add("'").add_number(rows).add(" x").add_number(width);
    note.add(" ").add(Spread::name).add_hidden(detail::note_part::types, typeid(sharded_table).hash_code());
    if constexpr (detail::has_digest<Spread>)
      note.add_hidden(detail::note_part::values, spread.digest());
    else if constexpr (!std::is_empty_v<Spread>)
      note.add_hidden(detail::note_part::values, spread);
    detail::collective call(comm_, note);
    call.guarded([&] {
      number_ = call.next_number();
      if (!std::in_range<std::int64_t>(rows) || !std::in_range<std::int64_t>(width) || rows_ < 0 ||
          width_ < 0)
        throw invalid_argument(detail::joined("ferry::sharded_table: the extents of '", *label_, "' are ",
                                              rows, " x ", width,
                                              ", neither may be negative or exceed 2^63 - 1"));
      spread_.check(comm_.size());
      const bool opens = !call.is_whole() && detail::opens_shards<Space, Spread>(comm_);
      if (opens) call.agree();  // all have ended earlier tables, so their memory can be had again
      shards_.resize(static_cast<std::size_t>(comm_.group()->local_count()));
      for (int r = call.first(); r < call.last(); ++r) {
        place_of(r) = tensor<T, Space>(*label_, comm_.device(r), rows_of(r), width_);
        place_of(r).accesses()->record_untracked_use();  // by kernels of other ranks
      }
      if constexpr (detail::shares_memory<Space>())
        if (opens) opened_ = detail::open_shards(call, comm_, place_of(call.rank()));
      if (!opens) call.agree();
    });
  }

  /// Refuses tables without a label or a communicator. Does not compile.
  /// @{
  template <std::integral Rows, std::integral Width>
  sharded_table(const communicator& comm, Rows, Width, Spread = {}) : comm_(comm) {
    detail::refuse_sharded_table<communicator, Rows>();
  }
  template <std::integral Rows, std::integral Width>
  sharded_table(const std::string&, Rows, Width, Spread = {})
      : comm_(detail::absent_argument<communicator>()) {
    detail::refuse_sharded_table<std::string, Rows>();
  }
  /// @}

  sharded_table(const sharded_table&) = delete;
  sharded_table& operator=(const sharded_table&) = delete;
  /// Takes the shards of `other`, which may then only be destroyed or assigned to.
  sharded_table(sharded_table&& table) noexcept = default;
  /// Frees its shards and takes those of `other`.
  sharded_table& operator=(sharded_table&& table) noexcept = default;
  ~sharded_table() = default;

  /// Rows of the whole table.
  [[nodiscard]] std::size_t rows() const noexcept { return static_cast<std::size_t>(rows_); }
  /// Elements of a row.
  [[nodiscard]] std::size_t width() const noexcept { return static_cast<std::size_t>(width_); }
  /// Extent i of the whole table, 1 for i >= 2.
  [[nodiscard]] std::size_t extent(std::size_t i) const noexcept {
    return i == 0 ? rows() : i == 1 ? width() : 1;
  }
  /// Number of extents.
  [[nodiscard]] static constexpr std::size_t rank() noexcept { return 2; }
  /// Elements of the whole table.
  [[nodiscard]] std::size_t size() const noexcept { return rows() * width(); }
  /// The label given to the constructor. The shards have the same one.
  [[nodiscard]] const std::string& label() const noexcept { return *label_; }
  /// The group of ranks.
  [[nodiscard]] const communicator& comm() const noexcept { return comm_; }
  /// How the rows are spread.
  [[nodiscard]] const Spread& sharding() const noexcept { return spread_; }

  /// The rank that has row `row`, for a row of [0, rows()).
  [[nodiscard]] int owner(std::int64_t row) const { return spread_.owner(row, rows_, comm_.size()); }
  /// The place of the row in the shard of its owner.
  [[nodiscard]] std::int64_t local_row(std::int64_t row) const {
    return spread_.local_row(row, rows_, comm_.size());
  }
  /// The row at a place of the shard of a rank.
  [[nodiscard]] std::int64_t global_row(int rank, std::int64_t local) const {
    return spread_.global_rows(rank, rows_, comm_.size())(local);
  }
  /// Rows of the shard of a rank.
  [[nodiscard]] std::int64_t rows_of(int rank) const { return spread_.rows_of(rank, rows_, comm_.size()); }

  /// The shard of a rank, which this object must hold: a tensor of rows_of(rank) x width(). Throws
  /// invalid_argument if it does not.
  /// @{
  [[nodiscard]] tensor<T, Space>& shard(int rank) { return held(rank); }
  [[nodiscard]] const tensor<T, Space>& shard(int rank) const {
    return const_cast<sharded_table*>(this)->held(rank);
  }
  /// @}
  /// Whether this object holds the shard of a rank.
  [[nodiscard]] bool holds(int rank) const {
    const auto& group = *comm_.group();
    const bool local = rank >= group.first_local() && rank < group.first_local() + group.local_count();
    return local && !shards_.empty() &&
           shards_[static_cast<std::size_t>(rank - group.first_local())].accesses() != nullptr;
  }
  /// A view for kernels of the shard of the rank that the calling thread acts for.
  /// @{
  [[nodiscard]] tensor_view<T, Space> local_view() { return shard(comm_.rank()).view(); }
  [[nodiscard]] tensor_view<const T, Space> local_view() const { return shard(comm_.rank()).view(); }
  /// @}

  /// Label, extents, sharding and the number of ranks, as text.
  [[nodiscard]] std::string describe() const {
    return detail::joined("'", label(), "' [", rows_, " x ", width_, "] in ", Space::name, ", ", Spread::name,
                          " over ", comm_.size(), " ranks");
  }
  /// Number of the table in its group, the same on all ranks; for the verbs.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  /// The label as tensors share it; for the verbs.
  [[nodiscard]] const std::shared_ptr<const std::string>& shared_label() const noexcept { return label_; }
  /// The owners of rows for kernels, if the host finds them; for the verbs.
  [[nodiscard]] detail::owner_lists& owners() const noexcept { return *owners_; }
  /// The shards of other processes, for path::peer.
  [[nodiscard]] const detail::opened_shards& opened() const noexcept { return opened_; }

 private:
  tensor<T, Space>& place_of(int rank) {
    return shards_[static_cast<std::size_t>(rank - comm_.group()->first_local())];
  }
  tensor<T, Space>& held(int rank) {
    if (!holds(rank))
      throw invalid_argument(detail::joined("ferry::sharded_table: this object of ", describe(),
                                            " does not hold the shard of rank ", rank));
    return place_of(rank);
  }

  std::shared_ptr<const std::string> label_;
  communicator comm_;
  Spread spread_;
  std::int64_t rows_;
  std::int64_t width_;
  std::uint64_t number_ = 0;
  std::vector<tensor<T, Space>> shards_;
  detail::opened_shards opened_;
  std::shared_ptr<detail::owner_lists> owners_ = std::make_shared<detail::owner_lists>();
};

namespace detail {

template <class T, class Space, class Spread>
inline constexpr bool is_table_object<sharded_table<T, Space, Spread>> = true;

/// True if T is a sharded table whose rows gather reads.
template <class T>
inline constexpr bool is_sharded_rows = false;
template <class T, class Space, class Spread>
inline constexpr bool is_sharded_rows<sharded_table<T, Space, Spread>> = true;
template <class T>
concept ShardedRows = is_sharded_rows<T>;

/// The whole table, of any kind, as checks and messages see it. It has no memory.
template <class Table>
array_ref<typename Table::value_type, typename Table::memory_space> whole_ref(const Table& table) {
  array_ref<typename Table::value_type, typename Table::memory_space> whole;
  whole.rank = 2;
  whole.extents[0] = static_cast<std::int64_t>(table.rows());
  whole.extents[1] = static_cast<std::int64_t>(table.width());
  whole.make_dense();
  whole.label = table.shared_label();
  return whole;
}

/// "<verb> of '<label>', table number <n>", and the types that must agree.
template <class... Agreed, class Table>
call_note note_of(const char* verb, const Table& table) {
  call_note note(verb);
  note.add(" of '").add(table.label()).add("', table number").add_number(table.number());
  (note.add_hidden(note_part::types, typeid(Agreed).hash_code()), ...);
  return note;
}

}  // namespace detail
}  // namespace ferry
