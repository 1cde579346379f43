#pragma once

#include <stdexcept>
#include <string>

/// For what a whole process has once: a library that is compiled with -fvisibility=hidden, as extension modules of Python
/// are, would otherwise have its own.
#if defined(__GNUC__)
#define FERRY_SHARED __attribute__((visibility("default")))
#else
#define FERRY_SHARED
#endif

/// Every exception that ferry throws derives from ferry::error. Preconditions that the host can see are
/// thrown by the verb itself, before anything is launched; what only the device can see is thrown by
/// ticket::wait().
namespace ferry {

class FERRY_SHARED error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Shapes, strides, policies or pointers that do not fit together.
class FERRY_SHARED invalid_argument : public error {
 public:
  using error::error;
};

/// A row index outside of its table.
class FERRY_SHARED out_of_range : public error {
 public:
  using error::error;
};

/// Memory that could not be had; names the space, the label and the size.
class FERRY_SHARED bad_alloc : public error {
 public:
  using error::error;
};

/// A call into the device's runtime that failed.
class FERRY_SHARED device_error : public error {
 public:
  using error::error;
};

/// An allocation that would pass a budget set by the user.
class FERRY_SHARED budget_exceeded : public bad_alloc {
 public:
  using bad_alloc::bad_alloc;
};

/// A file that could not be read or written, or does not hold what it should.
class FERRY_SHARED io_error : public error {
 public:
  using error::error;
};

}  // namespace ferry
