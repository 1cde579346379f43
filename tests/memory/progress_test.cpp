// SPDX-License-Identifier: Apache-2.0
#include "../../backends/host/allocation.hpp"
#include "support/test.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <system_error>

namespace ferry_test::progress_test {

struct report {
  std::string space, label;
  std::size_t bytes_done, bytes;
  std::thread::id thread;
  bool is_last;
};

/// The system starts no threads: their stacks would be larger than an address space.
class no_more_threads {
 public:
  no_more_threads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge = before_;
    pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
    pthread_setattr_default_np(&huge);
  }
  no_more_threads(const no_more_threads&) = delete;
  no_more_threads& operator=(const no_more_threads&) = delete;
  ~no_more_threads() { pthread_setattr_default_np(&before_); }

 private:
  pthread_attr_t before_{};
};

struct recorder {
  void operator()(const ferry::progress& p) const {
    reports->push_back({std::string(p.space), std::string(p.label), p.bytes_done, p.bytes,
                        std::this_thread::get_id(), p.done()});
  }
  std::vector<report>* reports;
};

/// Notes every report.
struct listener {
  std::vector<report> reports;
  ferry::allocation_progress watch{recorder{&reports}};
};

struct refusal {
  void operator()(const ferry::progress&) const { throw std::runtime_error("stop"); }
};

/// Allocates by itself whenever it is called.
struct allocating_counter {
  void operator()(const ferry::progress&) const {
    ++*calls;
    const ferry::detail::allocation<ferry::pageable_space> note("note", 100);
  }
  int* calls;
};

void allocate_elsewhere() {
  const ferry::detail::allocation<ferry::pageable_space> second("other thread's", 5000);
}

TEMPLATE_TEST_CASE("an allocation reports how far it is, and that it is done", "[progress]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  constexpr std::size_t bytes = (std::size_t{64} << 20) + 3;
  listener heard;
  const ferry::tensor<std::int8_t, TestType> table("watched", bytes);
  REQUIRE_FALSE(heard.reports.empty());
  std::size_t before = 0;
  for (const auto& note : heard.reports) {
    CHECK(note.space == TestType::name);
    CHECK(note.label == "ferry::tensor::watched");
    CHECK(note.bytes == bytes);
    CHECK(note.is_last == (note.bytes_done == bytes));
    CHECK(note.bytes_done > before);
    CHECK(note.thread == std::this_thread::get_id());
    before = note.bytes_done;
  }
  CHECK(before == bytes);
}

TEST_CASE("only this thread's allocations are reported, and only while somebody looks", "[progress]") {
  listener heard;
  std::thread(allocate_elsewhere).join();
  CHECK(heard.reports.empty());
  {
    listener inner;
    const ferry::detail::allocation<ferry::pageable_space> block("both", 5000);
    CHECK(inner.reports.size() == 1);
    CHECK(heard.reports.size() == 1);
  }
  const ferry::detail::allocation<ferry::pageable_space> outer("outer", 5000);
  CHECK(heard.reports.size() == 2);
  const ferry::detail::allocation<ferry::pageable_space> nothing("nothing", 0);
  CHECK(heard.reports.size() == 2);
}

TEMPLATE_TEST_CASE("what the observer throws ends the allocation without a trace", "[progress]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  ferry::trim<TestType>();
  const auto before = ferry::memory_statistics<TestType>();
  {
    const ferry::allocation_progress stop(refusal{});
    CHECK_THROWS_AS((ferry::tensor<char, TestType>("stopped", std::size_t{32} << 20)), std::runtime_error);
  }
  CHECK(ferry::memory_statistics<TestType>().current == before.current);
  const ferry::tensor<char, TestType> result("made", std::size_t{32} << 20);
  CHECK(result.size() == std::size_t{32} << 20);
}

TEST_CASE("an observer may allocate", "[progress]") {
  int calls = 0;
  const ferry::allocation_progress watch(allocating_counter{&calls});
  const ferry::detail::allocation<ferry::pageable_space> watched("watched", 100);
  CHECK(calls == 1);
}

TEST_CASE("pages are touched all and once, with reports between", "[progress]") {
  constexpr std::size_t bytes = (std::size_t{300} << 20) + 4096 + 17;
  const std::string label = "touched";
  void* const pages = ferry::host::map_pages("test", label, bytes);
  listener heard;
  ferry::detail::progress_meter meter("test", label, bytes);
  ferry::host::touch_pages(pages, bytes, meter);
  // The calling thread reports between its own pieces. Other threads may leave it few.
  std::size_t before = 0;
  for (const auto& note : heard.reports) {
    CHECK(note.bytes_done > before);
    CHECK(note.bytes_done < bytes);
    before = note.bytes_done;
  }
  std::vector<unsigned char> present((bytes + 4095) / 4096);
  REQUIRE(::mincore(pages, bytes, present.data()) == 0);
  std::size_t absent = 0;
  for (const auto page : present) absent += (page & 1u) == 0;
  CHECK(absent == 0);
  ferry::host::unmap_pages(pages, bytes);
}

TEST_CASE("where threads can't be started, those that there are touch all pages", "[progress]") {
  constexpr std::size_t bytes = std::size_t{1} << 26;
  auto* pages = static_cast<char*>(ferry::host::map_pages("test_space", "ferry::touched", bytes));
  listener heard;
  ferry::detail::progress_meter meter("test_space", "ferry::touched", bytes);
  {
    const no_more_threads limit;
    REQUIRE_THROWS_AS(std::jthread([] {}), std::system_error);
    ferry::host::touch_pages(pages, bytes, meter);
  }
  CHECK(heard.reports.size() >= 2);
  std::vector<unsigned char> present(bytes / ferry::host::page_bytes());
  REQUIRE(::mincore(pages, bytes, present.data()) == 0);
  for (const unsigned char page : present) REQUIRE((page & 1u) != 0);
  ferry::host::unmap_pages(pages, bytes);
}

TEST_CASE("blocks consist of whole pages, whatever a page is", "[progress]") {
  CHECK(ferry::host::page_bytes() == static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  CHECK(ferry::host::mapped_bytes(1, 65536) == 65536);
  CHECK(ferry::host::mapped_bytes(65536, 65536) == 65536);
  CHECK(ferry::host::mapped_bytes(65537, 65536) == 131072);
  CHECK(ferry::host::mapped_bytes(1) == ferry::host::page_bytes());
}

TEST_CASE("reports come with another percent or after a tenth of a second", "[progress]") {
  using meter_clock = ferry::detail::progress_meter::clock;
  const meter_clock::time_point begin{};
  listener heard;
  ferry::detail::progress_meter meter("test", "metered", 1000000, begin);
  // While no time passes: another 10000 bytes and no less.
  for (std::size_t bytes = 0; bytes <= 100000; bytes += 100) meter.advance(bytes, begin);
  REQUIRE(heard.reports.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(heard.reports[i].bytes_done == 10000 * (i + 1));
  // Fewer bytes once a tenth of a second is over, counted from the last report.
  meter.advance(100100, begin + std::chrono::milliseconds(99));
  CHECK(heard.reports.size() == 10);
  meter.advance(100200, begin + std::chrono::milliseconds(100));
  REQUIRE(heard.reports.size() == 11);
  CHECK(heard.reports.back().bytes_done == 100200);
  meter.advance(100300, begin + std::chrono::milliseconds(199));
  CHECK(heard.reports.size() == 11);
  meter.advance(100300, begin + std::chrono::milliseconds(200));
  CHECK(heard.reports.size() == 12);
  meter.advance(100300, begin + std::chrono::seconds(9));   // no further than before
  meter.advance(1000000, begin + std::chrono::seconds(9));  // the last report is the allocation's
  CHECK(heard.reports.size() == 12);
}

}  // namespace ferry_test::progress_test
