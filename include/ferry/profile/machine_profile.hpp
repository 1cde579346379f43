// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/tensor/detail/numeric.hpp>

#include <array>
#include <cstddef>
#include <string_view>

namespace ferry {

/// The numbers of the machine that path::automatic compares: durations and rates, with the unit in each name
/// (1 GB = 1e9 bytes). The defaults are readings of one H200 on PCIe 5 x16 with 16 cores. For a host backend,
/// ferry::default_profile gives the defaults. ferry::calibrate measures the machine that it runs on.
struct machine_profile {
  /// @name A call and its wait(), without the rows
  /// @{
  double call_us = 10.4;            ///< path::direct
  double ordered_call_us = 4.7;     ///< path::ordered, in addition to call_us and the sort
  double staged_call_us = 35.8;     ///< path::staged: starting host threads and taking a ring
  double cooperative_call_us = 40;  ///< path::cooperative, in addition to the sort
  double sort_us = 9.6;             ///< sorting a short list of indices
  double sort_ns_per_index = 0.12;  ///< sorting, for each index of a long list
  /// @}

  /// @name Copies between page-locked memory and the device by DMA
  /// @{
  double dma_to_device_gb_per_s = 55.6;    ///< to the device
  double dma_from_device_gb_per_s = 55.6;  ///< from the device
  /// @}

  /// @name Kernels on rows in host memory whose pages the device has translated
  /// @{
  double link_row_ns = 1.3;           ///< least time of a row, however short it is
  double link_read_gb_per_s = 51.3;   ///< reading rows
  double link_write_gb_per_s = 52.8;  ///< writing rows
  /// @}

  /// @name Rows in registered memory, which the device maps with small pages
  /// Above the reach of the device's translations, a row of a table of `table` GiB costs in addition the part
  /// 1 - reach / table of these numbers.
  /// @{
  double pinned_reach_gib = 0.62;  ///< reach: largest table whose pages stay translated
  double pinned_miss_ns = 28;      ///< for a random row
  double pinned_group_ns = 28;     ///< for the first of the sorted rows in each 64 KiB of the table
  /// @}

  /// @name Random rows in mapped_space, which the device maps with large pages
  /// @{
  double mapped_row_ns = 1.3;           ///< least time of a row
  double mapped_read_gb_per_s = 51.3;   ///< reading rows
  double mapped_write_gb_per_s = 52.8;  ///< writing rows
  double mapped_growth = 0.16;          ///< additional mapped_row_ns of a row per doubling above 128 MiB
  /// @}

  /// @name Random rows in device memory
  /// @{
  double device_row_ns = 0.042;   ///< least time of a row
  double device_gb_per_s = 3500;  ///< bytes read plus bytes written
  double device_reach_gib = 64;   ///< largest table whose pages stay translated
  double device_miss_ns = 0.15;   ///< additional time of a row above the reach
  /// @}

  /// @name Random rows by the threads of the host: path::staged, with the transfer; verbs of a host backend
  /// @{
  double host_read_row_ns = 2;        ///< least time of a row that is read
  double host_read_gb_per_s = 48.7;   ///< reading rows
  double host_write_row_ns = 6.8;     ///< least time of a row that is written
  double host_write_gb_per_s = 29.5;  ///< writing rows
  /// @}

  double cooperative_gb_per_s = 49.8;  ///< path::cooperative: rows by both sides

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

/// The size of the smallest table of mapped memory that calibrate measures; mapped_growth counts from it.
inline constexpr double mapped_reach_gib = 0.125;
/// The 16 adjacent small pages whose look-up sorted rows share (measured on an H200).
inline constexpr double page_group_bytes = 0x1p16;

/// The defaults of a host backend, from the host threads of the H200 machine, scaled by the number of
/// threads. More than 16 threads are taken as 16, because they share the memory.
constexpr machine_profile host_defaults(int threads) {
  constexpr double most = 16.0;
  const double share = (threads < 1 ? 1.0 : threads > 16 ? most : static_cast<double>(threads)) / most;
  machine_profile profile;
  profile.call_us = 2.0;
  profile.host_read_row_ns = 1.8 / share;
  profile.host_read_gb_per_s = 200 * share;
  profile.host_write_row_ns = 2.6 / share;
  profile.host_write_gb_per_s = 38 * share;
  return profile;
}

constexpr unsigned bit_of(reading group) { return 1u << static_cast<unsigned>(group); }

// An alias: inside of the struct nvcc would add parentheses, and g++ would warn of them.
using number_of_profile = double machine_profile::*;

/// A number of a profile by name, for files and tables.
struct profile_field {
  std::string_view name;
  number_of_profile member;
  bool may_be_zero = false;
};

/// True if a value is finite, and positive unless it may be zero.
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
    {"pinned_group_ns", &machine_profile::pinned_group_ns, true},
    {"mapped_row_ns", &machine_profile::mapped_row_ns, true},
    {"mapped_read_gb_per_s", &machine_profile::mapped_read_gb_per_s},
    {"mapped_write_gb_per_s", &machine_profile::mapped_write_gb_per_s},
    {"mapped_growth", &machine_profile::mapped_growth, true},
    {"device_row_ns", &machine_profile::device_row_ns, true},
    {"device_gb_per_s", &machine_profile::device_gb_per_s},
    {"device_reach_gib", &machine_profile::device_reach_gib},
    {"device_miss_ns", &machine_profile::device_miss_ns, true},
    {"host_read_row_ns", &machine_profile::host_read_row_ns, true},
    {"host_read_gb_per_s", &machine_profile::host_read_gb_per_s},
    {"host_write_row_ns", &machine_profile::host_write_row_ns, true},
    {"host_write_gb_per_s", &machine_profile::host_write_gb_per_s},
    {"cooperative_gb_per_s", &machine_profile::cooperative_gb_per_s},
};
// Eight bytes per number and for the mask. A new number needs its name here.
static_assert(sizeof(machine_profile) ==
              (sizeof(profile_fields) / sizeof(profile_fields[0]) + 1) * sizeof(double));

}  // namespace detail
}  // namespace ferry
