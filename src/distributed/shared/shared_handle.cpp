// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/shared/detail/shared_segment.hpp>

#include <ferry/error.hpp>

#include <cxxabi.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

namespace ferry::detail {

process_home process_home::current() {
  process_home home;
  if (std::FILE* const stream = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    if (std::fgets(home.boot.data(), static_cast<int>(home.boot.size()), stream) == nullptr) home.boot = {};
    std::fclose(stream);
  }
  struct stat facts {};
  if (::stat("/proc/self/ns/pid", &facts) == 0) home.numbers = static_cast<std::uint64_t>(facts.st_ino);
  return home;
}

shared_record::shared_record(const std::type_info& elements, std::size_t bytes, std::string_view space_name,
                             std::string_view tensor_label, std::span<const std::size_t> sizes)
    : mark(own_mark),
      type(digest_of(elements)),
      element_bytes(bytes),
      rank(sizes.size()),
      home(process_home::current()),
      space(space_name),
      type_name(elements.name()),
      label(tensor_label) {
  std::copy(sizes.begin(), sizes.end(), extents.begin());
}

std::string shared_record::describe() const {
  if (mark != own_mark) return "a handle that names no tensor";
  std::string shape = "[";
  for (std::size_t i = 0; i < std::min<std::size_t>(rank, max_rank); ++i)
    shape += (i == 0 ? "" : " x ") + std::to_string(extents[i]);
  return "'" + std::string(label.view()) + "' " + shape + "] of " + name_of_type(type_name.view()) + " in " +
         std::string(space.view()) +
         (segment.lease.number == 0 ? std::string()
                                    : ", of process " + std::to_string(segment.lease.process));
}

std::uint64_t shared_record::digest_of(const std::type_info& type) {
  std::uint64_t digest = 0xcbf29ce484222325u;  // FNV-1a
  for (const char* c = type.name(); *c != '\0'; ++c)
    digest = (digest ^ static_cast<unsigned char>(*c)) * 0x100000001b3u;
  return digest;
}

std::string shared_record::name_of_type(std::string_view mangled) {
  int status = 0;
  const std::string text(mangled);
  char* const readable = abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status);
  if (readable == nullptr) return text;
  std::string name(readable);
  std::free(readable);
  return name;
}

void refuse_record(const char* call, const shared_record& record, const std::string& why) {
  throw invalid_argument(std::string(call) + ": " + record.describe() + ": " + why);
}

void refuse_host_memory(const char* call, const shared_record& record) {
  refuse_record(call, record,
                "on this backend that is host memory, which no other process can open; make a "
                "ferry::shared_tensor instead");
}

void require_opens(const shared_record& record, const std::type_info& elements, std::size_t bytes,
                   std::string_view space, int rank) {
  const auto refuse = [&record](const std::string& why) { refuse_record("ferry::open_shared", record, why); };
  if (record.mark != shared_record::own_mark || record.rank > max_rank)
    refuse("it was not made by ferry::share of this version");
  const process_home own_home = process_home::current();
  if (record.home.boot != own_home.boot) refuse("it was shared on another machine");
  if (record.home.numbers != own_home.numbers)
    refuse("it was shared in another container, whose processes this one does not see");
  if (record.space.view() != space) refuse("it was opened as a tensor in " + std::string(space));
  if (record.type != shared_record::digest_of(elements) || record.element_bytes != bytes)
    refuse("it has elements of " + std::to_string(record.element_bytes) +
           " bytes, and was opened as a tensor of " + shared_record::name_of_type(elements.name()) + ", of " +
           std::to_string(bytes) + " bytes");
  if (rank >= 0 && std::cmp_not_equal(record.rank, rank))
    refuse("it has " + std::to_string(record.rank) + " extents, and was opened as a tensor of " +
           std::to_string(rank));
}

}  // namespace ferry::detail
