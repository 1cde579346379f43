// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// The types of the DLPack specification, version 1, with their public names: in the global namespace, as C
/// programs have them. A dlpack.h that was included before is used instead. One that is included later is
/// skipped by its own guard; include it first if you need what is not here, such as its exchange functions.

#include <cstdint>

#if defined(DLPACK_DLPACK_H_)

#if !defined(DLPACK_MAJOR_VERSION)
#error \
    "ferry: the dlpack.h that was included before is older than DLPack 1.0; include ferry's header first, or a newer dlpack.h."
#elif DLPACK_MAJOR_VERSION != 1
#error \
    "ferry: the dlpack.h that was included before has another major version than 1, whose layout ferry does not know."
#endif

#else

#define DLPACK_DLPACK_H_
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)

// <sys/sysmacros.h> has macros of these names.
#pragma push_macro("major")
#pragma push_macro("minor")
#undef major
#undef minor

extern "C" {

/// Version of the layout (major) and of the codes (minor).
struct DLPackVersion {
  std::uint32_t major;  ///< another major version has another layout
  std::uint32_t minor;  ///< another minor version has other codes
};

/// Kinds of devices and of their memory.
enum DLDeviceType : std::int32_t {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16,
  kDLMAIA = 17,
  kDLTrn = 18
};

/// A device.
struct DLDevice {
  DLDeviceType device_type;  ///< its kind
  std::int32_t device_id;    ///< its number among those of its kind; 0 for host memory
};

/// Kinds of elements.
enum DLDataTypeCode {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,
  kDLOpaqueHandle = 3U,
  kDLBfloat = 4U,
  kDLComplex = 5U,
  kDLBool = 6U,
  kDLFloat8_e3m4 = 7U,
  kDLFloat8_e4m3 = 8U,
  kDLFloat8_e4m3b11fnuz = 9U,
  kDLFloat8_e4m3fn = 10U,
  kDLFloat8_e4m3fnuz = 11U,
  kDLFloat8_e5m2 = 12U,
  kDLFloat8_e5m2fnuz = 13U,
  kDLFloat8_e8m0fnu = 14U,
  kDLFloat6_e2m3fn = 15U,
  kDLFloat6_e3m2fn = 16U,
  kDLFloat4_e2m1fn = 17U
};

/// The type of the elements.
struct DLDataType {
  std::uint8_t code;    ///< a DLDataTypeCode
  std::uint8_t bits;    ///< bits of a lane
  std::uint16_t lanes;  ///< 1, or the lanes of a vector type
};

/// A strided array that does not own its memory.
struct DLTensor {
  void* data;                 ///< null for an array without elements
  DLDevice device;            ///< where it lies
  std::int32_t ndim;          ///< number of extents
  DLDataType dtype;           ///< its elements
  std::int64_t* shape;        ///< the extents
  std::int64_t* strides;      ///< in elements; null in old producers' compact row-major arrays
  std::uint64_t byte_offset;  ///< from data to the first element
};

/// An array with its owner, as it was before DLPack 1.0.
struct DLManagedTensor {
  DLTensor dl_tensor;                 ///< the array
  void* manager_ctx;                  ///< the owner's
  void (*deleter)(DLManagedTensor*);  ///< releases the array and this object; may be null
};

/// An array with its owner.
struct DLManagedTensorVersioned {
  DLPackVersion version;                       ///< of this layout
  void* manager_ctx;                           ///< the owner's
  void (*deleter)(DLManagedTensorVersioned*);  ///< releases the array and this object; may be null
  std::uint64_t flags;                         ///< DLPACK_FLAG_BITMASK_*
  DLTensor dl_tensor;                          ///< the array
};

}  // extern "C"

#pragma pop_macro("minor")
#pragma pop_macro("major")

#endif

static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensorVersioned) == 80,
              "ferry: DLPack's structs have another layout than that of version 1 on 64-bit machines.");
