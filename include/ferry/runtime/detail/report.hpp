// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::detail {

/// Counts of kernels::long_bag_list; 0 between verbs.
struct long_bag_counts {
  std::uint64_t listed = 0;    ///< bags and their pieces
  unsigned int completed = 0;  ///< of their tiles
};

/// The fault of an offset of bags.
enum class offset_fault : std::uint32_t {
  negative,
  beyond,     ///< of the positions
  decreases,  ///< is less than the offset before it
  late,       ///< the first bag of a step begins behind position 0
  early       ///< the last bag of a step ends before the last position
};

/// Errors in a batch that kernels found. Lies in the memory of the kernel; clean between uses.
struct index_report {
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  std::uint64_t out_of_range = 0;       ///< number of indices outside of the table
  std::uint64_t first_position = none;  ///< the lowest position of such an index
  std::uint64_t first_index = 0;        ///< its bits, sign-extended
  std::uint64_t duplicates = 0;         ///< number of rows with several positions
  std::uint64_t first_row = none;       ///< the lowest such row
  std::uint64_t overflows = 0;          ///< groups of a cache with more different rows than slots
  std::uint64_t first_group = none;     ///< the lowest such group
  std::uint64_t nonfinite = 0;          ///< number of values that are infinite or not a number
  std::uint64_t first_value = none;  ///< the lowest index of such a value (row-major) times 4, plus its kind
  std::uint64_t bad_bags = 0;  ///< number of bags whose offsets give no positions; counted above as well
  std::uint64_t first_offset = none;            ///< the lowest index of such an offset
  std::uint64_t first_offset_number = 0;        ///< its bits, sign-extended
  std::uint64_t offset_before = 0;              ///< the offset before it, if it is less
  std::uint64_t first_bag = 0;                  ///< of a list of tables: the bag of first_position
  unsigned int unsigned_offsets = 0;            ///< true if first_offset_number is of an unsigned type
  offset_fault fault = offset_fault::negative;  ///< of that offset
  unsigned int lock = 0;
  unsigned int arrived = 0;  ///< blocks of the kernel that sorts a plan; 0 between kernels
  long_bag_counts long_bags;
};

/// The kind of a value that is not finite, in the two lowest bits of index_report::first_value.
struct nonfinite_value {
  static constexpr std::uint64_t not_a_number = 0, infinity = 1, negative_infinity = 2, kinds = 4;
  static constexpr const char* names[] = {"nan", "inf", "-inf"};
};

/// Writes a report from kernels. `raised` is a word in host memory, so the usual case without errors needs no
/// transfer.
struct report_writer {
  index_report* findings = nullptr;
  unsigned int* raised = nullptr;

  /// For the host: true if kernels have found an error, whether they have ended or not.
  [[nodiscard]] bool is_raised() const { return *static_cast<const volatile unsigned int*>(raised) != 0u; }

  KOKKOS_FUNCTION void out_of_range(std::int64_t position, std::uint64_t index_bits) const {
    Kokkos::atomic_inc(&findings->out_of_range);
    *static_cast<volatile unsigned int*>(raised) = 1u;
    lower(findings->first_position, findings->first_index, position, index_bits);
  }
  /// Overload with the bag of the position, which says in which of several tables the row should be.
  KOKKOS_FUNCTION void out_of_range(std::int64_t position, std::uint64_t index_bits, std::int64_t bag) const {
    Kokkos::atomic_inc(&findings->out_of_range);
    *static_cast<volatile unsigned int*>(raised) = 1u;
    lower(findings->first_position, findings->first_index, position, index_bits,
          [&] { Kokkos::atomic_store(&findings->first_bag, static_cast<std::uint64_t>(bag)); });
  }

  /// Reports a bag that has no positions of the batch, with the index and the value of its bad offset, and
  /// the value of the one before if it decreases. It counts as out of range, so that what refuses to write
  /// for a bad index does so for a bad offset.
  KOKKOS_FUNCTION void bad_bag(std::int64_t index, std::uint64_t offset_bits, bool is_unsigned,
                               offset_fault fault, std::uint64_t before = 0) const {
    Kokkos::atomic_inc(&findings->out_of_range);
    Kokkos::atomic_inc(&findings->bad_bags);
    *static_cast<volatile unsigned int*>(raised) = 1u;
    if (is_unsigned) Kokkos::atomic_store(&findings->unsigned_offsets, 1u);
    lower(findings->first_offset, findings->first_offset_number, index, offset_bits, [&] {
      findings->fault = fault;
      Kokkos::atomic_store(&findings->offset_before, before);
    });
  }

  KOKKOS_FUNCTION void duplicate(std::int64_t row) const {
    Kokkos::atomic_inc(&findings->duplicates);
    Kokkos::atomic_min(&findings->first_row, static_cast<std::uint64_t>(row));
    *static_cast<volatile unsigned int*>(raised) = 1u;
  }

  KOKKOS_FUNCTION void overflow(std::int64_t group) const {
    Kokkos::atomic_inc(&findings->overflows);
    Kokkos::atomic_min(&findings->first_group, static_cast<std::uint64_t>(group));
    *static_cast<volatile unsigned int*>(raised) = 1u;
  }

  /// Reports an element that is a NaN, or an infinity of this sign.
  KOKKOS_FUNCTION void nonfinite(std::int64_t index, bool not_a_number, bool negative) const {
    using kind = nonfinite_value;
    const auto value_kind = not_a_number ? kind::not_a_number
                            : negative   ? kind::negative_infinity
                                         : kind::infinity;
    Kokkos::atomic_inc(&findings->nonfinite);
    // Index and kind are in one word, so they stay a pair.
    Kokkos::atomic_min(&findings->first_value, static_cast<std::uint64_t>(index) * kind::kinds + value_kind);
    *static_cast<volatile unsigned int*>(raised) = 1u;
  }

 private:
  struct nothing_more {
    KOKKOS_FUNCTION void operator()() const {}
  };
  /// Index and bits, and what `more` writes, must stay together, so the few threads that lower the minimum
  /// take a lock.
  template <class More = nothing_more>
  KOKKOS_FUNCTION void lower(std::uint64_t& lowest, std::uint64_t& lowest_bits, std::int64_t element,
                             std::uint64_t bits, const More& more = {}) const {
    const auto number = static_cast<std::uint64_t>(element);
    if (number >= Kokkos::atomic_load(&lowest)) return;
    // The lock is taken and released in one branch, so threads of one warp can't deadlock.
    for (bool written = false; !written;) {
      if (Kokkos::atomic_compare_exchange(&findings->lock, 0u, 1u) != 0u) continue;
      Kokkos::memory_fence();
      if (number < Kokkos::atomic_load(&lowest)) {
        Kokkos::atomic_store(&lowest_bits, bits);
        more();
        Kokkos::atomic_store(&lowest, number);
      }
      Kokkos::memory_fence();
      Kokkos::atomic_store(&findings->lock, 0u);
      written = true;
    }
  }
};

}  // namespace ferry::detail
