// SPDX-License-Identifier: Apache-2.0
#include "copy_layout.hpp"
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

/// Copies in pieces through slots, their threads and their progress.
namespace ferry_test::copy_slots_test {

using device = ferry::device_space;
using pageable = ferry::pageable_space;

template <class From, class To, class T>
bool copies_in_pieces(std::mt19937_64& random, const layout& source, const layout& sink,
                      const ferry::detail::slot_tuning& how) {
  const auto content = values<T>(random, static_cast<std::size_t>(source.size));
  auto expected = values<T>(random, static_cast<std::size_t>(sink.size));
  auto source_memory = make<From>("from", content);
  auto sink_memory = make<To>("to", expected);
  const exec_space exec;
  ferry::detail::copy_array<ferry::path::staged>(exec, array_in(source_memory, source),
                                                 array_in(sink_memory, sink), how)
      .wait();
  const auto source_places = source.places(), sink_places = sink.places();
  for (std::size_t i = 0; i < source_places.size(); ++i) expected[sink_places[i]] = content[source_places[i]];
  return same_bits(take(sink_memory), expected);
}

TEST_CASE("copies in many pieces, by any number of threads and slots", "[copy][slots][once]") {
  auto random = generator(110);
  for (const std::int64_t slot_bytes : {64, 1000, 4096, 70000})
    for (const int workers : {1, 2, 5})
      for (const int slots : {1, 2, 3}) {
        const bool past = random() % 2 == 0;
        const ferry::detail::slot_tuning how{slot_bytes, workers, slots, past, !past};
        const auto extents = random_extents(random, 1 + random() % 4, slot_bytes == 64 ? 3000 : 40000);
        for (const auto source_order :
             {arrangement::row_major, arrangement::rows_apart, arrangement::column_major})
          for (const auto sink_order : {arrangement::row_major, arrangement::shuffled}) {
            const auto source = arrange(random, extents, source_order);
            const auto sink = arrange(random, extents, sink_order);
            CAPTURE(slot_bytes, workers, slots, past, source.text(), sink.text());
            CHECK(copies_in_pieces<pageable, device, float>(random, source, sink, how));
            if (slots % 2 == 0)
              CHECK(copies_in_pieces<device, pageable, float>(random, source, sink, how));
            else
              CHECK(copies_in_pieces<device, pageable, std::int8_t>(random, source, sink, how));
          }
      }
}

TEST_CASE("long rows travel through slots by pitched transfers", "[copy][slots]") {
  auto random = generator(111);
  const ferry::detail::slot_tuning how{20000, 2, 2, false, true};
  for (std::size_t rank = 2; rank <= 4; ++rank) {
    layout extents;
    extents.rank = rank;
    for (std::size_t d = 0; d + 1 < rank; ++d)
      extents.extents[d] = 2 + static_cast<std::int64_t>(random() % 5);
    extents.extents[rank - 1] = 700;  // more bytes than are left to kernels
    for (int repeat = 0; repeat < 4; ++repeat) {
      const auto source = arrange(random, extents, arrangement::rows_apart);
      auto sink = arrange(random, extents, arrangement::rows_apart);
      CAPTURE(source.text(), sink.text());
      CHECK(copies_in_pieces<pageable, device, float>(random, source, sink, how));
      CHECK(copies_in_pieces<device, pageable, float>(random, source, sink, how));
      sink = arrange(random, extents, arrangement::row_major);
      CHECK(copies_in_pieces<pageable, device, double>(random, source, sink, how));
      CHECK(copies_in_pieces<device, pageable, double>(random, source, sink, how));
    }
  }
}

TEST_CASE("a copy of several usual slots arrives whole, both ways", "[copy][slots]") {
  auto random = generator(112);
  const exec_space exec;
  std::vector<std::uint64_t> content((std::size_t{5} << 18) + 17);  // five slots of two megabytes
  for (auto& element : content) element = random();
  ferry::tensor<std::uint64_t, device> device_array("there", content.size());
  std::vector<std::uint64_t> back(content.size());
  ferry::copy(exec, content, device_array, ferry::path::staged{}).wait();
  ferry::copy(exec, device_array, back, ferry::path::staged{}).wait();
  CHECK(same_bits(back, content));
}

TEST_CASE("several threads copy at the same time", "[copy][slots][threads]") {
  constexpr int threads = 4;
  std::vector<char> right(threads, 0);
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t)
    team.emplace_back([&right, t] {
      std::mt19937_64 random(static_cast<std::uint64_t>(t) + 7);
      const exec_space exec;
      const ferry::detail::slot_tuning how{8192, 3, 2, false, true};
      bool same = true;
      for (int repeat = 0; repeat < 5; ++repeat) {
        std::vector<std::int32_t> content(50000 + 100 * static_cast<std::size_t>(t));
        for (auto& element : content) element = static_cast<std::int32_t>(random());
        ferry::tensor<std::int32_t, device> device_array("there", content.size());
        std::vector<std::int32_t> back(content.size());
        const auto near = ferry::make_ref(content);
        auto far = ferry::make_ref(device_array);
        far.rank = 1;
        ferry::detail::copy_array<ferry::path::staged>(exec, near, far, how).wait();
        ferry::detail::copy_array<ferry::path::staged>(exec, far, ferry::make_ref(back), how).wait();
        same = same && back == content;
      }
      right[static_cast<std::size_t>(t)] = same ? 1 : 0;
    });
  for (auto& thread : team) thread.join();
  CHECK(right == std::vector<char>(threads, 1));
}

struct note {
  std::string source, target;
  std::size_t bytes_done, bytes;
  bool is_last;
  std::thread::id thread;
};
struct recorder {
  std::vector<note>* notes;
  void operator()(const ferry::copied& now) const {
    notes->push_back({std::string(now.from), std::string(now.to), now.bytes_done, now.bytes, now.done(),
                      std::this_thread::get_id()});
  }
};
struct refusal {
  std::size_t after;
  void operator()(const ferry::copied& now) const {
    if (now.bytes_done >= after) throw std::runtime_error("stop");
  }
};
struct copying {
  int* calls;
  void operator()(const ferry::copied&) const {
    ++*calls;
    const std::vector<float> few(10);
    std::vector<float> target(10);
    ferry::copy(exec_space{}, few, target).wait();
  }
};

TEST_CASE("a long copy reports how far it is, and that the host's part is done", "[copy][progress]") {
  const exec_space exec;
  auto random = generator(113);
  const auto content = values<float>(random, 300000);
  ferry::tensor<float, device> device_array("there", content.size());
  ferry::tensor<float, pageable> host_array("here", content.size());
  put(host_array, content);
  const ferry::detail::slot_tuning how{1 << 14, 2, 2, false, true};
  const auto check = [&](const auto& copy, const char* source_label, const char* target_label) {
    std::vector<note> notes;
    {
      const ferry::copy_progress watch{recorder{&notes}};
      copy();
    }
    REQUIRE_FALSE(notes.empty());
    std::size_t before = 0;
    for (std::size_t i = 0; i < notes.size(); ++i) {
      CHECK(notes[i].source == source_label);
      CHECK(notes[i].target == target_label);
      CHECK(notes[i].bytes == content.size() * 4);
      CHECK(notes[i].bytes_done > before);
      CHECK(notes[i].is_last == (i + 1 == notes.size()));
      CHECK(notes[i].thread == std::this_thread::get_id());
      before = notes[i].bytes_done;
    }
    CHECK(before == content.size() * 4);
    return notes.size();
  };
  const auto far = ferry::make_ref(device_array);
  const auto near = ferry::make_ref(host_array);
  check([&] { ferry::detail::copy_array<ferry::path::staged>(exec, near, far, how).wait(); }, "here",
        "there");
  check([&] { ferry::detail::copy_array<ferry::path::staged>(exec, far, near, how).wait(); }, "there",
        "here");
  CHECK(same_bits(take(host_array), content));
  // The calling thread alone takes every piece, so it reports each percent.
  const ferry::detail::slot_tuning alone{1 << 14, 1, 2, false, true};
  CHECK(check([&] { ferry::detail::copy_array<ferry::path::staged>(exec, near, far, alone).wait(); }, "here",
              "there") > 20);
  // Without host threads: once.
  ferry::tensor<float, device> twin("twin", content.size());
  CHECK(check([&] { ferry::copy(exec, device_array, twin).wait(); }, "there", "twin") == 1);
  // Kernels, for rows that transfers do not take.
  ferry::tensor<float, device> narrow("narrow", 60000, 10);
  auto half = ferry::make_ref(narrow);
  half.extents = {60000, 5};
  auto rows = near;
  rows.rank = 2;
  rows.extents = {60000, 5};
  rows.make_dense();
  check([&] { ferry::copy(exec, rows, half, ferry::path::staged{}).wait(); }, "here", "narrow");
  check([&] { ferry::copy(exec, half, rows, ferry::path::staged{}).wait(); }, "narrow", "here");
  CHECK(same_bits(take(host_array), content));
}

TEST_CASE("observers of copies nest, see their own thread alone, and may copy", "[copy][progress]") {
  const exec_space exec;
  const std::vector<float> source(100, 1.0f);
  std::vector<float> target(100);
  std::vector<note> outer, inner;
  int calls = 0;
  const ferry::copy_progress first{recorder{&outer}};
  {
    const ferry::copy_progress second{recorder{&inner}};
    std::thread([&] {
      std::vector<float> output(100);
      ferry::copy(exec_space{}, source, output).wait();
    }).join();
    CHECK(inner.empty());
    ferry::copy(exec, source, target).wait();
  }
  CHECK(inner.size() == 1);
  CHECK(outer.size() == 1);
  {
    const ferry::copy_progress third{copying{&calls}};
    ferry::copy(exec, source, target).wait();
  }
  CHECK(calls == 1);
  CHECK(outer.size() == 3);  // the callback's own copy, too
  std::vector<float> nothing;
  ferry::copy(exec, std::vector<float>{}, nothing).wait();
  CHECK(outer.size() == 3);
}

TEST_CASE("an exception of an observer ends the copy, and later copies work", "[copy][progress]") {
  const exec_space exec;
  auto random = generator(114);
  const auto content = values<float>(random, 200000);
  ferry::tensor<float, device> device_array("there", content.size());
  ferry::tensor<float, pageable> host_array("here", content.size());
  put(host_array, content);
  const ferry::detail::slot_tuning how{1 << 13, 3, 2, false, true};
  const auto far = ferry::make_ref(device_array);
  const auto near = ferry::make_ref(host_array);
  for (const std::size_t after : {std::size_t{1}, content.size() * 4}) {
    const ferry::copy_progress watch{refusal{after}};
    CHECK_THROWS_AS(ferry::detail::copy_array<ferry::path::staged>(exec, near, far, how), std::runtime_error);
    CHECK_THROWS_AS(ferry::detail::copy_array<ferry::path::staged>(exec, far, near, how), std::runtime_error);
    ferry::tensor<float, device> twin("twin", content.size());
    CHECK_THROWS_AS(ferry::copy(exec, device_array, twin), std::runtime_error);
    put(host_array, content);
  }
  ferry::detail::copy_array<ferry::path::staged>(exec, near, far, how).wait();
  CHECK(same_bits(take(device_array), content));
}

}  // namespace ferry_test::copy_slots_test
