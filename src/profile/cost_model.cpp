// SPDX-License-Identifier: Apache-2.0
#include <ferry/profile/detail/cost_model.hpp>

#include <ferry/memory/spaces.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace ferry::detail {

namespace {

/// The time of one row, and its limit.
struct row_cost {
  double ns = 0;
  bottleneck limit = bottleneck::start;
  void at_least(double other, bottleneck why) {
    if (other <= ns) return;
    ns = other;
    limit = why;
  }
};

class cost_model {
 public:
  cost_model(const machine_profile& profile, const move_facts& facts)
      : p_(profile),
        f_(facts),
        bytes_(static_cast<double>(std::max<std::int64_t>(facts.row_bytes, 0))),
        rows_(static_cast<double>(std::max<std::int64_t>(facts.positions, 0))),
        gib_(static_cast<double>(std::max<std::int64_t>(facts.table_bytes, 0)) / 0x1p30),
        reads_(facts.what != verb::scatter),
        writes_(facts.what != verb::gather && facts.what != verb::copy) {}

  [[nodiscard]] prediction predict(path_kind by) const {
    switch (by) {
      case path_kind::direct:
        return sum(p_.call_us, f_.on_host ? host_rows() : direct_rows());
      case path_kind::ordered:
        return sum(p_.call_us + p_.ordered_call_us + sorting_us(), ordered_rows());
      case path_kind::staged:
        return staged();
      default:
        return cooperative();
    }
  }

 private:
  enum class order { random, sorted, few_teams };

  static double doublings(double ratio) { return ratio > 1.0 ? std::log2(ratio) : 0.0; }
  static bool on_device(std::string_view space) { return space == device_space::name; }

  [[nodiscard]] prediction sum(double start_us, row_cost row) const {
    const double start = start_us * 1e-6;
    const double moving = rows_ * row.ns * 1e-9;
    return {start + moving, start, moving > start ? row.limit : bottleneck::start};
  }
  [[nodiscard]] double sorting_us() const {
    return f_.planned ? 0.0 : p_.sort_us + p_.sort_ns_per_index * rows_ * 1e-3;
  }

  /// The directions of the link overlap in part: reading and writing a row takes 0.8 of the sum of the two
  /// times.
  [[nodiscard]] double link_ns(double read_gb_per_s, double write_gb_per_s) const {
    if (!writes_) return bytes_ / read_gb_per_s;
    if (!reads_) return bytes_ / write_gb_per_s;
    return 0.8 * bytes_ * (1.0 / read_gb_per_s + 1.0 / write_gb_per_s);
  }

  /// The additional time of a row for address translation of registered memory. Random rows: misses grow with
  /// the table, and by 5 % with each doubling of the row above 128 bytes. Sorted rows share the translation
  /// of 16 adjacent pages (64 KiB), so the number of touched groups counts: groups * (1 - e^(-rows /
  /// groups)). Sorted access extends the reach 1.5 times. With all teams active, instead of a few on adjacent
  /// rows, it takes 1.5 times as long.
  [[nodiscard]] double translation_ns(order access) const {
    if (gib_ <= p_.pinned_reach_gib) return 0.0;
    const double beyond = 1.0 - p_.pinned_reach_gib / gib_;
    const double random =
        p_.pinned_miss_ns * beyond + p_.pinned_walk_ns * doublings(gib_ / p_.pinned_reach_gib);
    if (access == order::random || rows_ < 1.0) return random;
    const double few = touched(gib_ * 0x1p30 / std::max(0x1p16, bytes_)) * p_.pinned_group_ns *
                       std::max(0.0, 1.0 - 1.5 * p_.pinned_reach_gib / gib_);
    return access == order::few_teams ? few : std::min(random, 1.5 * few);
  }

  /// The additional time of a row for address translation of mapped memory. Sorted rows share the translation
  /// of a large page (2 MiB), which takes four times as long, because few are in flight at a time.
  [[nodiscard]] double mapped_look_up_ns(order access) const {
    const double random = p_.mapped_row_ns * p_.mapped_growth * doublings(gib_ / p_.mapped_reach_gib);
    if (access == order::random || rows_ < 1.0) return random;
    return 4.0 * random * touched(gib_ * 0x1p30 / std::max(0x1p21, bytes_));
  }

  /// The expected number of touched parts per row, for a table of `parts` equal parts.
  [[nodiscard]] double touched(double parts) const {
    parts = std::max(1.0, parts);
    const double rows = std::max(1.0, rows_);
    return parts * -std::expm1(-rows / parts) / rows;
  }

  /// Device kernels on rows of a table in host memory.
  [[nodiscard]] row_cost over_link(order access) const {
    const double accesses = reads_ && writes_ ? 2.0 : 1.0;
    row_cost made;
    if (f_.table_space != pinned_space::name) {
      made.at_least(accesses * (p_.mapped_row_ns + mapped_look_up_ns(access)), bottleneck::link_rows);
      // Long rows become slower only in large tables, and when they are written.
      const double slowed = 1.0 + 0.06 * doublings(gib_ / 16.0);
      made.at_least(link_ns(p_.mapped_read_gb_per_s, p_.mapped_write_gb_per_s / slowed),
                    bottleneck::link_bytes);
      return made;
    }
    const double request = accesses * p_.link_row_ns;
    const double look_up = translation_ns(access);
    made.at_least(request, bottleneck::link_rows);
    if (access == order::few_teams) {
      made.at_least(look_up, bottleneck::translation);
    } else if (look_up > 0.0) {
      const double shape = std::clamp(1.0 + 0.05 * std::log2(std::max(bytes_, 1.0) / 128.0), 0.8, 1.3);
      made.at_least((request + look_up) * shape, bottleneck::translation);
    }
    made.at_least(link_ns(p_.link_read_gb_per_s, p_.link_write_gb_per_s), bottleneck::link_bytes);
    return made;
  }

  /// Device kernels on rows of a table in device memory; `more` are the bytes of the batch there.
  [[nodiscard]] row_cost inside_device(order access, double more) const {
    const double accesses = reads_ && writes_ ? 2.0 : 1.0;
    double row = p_.device_row_ns * accesses;
    const double traffic = (bytes_ * accesses + more) / p_.device_gb_per_s;
    if (access == order::random && gib_ > p_.device_reach_gib)
      row = std::max(row, traffic * (bytes_ < 256.0 ? 1.0 : 0.0)) +
            p_.device_miss_ns * (1.0 - p_.device_reach_gib / gib_);
    row_cost made;
    made.at_least(row, bottleneck::device_memory);
    made.at_least(traffic, bottleneck::device_memory);
    return made;
  }

  [[nodiscard]] row_cost moved(order access) const {
    const bool batch_there = on_device(f_.batch_space);
    row_cost made =
        on_device(f_.table_space) ? inside_device(access, batch_there ? bytes_ : 0.0) : over_link(access);
    if (!batch_there) {
      const bool batch_is_read = f_.what != verb::gather && f_.what != verb::copy;
      made.at_least(bytes_ / (batch_is_read ? p_.link_read_gb_per_s : p_.link_write_gb_per_s),
                    bottleneck::link_bytes);
    } else if (!on_device(f_.table_space)) {
      made.at_least(bytes_ / p_.device_gb_per_s, bottleneck::device_memory);
    }
    return made;
  }

  [[nodiscard]] row_cost direct_rows() const {
    // With a plan, verbs that write process rows in the order of the table.
    if (f_.what != verb::copy) return moved(f_.planned && writes_ ? order::sorted : order::random);
    row_cost made;
    const bool from_device = on_device(f_.table_space);
    const bool to_device = on_device(f_.batch_space);
    if (from_device && to_device) {
      made.at_least(2.0 * bytes_ / p_.device_gb_per_s, bottleneck::device_memory);
    } else if (f_.table_space == mapped_space::name || f_.batch_space == mapped_space::name) {
      if (!from_device) made.at_least(bytes_ / p_.mapped_read_gb_per_s, bottleneck::link_bytes);
      if (!to_device) made.at_least(bytes_ / p_.mapped_write_gb_per_s, bottleneck::link_bytes);
    } else {
      if (!from_device) made.at_least(bytes_ / p_.dma_to_device_gb_per_s, bottleneck::link_bytes);
      if (!to_device) made.at_least(bytes_ / p_.dma_from_device_gb_per_s, bottleneck::link_bytes);
    }
    return made;
  }

  [[nodiscard]] row_cost ordered_rows() const { return moved(order::few_teams); }

  /// Host threads on rows. Reading and writing a row takes 1.5 times as long as writing it. In tables of
  /// gigabytes, a row alone in 64 KiB takes `host_growth` rows longer, because the processor must translate
  /// its page.
  [[nodiscard]] row_cost host_rows() const {
    const double looked_up =
        touched(gib_ * 0x1p30 / std::max(0x1p16, bytes_)) * std::max(0.0, 1.0 - 4.0 / gib_);
    const double read = p_.host_read_row_ns + bytes_ / p_.host_read_gb_per_s;
    const double write = p_.host_write_row_ns + bytes_ / p_.host_write_gb_per_s;
    if (f_.what == verb::copy) return {bytes_ / p_.host_read_gb_per_s, bottleneck::host};
    const double row = writes_ ? (reads_ ? 1.5 * write : write) : read;
    const double brief = writes_ ? p_.host_write_row_ns : p_.host_read_row_ns;
    return {row + p_.host_growth * brief * looked_up, bottleneck::host};
  }

  /// The pieces in which rows pass a ring: three per worker, within a least size and the size of a slot.
  struct pieces {
    static constexpr double workers = 16, least = 0x1p17, most = 0x1p18, rows_enough = 1024;
    double count;
    pieces(double rows, double row_bytes) {
      const double enough = std::min(least / std::max(row_bytes, 1.0), rows_enough);
      const double each =
          std::max(1.0, std::min(std::max(rows / (3 * workers), enough), most / std::max(row_bytes, 1.0)));
      count = std::max(1.0, std::ceil(rows / each));
    }
    [[nodiscard]] double rounds() const { return std::ceil(count / workers); }
    /// The time to wake worker threads.
    [[nodiscard]] double start_us() const { return count > 1.0 ? 20.0 : 0.0; }
  };

  /// Host threads and the device work at the same time, on different slots, so the slower one counts. Each
  /// host thread takes a piece per round.
  [[nodiscard]] prediction staged() const {
    const bool table_there = on_device(f_.table_space);
    const bool batch_there = on_device(f_.batch_space);
    row_cost host = host_rows();
    if (!table_there && !batch_there) return sum(p_.staged_call_us, host);
    if (table_there) host.ns = bytes_ / p_.host_read_gb_per_s;  // the rows of the batch are adjacent
    const bool to_device = table_there ? f_.what != verb::gather && f_.what != verb::copy : !writes_;
    const pieces ring(rows_, bytes_);
    host.ns *= ring.rounds() * pieces::workers / ring.count;
    const double wire = bytes_ / (to_device ? p_.link_read_gb_per_s : p_.link_write_gb_per_s);
    row_cost row{slower_of(host.ns, wire), host.ns > wire ? bottleneck::host : bottleneck::link_bytes};
    if (f_.what != verb::copy) row.ns += 8.0 / p_.dma_from_device_gb_per_s;  // the indices go to the host
    return sum(p_.staged_call_us + ring.start_us(), row);
  }

  /// The time of two sides that wait for each other at times: near the larger one; 1.25 times where they are
  /// equal.
  static double slower_of(double one, double other) {
    return std::cbrt(one * one * one + other * other * other);
  }

  /// Both sides take rows from the sorted list until they meet. The host has fewer workers there, and the
  /// device reads host memory as well, so a host row takes a third longer.
  [[nodiscard]] prediction cooperative() const {
    const row_cost device = ordered_rows();
    const double wire = bytes_ / (writes_ ? p_.dma_from_device_gb_per_s : p_.dma_to_device_gb_per_s);
    const double host = std::max(4.0 / 3.0 * host_rows().ns, wire);
    row_cost both;
    both.at_least(1.0 / (1.0 / std::max(device.ns, 1e-6) + 1.0 / std::max(host, 1e-6)), bottleneck::host);
    both.at_least(p_.cooperative_row_ns, bottleneck::host);
    both.at_least(wire / p_.cooperative_link_share, bottleneck::link_bytes);
    return sum(p_.cooperative_call_us + pieces(rows_, bytes_).start_us() + sorting_us(), both);
  }

  const machine_profile& p_;
  const move_facts& f_;
  double bytes_, rows_, gib_;
  bool reads_, writes_;
};

}  // namespace

prediction predict(const machine_profile& profile, const move_facts& facts, path_kind by) {
  return cost_model(profile, facts).predict(by);
}

path_kind choose_route(const machine_profile& profile, const move_facts& facts, path_set candidates) {
  constexpr double clearly = 0.97;
  const cost_model model(profile, facts);
  path_kind best = path_kind::direct;
  double least = -1.0;
  for (const path_kind one : every_path_kind) {
    if (!candidates.contains(one)) continue;
    const double seconds = model.predict(one).seconds;
    const bool blocks = one == path_kind::staged || one == path_kind::cooperative;
    if (least >= 0.0 && !(seconds < least * (blocks ? clearly : 1.0))) continue;
    best = one;
    least = seconds;
  }
  return best;
}

}  // namespace ferry::detail
