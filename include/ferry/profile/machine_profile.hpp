// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/tensor/detail/finite.hpp>

#include <array>
#include <cstddef>
#include <string_view>

namespace ferry {

/// What path::automatic knows of the machine: durations and rates, with the unit in each name (1 GB = 1e9
/// bytes). The defaults are readings of one H200 on PCIe 5 x16 with 16 cores. For a host backend,
/// ferry::default_profile gives the defaults. ferry::calibrate measures the machine that it runs on.
struct machine_profile {
  /// @name A call and its wait(), without the rows
  /// @{
  double call_us = 11;              ///< path::direct
  double ordered_call_us = 5;       ///< path::ordered, in addition to call_us and the sort
  double staged_call_us = 27;       ///< path::staged: starting host threads and taking a ring
  double cooperative_call_us = 80;  ///< path::cooperative, in addition to the sort
  double sort_us = 11;              ///< sorting a short list of indices
  double sort_ns_per_index = 0.12;  ///< sorting, for each index of a long list
  /// @}

  /// @name Copies between page-locked memory and the device by DMA
  /// @{
  double dma_to_device_gb_per_s = 55.4;    ///< to the device
  double dma_from_device_gb_per_s = 55.2;  ///< from the device
  /// @}

  /// @name Kernels on rows in host memory whose pages the device has translated
  /// @{
  double link_row_ns = 1.4;           ///< least cost of a row, however short it is
  double link_read_gb_per_s = 51;     ///< reading rows
  double link_write_gb_per_s = 52.5;  ///< writing rows
  /// @}

  /// @name Random rows of 128 bytes in registered memory, which the device maps with small pages
  /// Above the reach of its translations, a row of a table of `table` GiB costs in addition
  /// miss * (1 - reach / table) + walk * log2(table / reach).
  /// @{
  double pinned_reach_gib = 0.7;  ///< reach: largest table whose pages stay translated
  double pinned_miss_ns = 17;     ///< miss
  double pinned_walk_ns = 2.5;    ///< walk
  double pinned_group_ns = 25;    ///< for the first of the sorted rows in each 64 KiB of the table
  /// @}

  /// @name Random rows in mapped_space, which the device maps with large pages
  /// @{
  double mapped_row_ns = 1.45;        ///< least cost of a row
  double mapped_read_gb_per_s = 51;   ///< reading rows
  double mapped_write_gb_per_s = 47;  ///< writing rows
  double mapped_reach_gib = 0.125;    ///< table size above which short rows cost more
  double mapped_growth = 0.13;        ///< additional mapped_row_ns of a row per doubling above the reach
  /// @}

  /// @name Random rows in device memory
  /// @{
  double device_row_ns = 0.045;   ///< least cost of a row
  double device_gb_per_s = 3900;  ///< bytes read plus bytes written
  double device_reach_gib = 64;   ///< largest table whose pages stay translated
  double device_miss_ns = 0.15;   ///< additional cost of a row above the reach
  /// @}

  /// @name Random rows by the threads of the host
  /// @{
  double host_read_row_ns = 1.8;    ///< fixed cost of a row that is read
  double host_read_gb_per_s = 200;  ///< reading rows
  double host_write_row_ns = 2.6;   ///< fixed cost of a row that is written
  double host_write_gb_per_s = 38;  ///< writing rows
  double host_growth = 1.8;         ///< extra cost of a row alone in 64 KiB far above 4 GiB, in short rows
  /// @}

  double cooperative_row_ns = 1.25;     ///< path::cooperative: least cost of a row
  double cooperative_link_share = 0.9;  ///< path::cooperative: part of the DMA rate that both sides reach

  /// One bit per group of numbers that was measured on this machine; 0 for the defaults.
  unsigned measured = 0;

  friend bool operator==(const machine_profile&, const machine_profile&) = default;
};

namespace detail {

/// Groups of numbers that are measured together.
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

/// The defaults of a host backend, from the host threads of the H200 machine, scaled by the number of
/// threads. More than 16 threads are taken as 16, because they share the memory.
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

// An alias: inside of the struct nvcc would add parentheses, and g++ would warn of them.
using number_of_profile = double machine_profile::*;

/// A number of a profile by name, for files and tables.
struct profile_field {
  std::string_view name;
  number_of_profile member;
  bool may_be_zero = false;
};

/// Whether a value is finite, and positive unless it may be zero.
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
// Eight bytes per number and for the mask. A new number needs its name here.
static_assert(sizeof(machine_profile) ==
              (sizeof(profile_fields) / sizeof(profile_fields[0]) + 1) * sizeof(double));

}  // namespace detail
}  // namespace ferry
