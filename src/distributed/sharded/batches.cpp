// SPDX-License-Identifier: Apache-2.0

#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/joined_tables.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/received_rows.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/error.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace ferry::detail {

namespace {

std::string number_in_words(std::uint64_t bits, bool is_signed) {
  return is_signed ? std::to_string(static_cast<std::int64_t>(bits)) : std::to_string(bits);
}

}  // namespace

bool all_findings::has_error() const {
  return sum(&batch_findings::bad_bags) + sum(&batch_findings::out_of_range) +
             sum(&batch_findings::duplicates) !=
         0;
}

std::exception_ptr all_findings::error() const {
  if (sum(&batch_findings::bad_bags) != 0) return offsets_error();
  if (sum(&batch_findings::out_of_range) != 0) return bounds_error();
  if (sum(&batch_findings::duplicates) != 0) return duplicates_error();
  return nullptr;
}

std::exception_ptr all_findings::offsets_error() const {
  const std::size_t r = first(&batch_findings::bad_bags);
  const batch_findings& findings = findings_[r];
  std::string owner = of_rank(r);
  if (!tables_.empty()) {
    const std::uint64_t place = findings.offsets.first_offset;
    const bool is_last = place == static_cast<std::uint64_t>(findings.bags) * tables_.size();
    owner += ", where " + bag_of_table(r, is_last ? place - 1 : place) + (is_last ? " ends" : " begins");
  }
  return std::make_exception_ptr(ferry::out_of_range(
      begin() + "the offsets of " + counted(sum(&batch_findings::bad_bags), "bag", "bags") + " for rows of " +
      rows_of_tables() + " are bad; the first is " +
      describe_offset(findings.offsets, findings.positions, owner)));
}

std::exception_ptr all_findings::bounds_error() const {
  const std::size_t r = first(&batch_findings::out_of_range);
  const batch_findings& findings = findings_[r];
  std::int64_t total = 0;
  for (const batch_findings& rank : findings_) total += rank.positions;
  const std::string index = number_in_words(findings.first_index, findings.signed_indices != 0);
  return std::make_exception_ptr(ferry::out_of_range(
      begin() + std::to_string(sum(&batch_findings::out_of_range)) + " of " + std::to_string(total) +
      " indices are outside of " + rows_of_tables() + "; the first is index " + index + " at position " +
      std::to_string(findings.first_position) +
      (tables_.empty() ? std::string() : ", in " + bag_of_table(r, findings.first_bag)) + of_rank(r)));
}

std::exception_ptr all_findings::duplicates_error() const {
  std::uint64_t lowest = ~std::uint64_t{0};
  for (const batch_findings& rank : findings_) lowest = rank.first_row < lowest ? rank.first_row : lowest;
  const std::uint64_t count = sum(&batch_findings::duplicates);
  return std::make_exception_ptr(invalid_argument(
      begin() + counted(count, "row", "rows") + " of " + table_.describe() + (count == 1 ? " is" : " are") +
      " named more than once, which duplicates::reject forbids; the lowest is row " +
      std::to_string(lowest)));
}

std::exception_ptr all_findings::nonfinite_error(std::int64_t width) const {
  const std::size_t r = first(&batch_findings::nonfinite);
  const auto wide = static_cast<std::uint64_t>(width < 1 ? 1 : width);
  const std::uint64_t place = findings_[r].first_value / nonfinite_value::kinds;
  return std::make_exception_ptr(invalid_argument(
      begin() + std::to_string(nonfinite()) + " of the elements for rows of " + rows_of_tables() +
      " are infinite or not a number, which nonfinite::reject forbids; the first is " +
      nonfinite_value::names[findings_[r].first_value % nonfinite_value::kinds] + " in column " +
      std::to_string(place % wide) + " at position " + std::to_string(place / wide) + of_rank(r)));
}

std::uint64_t all_findings::sum(count_of count) const {
  std::uint64_t total = 0;
  for (const batch_findings& rank : findings_) total += rank.*count;
  return total;
}

std::size_t all_findings::first(count_of count) const {
  for (std::size_t r = 0; r < findings_.size(); ++r)
    if (findings_[r].*count != 0) return r;
  return 0;
}

std::string all_findings::begin() const { return std::string("ferry::") + verb_ + ": "; }

std::string all_findings::of_rank(std::size_t r) const {
  return whole_ ? std::string() : " of rank " + std::to_string(r);
}

std::string all_findings::rows_of_tables() const {
  return tables_.empty() ? table_.describe() : std::to_string(tables_.size()) + " tables";
}

std::string all_findings::bag_of_table(std::size_t r, std::uint64_t bag) const {
  const auto bags = static_cast<std::uint64_t>(findings_[r].bags);
  return "bag " + std::to_string(bag % bags) + " of " +
         tables_[static_cast<std::size_t>(bag / bags)].describe();
}

ticket ticket_of_error(const std::exception_ptr& error) {
  if (error == nullptr) return {};
  ticket_state_handle state(new ticket_state);
  state->resources.push_back(std::make_shared<std::exception_ptr>(error));
  state->find_error = [](ticket_state& state_of_ticket) {
    return *static_cast<std::exception_ptr*>(state_of_ticket.resources.front().get());
  };
  return ticket(std::move(state));
}

namespace {

/// A rank's words to the others.
struct header {
  batch_findings findings;
  batch_offer offer;
};

using counts_type = std::vector<std::int64_t>;

counts_type counts_of(const item_groups& groups, std::size_t ranks) {
  counts_type counts(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto [first, last] = groups.group(static_cast<int>(r));
    counts[r] = last - first;
  }
  return counts;
}

/// The headers of all ranks. Each rank's counts tell what it has for this one, and before that.
void gather_headers(collective& call, const header& own_header, const counts_type& counts,
                    batch_headers& headers) {
  const std::size_t count_bytes = counts.size() * sizeof(std::int64_t);
  std::vector<std::byte> message(sizeof own_header + count_bytes);
  std::memcpy(message.data(), &own_header, sizeof own_header);
  if (count_bytes != 0) std::memcpy(message.data() + sizeof own_header, counts.data(), count_bytes);
  const auto messages = call.agree_on(std::span<const std::byte>(message));
  if (own_header.offer.is_made != 0) call.begin_reads();
  const auto rank = static_cast<std::size_t>(call.rank());
  headers.findings.clear();
  headers.offers.clear();
  if (count_bytes != 0) headers.in_begin.assign(1, 0);
  for (std::size_t r = 0; r < static_cast<std::size_t>(call.ranks()); ++r) {
    const std::byte* const arrived = messages.data() + r * message.size();
    header rank_header;
    std::memcpy(&rank_header, arrived, sizeof rank_header);
    headers.findings.push_back(rank_header.findings);
    headers.offers.push_back(rank_header.offer);
    if (count_bytes == 0) continue;
    counts_type rank_counts(counts.size());
    std::memcpy(rank_counts.data(), arrived + sizeof rank_header, count_bytes);
    headers.before.push_back(
        std::accumulate(rank_counts.begin(), rank_counts.begin() + call.rank(), std::int64_t{0}));
    headers.in_begin.push_back(headers.in_begin.back() + rank_counts[rank]);
  }
}

}  // namespace

std::vector<std::int64_t> in_begin_of(collective& call, const item_groups& groups) {
  if (call.is_whole()) return {};
  const counts_type counts = counts_of(groups, static_cast<std::size_t>(call.ranks()));
  counts_type begin(counts.size() + 1, 0);
  std::vector<outgoing_part> outgoing(counts.size());
  std::vector<incoming_part> incoming(counts.size());
  for (std::size_t r = 0; r < counts.size(); ++r) {
    outgoing[r] = {reinterpret_cast<const std::byte*>(&counts[r]), sizeof counts[r]};
    incoming[r] = {reinterpret_cast<std::byte*>(&begin[r + 1]), sizeof begin[r + 1]};
  }
  call.exchange(outgoing, incoming);
  for (std::size_t r = 0; r < counts.size(); ++r) begin[r + 1] += begin[r];
  return begin;
}

batch_headers exchange_headers(collective& call, const buckets& items, batch_findings scanned,
                               const batch_offer& offer) {
  scanned.out_of_range = items.report.out_of_range;
  scanned.first_position = items.report.first_position;
  scanned.first_index = items.report.first_index;
  scanned.first_bag = items.report.first_bag;
  scanned.positions = items.positions;
  scanned.signed_indices = items.signed_indices ? 1 : 0;
  batch_headers headers;
  if (call.is_whole()) {
    headers.findings.push_back(scanned);
    return headers;
  }
  if (call.ranks() > kernels::most_shards) {
    gather_headers(call, {scanned, offer}, {}, headers);
    headers.in_begin = in_begin_of(call, items);
    return headers;
  }
  gather_headers(call, {scanned, offer}, counts_of(items, static_cast<std::size_t>(call.ranks())), headers);
  return headers;
}

batch_headers exchange_offers(collective& call, batch_headers planned, const batch_findings& batch,
                              const batch_offer& offer) {
  if (call.is_whole())
    planned.findings.assign(1, batch);
  else
    gather_headers(call, {batch, offer}, {}, planned);
  return planned;
}

bool can_pull(const std::vector<batch_offer>& offers, bool (*reach)(int device, int memory)) {
  constexpr int most = 64;
  std::bitset<most> owners, memories;
  if (offers.size() > static_cast<std::size_t>(kernels::most_shards)) return false;
  for (const batch_offer& offer : offers) {
    if (offer.is_made == 0) return false;
    for (const int device : {offer.owner_device, offer.lists_device, offer.values_device})
      if (device >= most) return false;
    owners.set(static_cast<std::size_t>(offer.owner_device));
    for (const int device : {offer.lists_device, offer.values_device})
      if (device >= 0) memories.set(static_cast<std::size_t>(device));
  }
  for (std::size_t owner = 0; owner < most; ++owner) {
    if (!owners[owner]) continue;
    for (std::size_t memory = 0; memory < most; ++memory)
      if (memory != owner && memories[memory] && !reach(static_cast<int>(owner), static_cast<int>(memory)))
        return false;
  }
  return true;
}

offered_values values_for(const batch_headers& headers, std::size_t unit) {
  offered_values offered;
  for (std::size_t r = 0; r < headers.offers.size(); ++r) {
    if (headers.count(r) == 0) continue;
    const batch_offer& offer = headers.offers[r];
    offered.items += headers.count(r);
    if (offered.lowest == nullptr || offer.values < offered.lowest) offered.lowest = offer.values;
    offered.aligned = offered.aligned && reinterpret_cast<std::uintptr_t>(offer.values) % unit == 0 &&
                      offer.value_step % static_cast<std::int64_t>(unit) == 0;
  }
  return offered;
}

kernels::join_lists lists_for(const batch_headers& headers, const std::int64_t* joined_place) {
  kernels::join_lists join{};
  join.ranks = static_cast<int>(headers.offers.size());
  for (std::size_t r = 0; r < headers.offers.size(); ++r) {
    const batch_offer& offer = headers.offers[r];
    const std::int64_t before = offer.is_share != 0 ? 0 : headers.before[r];
    const auto list = [before](const auto* first) { return first == nullptr ? nullptr : first + before; };
    join.step[r] = 1;
    join.begin[r] = headers.in_begin[r];
    join.place[r] = joined_place != nullptr ? joined_place + headers.in_begin[r] : list(offer.place);
    if (joined_place != nullptr) continue;
    join.local[r] = list(offer.rows);
    join.factor[r] = list(offer.factors);
  }
  return join;
}

void take_values(kernels::join_lists& join, const batch_headers& headers, const std::byte* lowest,
                 std::size_t unit) {
  for (std::size_t r = 0; r < headers.offers.size(); ++r) {
    const batch_offer& offer = headers.offers[r];
    // The difference of addresses of different arrays, as numbers.
    const auto shift =
        reinterpret_cast<std::uintptr_t>(offer.values) - reinterpret_cast<std::uintptr_t>(lowest);
    join.values[r] = static_cast<std::int64_t>(shift / unit);
    join.step[r] = offer.value_step / static_cast<std::int64_t>(unit);
  }
}

void add_numbers(call_note& note, const std::vector<std::uint64_t>& numbers) {
  const auto step = [&](std::size_t i) { return numbers[i + 1] - numbers[i]; };
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;  // of a series that ascends by equal steps
    while (last + 1 < numbers.size() && numbers[last + 1] > numbers[last] && step(last) == step(i)) ++last;
    if (last < i + 2) last = i;
    if (i != 0) note.add(",");
    note.add_number(numbers[i]);
    if (last != i) note.add(" to").add_number(numbers[last]);
    if (last != i && step(i) != 1) note.add(" by").add_number(step(i));
    i = last + 1;
  }
}

}  // namespace ferry::detail
