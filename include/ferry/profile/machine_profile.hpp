#pragma once

#include <ferry/tensor/detail/finite.hpp>

#include <array>
#include <cstddef>
#include <string_view>

namespace ferry {

/// What path::automatic knows of the machine: durations and rates, each with its unit in the name (GB = 1e9 bytes).
/// The values here are readings of one H200 behind PCIe 5 x16 with 16 cores, whatever machine this is; a host backend's
/// defaults are ferry::default_profile's. ferry::calibrate takes the readings of the machine that it runs on.
struct machine_profile {
  // A call and its wait(), without the rows.
  double call_us = 11;              ///< path::direct
  double ordered_call_us = 5;       ///< path::ordered, beyond call_us and the sorting
  double staged_call_us = 27;       ///< path::staged: host threads start, a ring is taken
  double cooperative_call_us = 80;  ///< path::cooperative, beyond the sorting
  double sort_us = 11;              ///< sorting a short list of indices
  double sort_ns_per_index = 0.12;

  // Copies between page-locked memory and the device by DMA.
  double dma_to_device_gb_per_s = 55.4;
  double dma_from_device_gb_per_s = 55.2;

  // Kernels on rows in host memory, where the device has the pages translated.
  double link_row_ns = 1.4;  ///< a row has this cost however short it is
  double link_read_gb_per_s = 51;
  double link_write_gb_per_s = 52.5;

  // Random rows of 128 bytes in registered memory, which a device maps with small pages. Beyond the reach of its
  // translations a row costs miss * (1 - reach / table) + walk * log2(table / reach) more.
  double pinned_reach_gib = 0.7;
  double pinned_miss_ns = 17;
  double pinned_walk_ns = 2.5;
  double pinned_group_ns = 25;  ///< for the first of the sorted rows in each 64 KiB of table

  // Random rows in mapped_space, which a device maps with large pages. Short ones cost more by `mapped_growth` with
  // each doubling of the table beyond the reach.
  double mapped_row_ns = 1.45;
  double mapped_read_gb_per_s = 51;
  double mapped_write_gb_per_s = 47;
  double mapped_reach_gib = 0.125;
  double mapped_growth = 0.13;

  // Random rows in device memory: bytes read plus bytes written, and what a row costs beyond the reach.
  double device_row_ns = 0.045;
  double device_gb_per_s = 3900;
  double device_reach_gib = 64;
  double device_miss_ns = 0.15;

  // The host's threads on random rows.
  double host_read_row_ns = 1.8;
  double host_read_gb_per_s = 200;
  double host_write_row_ns = 2.6;
  double host_write_gb_per_s = 38;
  double host_growth = 1.8;  ///< a row alone in 64 KiB, far beyond 4 GiB, costs as many short rows more

  double cooperative_row_ns = 1.25;     ///< a row has this cost however short it is, whoever moves it
  double cooperative_link_share = 0.9;  ///< of the DMA rate that both sides together reach

  /// Bit of each group of numbers that was measured on this machine; see detail::reading.
  unsigned measured = 0;

  friend bool operator==(const machine_profile&, const machine_profile&) = default;
};

namespace detail {

/// Numbers that are measured together, or not at all.
enum class reading : unsigned {
  calls,
  sort,
  dma,
  link,
  pinned,
  ordered,
  mapped,
  device,
  host_read,
  host_write,
  staged,
  cooperative
};

inline constexpr std::array<std::string_view, 12> reading_names = {
    "calls",  "sort",   "dma",       "link",       "pinned", "ordered",
    "mapped", "device", "host_read", "host_write", "staged", "cooperative"};

/// The defaults of a host backend: what the threads of that machine's host did on random rows, each for itself. More than
/// its 16 threads are taken for no faster, for they share the memory.
constexpr machine_profile host_defaults(int threads) {
  constexpr double most = 16.0;
  const double share = (threads < 1 ? 1.0 : threads > 16 ? most : static_cast<double>(threads)) / most;
  machine_profile made;
  made.call_us = 2.0;
  made.host_read_row_ns /= share;
  made.host_read_gb_per_s *= share;
  made.host_write_row_ns /= share;
  made.host_write_gb_per_s *= share;
  return made;
}

constexpr unsigned bit_of(reading one) { return 1u << static_cast<unsigned>(one); }

// Not spelt out within the struct: nvcc would add parentheses there, which g++ then warns of.
using number_of_profile = double machine_profile::*;

/// Every number of a profile by its name, for files and tables.
struct profile_field {
  std::string_view name;
  number_of_profile member;
  bool may_be_zero = false;
};

/// Finite, and positive where it divides.
constexpr bool is_usable(const profile_field& field, double value) {
  return is_finite(value) && (value > 0.0 || (value == 0.0 && field.may_be_zero));
}

inline constexpr profile_field profile_fields[] = {
    {"call_us", &machine_profile::call_us, true},
    {"ordered_call_us", &machine_profile::ordered_call_us, true},
    {"staged_call_us", &machine_profile::staged_call_us, true},
    {"cooperative_call_us", &machine_profile::cooperative_call_us, true},
    {"sort_us", &machine_profile::sort_us, true},
    {"sort_ns_per_index", &machine_profile::sort_ns_per_index, true},
    {"dma_to_device_gb_per_s", &machine_profile::dma_to_device_gb_per_s},
    {"dma_from_device_gb_per_s", &machine_profile::dma_from_device_gb_per_s},
    {"link_row_ns", &machine_profile::link_row_ns, true},
    {"link_read_gb_per_s", &machine_profile::link_read_gb_per_s},
    {"link_write_gb_per_s", &machine_profile::link_write_gb_per_s},
    {"pinned_reach_gib", &machine_profile::pinned_reach_gib},
    {"pinned_miss_ns", &machine_profile::pinned_miss_ns, true},
    {"pinned_walk_ns", &machine_profile::pinned_walk_ns, true},
    {"pinned_group_ns", &machine_profile::pinned_group_ns, true},
    {"mapped_row_ns", &machine_profile::mapped_row_ns, true},
    {"mapped_read_gb_per_s", &machine_profile::mapped_read_gb_per_s},
    {"mapped_write_gb_per_s", &machine_profile::mapped_write_gb_per_s},
    {"mapped_reach_gib", &machine_profile::mapped_reach_gib},
    {"mapped_growth", &machine_profile::mapped_growth, true},
    {"device_row_ns", &machine_profile::device_row_ns, true},
    {"device_gb_per_s", &machine_profile::device_gb_per_s},
    {"device_reach_gib", &machine_profile::device_reach_gib},
    {"device_miss_ns", &machine_profile::device_miss_ns, true},
    {"host_read_row_ns", &machine_profile::host_read_row_ns, true},
    {"host_read_gb_per_s", &machine_profile::host_read_gb_per_s},
    {"host_write_row_ns", &machine_profile::host_write_row_ns, true},
    {"host_write_gb_per_s", &machine_profile::host_write_gb_per_s},
    {"host_growth", &machine_profile::host_growth, true},
    {"cooperative_row_ns", &machine_profile::cooperative_row_ns, true},
    {"cooperative_link_share", &machine_profile::cooperative_link_share},
};
// Eight bytes each and the mask: whoever adds a number above adds its name here.
static_assert(sizeof(machine_profile) ==
              (sizeof(profile_fields) / sizeof(profile_fields[0]) + 1) * sizeof(double));

}  // namespace detail
}  // namespace ferry
