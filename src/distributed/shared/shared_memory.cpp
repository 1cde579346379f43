// SPDX-License-Identifier: Apache-2.0
#include "shared_memory.hpp"

#include "available_bytes.hpp"

#include <ferry/error.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace ferry::detail {

shared_memory::~shared_memory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

shared_memory shared_memory::make(const std::string& label, std::size_t bytes) {
  shared_memory made;
  if (bytes == 0) return made;
  const std::int64_t available = available_bytes();
  if (std::cmp_greater(bytes, std::int64_t{1} << 62) ||
      (available >= 0 && std::cmp_greater(bytes, available)))
    fail(label, bytes, std::to_string(available) + " bytes are available");
  made.descriptor_ = owned_descriptor(::memfd_create("ferry", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (made.descriptor_.get() < 0) fail(label, bytes, std::string("memfd_create: ") + std::strerror(errno));
  const auto size = static_cast<off_t>(bytes);
  if (::ftruncate(made.descriptor_.get(), size) != 0)
    fail(label, bytes, std::string("ftruncate: ") + std::strerror(errno));
  // In pieces: a signal undoes a call, and under a timer a long one would never end.
  constexpr off_t piece = off_t{1} << 25;
  for (off_t done = 0; done < size; done += piece) {
    int status = EINTR;
    while (status == EINTR)
      status = ::posix_fallocate(made.descriptor_.get(), done, std::min(piece, size - done));
    if (status != 0) fail(label, bytes, std::string("posix_fallocate: ") + std::strerror(status));
  }
  if (::fcntl(made.descriptor_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    fail(label, bytes, std::string("F_ADD_SEALS: ") + std::strerror(errno));
  made.map(label, bytes);
  return made;
}

shared_memory shared_memory::open(const std::string& label, owned_descriptor&& of, std::size_t bytes) {
  shared_memory made;
  if (bytes == 0) return made;
  if (of.get() < 0) fail(label, bytes, "this process may open no more files");
  made.descriptor_ = std::move(of);
  made.map(label, bytes);
  return made;
}

void shared_memory::map(const std::string& label, std::size_t bytes) {
  void* const raw = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
  if (raw == MAP_FAILED) fail(label, bytes, std::string("mmap: ") + std::strerror(errno));
  data_ = raw;
  bytes_ = bytes;
}

void shared_memory::fail(const std::string& label, std::size_t bytes, const std::string& why) {
  throw bad_alloc("ferry::shared_tensor: no " + std::to_string(bytes) + " bytes of shared memory for '" +
                  label + "': " + why);
}

}  // namespace ferry::detail
