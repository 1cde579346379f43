// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/interop/detail/dlpack_abi.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/fp4.hpp>
#include <ferry/tensor/fp8.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Complex.hpp>

#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace ferry::detail {

template <class T>
inline constexpr bool is_complex_number = false;
template <class T>
inline constexpr bool is_complex_number<std::complex<T>> = true;
template <class T>
inline constexpr bool is_complex_number<Kokkos::complex<T>> = true;

/// DLPack's codes of numbers of 8 and 4 bits, which its version 1.0 does not name.
/// @{
inline constexpr std::uint8_t dlpack_e4m3 = 10;
inline constexpr std::uint8_t dlpack_e5m2 = 12;
inline constexpr std::uint8_t dlpack_e8m0 = 14;
inline constexpr std::uint8_t dlpack_e2m1 = 17;
/// @}

/// The kind of number that T is, in DLPack's codes; opaque if T is no number.
template <class T>
consteval std::uint8_t dlpack_code() {
  using plain = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<plain, bool>)
    return kDLBool;
  else if constexpr (std::is_same_v<plain, bhalf_t>)
    return kDLBfloat;
  else if constexpr (std::is_same_v<plain, fp8_e4m3_t>)
    return dlpack_e4m3;
  else if constexpr (std::is_same_v<plain, fp8_e5m2_t>)
    return dlpack_e5m2;
  else if constexpr (std::is_same_v<plain, ue8m0_t>)
    return dlpack_e8m0;
  else if constexpr (std::is_same_v<plain, fp4_e2m1_pair_t>)
    return dlpack_e2m1;
  else if constexpr (std::is_same_v<plain, half_t> || std::is_floating_point_v<plain>)
    return kDLFloat;
  else if constexpr (std::is_integral_v<plain>)
    return std::is_signed_v<plain> ? kDLInt : kDLUInt;
  else if constexpr (is_complex_number<plain>)
    return kDLComplex;
  else
    return kDLOpaqueHandle;
}

/// The type of an element, for DLPack. A pair of 4-bit numbers is a vector of two lanes, as PyTorch's
/// float4_e2m1fn_x2.
template <class T>
consteval DLDataType dlpack_type() {
  static_assert(
      dlpack_code<T>() != kDLOpaqueHandle && sizeof(T) <= 16,
      "ferry: DLPack describes numbers, bool and complex numbers only, no structs; give a view of the struct's numbers, or of its bytes.");
  constexpr int lanes = dlpack_code<T>() == dlpack_e2m1 ? 2 : 1;
  return {dlpack_code<T>(), static_cast<std::uint8_t>(8 * sizeof(T) / lanes), lanes};
}

/// The device that memory of a space is presented as: `target`, by default its own. `data` is null for an
/// array without elements. Throws invalid_argument if the memory can't be presented as that of `target`. Host
/// memory that the device reaches may be given to other libraries as either's.
DLDevice presented_device(const std::string& label, std::string_view space, const void* data,
                          std::optional<DLDevice> target);

/// Blocks until the work of verbs that conflicts with a foreign reader, or with a foreign writer, has ended.
inline void wait_for_tracked(const std::shared_ptr<access_tracker>& accesses, bool foreign_writes) {
  if (accesses == nullptr) return;
  if (foreign_writes)
    accesses->wait_for_all();
  else
    accesses->wait_for_writes();
}

/// Does it for foreign work that will be enqueued on `exec`: a device waits, not the calling thread.
template <class Exec>
void wait_for_tracked(const Exec& exec, const std::shared_ptr<access_tracker>& accesses,
                      bool foreign_writes) {
  using backend = execution_backend<Exec>;
  if (accesses == nullptr) return;
  if constexpr (is_host_exec<Exec>) {
    wait_for_tracked(accesses, foreign_writes);
  } else {
    if (backend::capturing(exec))
      throw invalid_argument(
          "ferry::to_dlpack: the instance is being captured into a graph, whose order is its own; hand the array over before the capture");
    const auto id = backend::id_of(exec);
    for (const auto& access : foreign_writes ? accesses->before_write(id) : accesses->before_read(id))
      backend::wait_for(exec, *access);
  }
}

}  // namespace ferry::detail
