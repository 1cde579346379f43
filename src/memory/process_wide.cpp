// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/joined.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/version.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace ferry::detail {

/// The objects that exist once in a process, by name. Libraries with different versions of ferry share it, so
/// it may not change.
struct process_objects {
  std::recursive_mutex guard;  ///< making one object may ask for another
  std::map<std::string, void*> by_name;
};

}  // namespace ferry::detail

// Its symbol is unique in a process (STB_GNU_UNIQUE): the dynamic linker gives all libraries the first one, also
// those that were opened with RTLD_LOCAL. GCC marks variables of inline functions so, Clang none; hence the
// assembler. A program must export it, which the link options of ferry's target see to.
extern "C" FERRY_SHARED std::atomic<ferry::detail::process_objects*> ferry_objects_of_process;
static_assert(sizeof(ferry_objects_of_process) == sizeof(void*));
#if !defined(__CUDA_ARCH__)
asm(".pushsection .bss.ferry_objects_of_process,\"awG\",%nobits,ferry_objects_of_process,comdat\n"
    ".globl ferry_objects_of_process\n"
    ".type ferry_objects_of_process, %gnu_unique_object\n"
    ".size ferry_objects_of_process, 8\n"
    ".balign 8\n"
    "ferry_objects_of_process:\n"
    ".zero 8\n"
    ".popsection\n");
#endif

namespace ferry::detail {

namespace {

process_objects& objects_of_process() {
  process_objects* present = ferry_objects_of_process.load();
  if (present != nullptr) return *present;
  // Never destroyed: objects with static storage may allocate after the destruction of any other.
  auto fresh = std::make_unique<process_objects>();
  return ferry_objects_of_process.compare_exchange_strong(present, fresh.get()) ? *fresh.release() : *present;
}

}  // namespace

void* object_of_process(const char* type, void* (*make)()) {
  const std::string name =
      joined({type, ".", FERRY_VERSION_MAJOR, ".", FERRY_VERSION_MINOR, ".", FERRY_VERSION_PATCH});
  process_objects& all = objects_of_process();
  const std::lock_guard lock(all.guard);
  void*& object = all.by_name[name];
  if (object == nullptr) object = make();
  return object;
}

}  // namespace ferry::detail
