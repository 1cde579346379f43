// SPDX-License-Identifier: Apache-2.0
#include "support/forked.hpp"
#include "support/process_space.hpp"
#include "support/said.hpp"
#include "support/watchdog.hpp"

#include <ferry/distributed/shared/share.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// Tensors that processes share, by a memory space that needs no device. Children of this process use no Kokkos.
namespace ferry_test::open_shared_test {

namespace {

using tensor = ferry::tensor<float, process_space>;
const auto open_one = [](const ferry::shared_handle& handle) {
  return ferry::open_shared<float, process_space>(handle);
};

tensor made(const char* label = "weights", std::size_t rows = 10, std::size_t width = 4) {
  tensor array(label, rows, width);
  for (std::size_t i = 0; i < array.size(); ++i) array.data()[i] = static_cast<float>(i);
  return array;
}
bool is_whole(const tensor& array) {
  for (std::size_t i = 0; i < array.size(); ++i)
    if (array.data()[i] != static_cast<float>(i)) return false;
  return true;
}

std::size_t held() { return ferry::memory_statistics<process_space>().current; }

}  // namespace

TEST_CASE("Another process opens a shared tensor", "[share]") {
  const watchdog guard("an opened tensor");
  tensor weights = made();
  const ferry::shared_handle handle = ferry::share(weights);
  CHECK(handle.label() == "weights");
  CHECK(handle.rank() == 2);
  CHECK(handle.extent(0) == 10);
  CHECK(handle.extent(1) == 4);
  CHECK(handle.extent(2) == 1);
  CHECK(has(handle.describe(), "'weights' [10 x 4] of float in process_space, of process"));
  forked child([&](forked& self) {
    {
      auto view = open_one(handle);
      self.say(is_whole(view) && view.label() == "weights" && view.rank() == 2 && view.extent(1) == 4 &&
               view.device() == ferry::device{0} && process_space::opened == 1);
      self.await();
      if (view.data()[7] != 70) return false;
      view.data()[8] = 80;
    }
    self.say(process_space::opened == 0);
    self.await();
    return true;
  });
  CHECK(child.hear<bool>());
  weights.data()[7] = 70;
  child.answer();
  CHECK(child.hear<bool>());
  CHECK(weights.data()[8] == 80);
  const int freed = process_space::freed;
  weights = tensor();  // nobody uses it, though the child lives
  CHECK(process_space::freed == freed + 1);
  child.answer();
  CHECK(child.ended_well());
}

TEST_CASE("Shared memory outlives its tensor until its users have ended", "[share]") {
  const watchdog guard("users of shared memory");
  const std::size_t before = held();
  const int freed = process_space::freed;
  const bool killed = GENERATE(false, true);
  INFO(killed);
  std::optional<tensor> weights(made());
  const auto handle = ferry::share(*weights);
  forked child([&](forked& self) {
    const auto opened = open_one(handle);
    self.say();
    self.await();
    self.say(is_whole(opened));
    self.await();
    return true;
  });
  child.hear();
  weights.reset();
  CHECK(process_space::freed == freed);
  CHECK(held() == before + 160);
  CHECK(ferry::memory_statistics<process_space>().reserved == 0);
  CHECK(ferry::trim<process_space>() == 0);
  child.answer();
  CHECK(child.hear<bool>());  // its values are there
  {
    const auto late = open_one(handle);  // as long as anyone has it
    CHECK(is_whole(late));
  }
  if (killed) {
    child.kill();
  } else {
    child.answer();
    CHECK(child.ended_well());
  }
  CHECK(held() == before + 160);
  CHECK(ferry::memory_statistics<process_space>().reserved == 160);
  SECTION("trim") { CHECK(ferry::trim<process_space>() == 160); }
  SECTION("another share") {
    const tensor second = made("other");
    static_cast<void>(ferry::share(second));
    CHECK(held() == before + 160);
  }
  SECTION("a budget") {
    ferry::set_memory_budget<process_space>(before + 160);
    const tensor second = made("other");
    ferry::set_memory_budget<process_space>(0);
    CHECK(held() == before + 160);
  }
  CHECK(held() == before);
  CHECK(has(said<ferry::invalid_argument>([&] { (void)open_one(handle); }), "has ended in process"));
}

TEST_CASE("A process opens an allocation once", "[share]") {
  const watchdog guard("many tensors");
  tensor weights = made(), second_weights = made("others");
  const auto handle = ferry::share(weights), same = ferry::share(weights),
             second_handle = ferry::share(second_weights);
  CHECK(handle.record().segment.lease.key == same.record().segment.lease.key);
  CHECK(handle.record().segment.lease.key != second_handle.record().segment.lease.key);
  forked child([&](forked& self) {
    bool well = true;
    {
      std::vector<tensor> tensors;
      for (int i = 0; i < 50; ++i) tensors.push_back(open_one(i % 2 == 0 ? handle : same));
      auto second = open_one(second_handle);
      well = well && process_space::opened == 2 && tensors[0].data() == tensors[49].data();
      tensors.erase(tensors.begin(), tensors.begin() + 49);
      well = well && process_space::opened == 2 && is_whole(tensors[0]);
      std::vector<std::thread> threads;
      std::atomic<int> right{0};
      for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
          for (int i = 0; i < 200; ++i)
            right += is_whole(open_one(second_handle)) && is_whole(open_one(handle)) ? 1 : 0;
        });
      for (auto& thread : threads) thread.join();
      well = well && right == 800;
    }
    for (int i = 0; i < 20; ++i) {
      well = well && is_whole(open_one(handle));
      well = well && process_space::opened == 0;
    }
    self.say(well);
    const auto last = open_one(handle);
    self.say();
    self.await();
    return is_whole(last);
  });
  CHECK(child.hear<bool>());
  child.hear();
  const int freed = process_space::freed;
  second_weights = tensor();
  CHECK(process_space::freed == freed + 1);
  weights = tensor();
  CHECK(process_space::freed == freed + 1);
  child.answer();
  CHECK(child.ended_well());
  CHECK(ferry::trim<process_space>() == 160);
}

TEST_CASE("The process that shares may open, too", "[share]") {
  const int freed = process_space::freed;
  tensor weights = made();
  float* const data = weights.data();
  std::optional<tensor> same(open_one(ferry::share(weights)));
  CHECK(same->data() == data);
  weights = tensor();
  CHECK(process_space::freed == freed);
  CHECK(is_whole(*same));
  auto reopened = open_one(ferry::share(*same));
  same.reset();
  CHECK(ferry::trim<process_space>() == 0);
  CHECK(reopened.data() == data);
  reopened = tensor();
  CHECK(ferry::trim<process_space>() == 160);
  CHECK(process_space::freed == freed + 1);
}

TEST_CASE("An opened tensor can be shared again", "[share]") {
  const watchdog guard("a tensor that is passed on");
  tensor weights = made();
  const auto handle = ferry::share(weights);
  forked first([&](forked& self) {
    const auto opened = open_one(handle);
    self.say(ferry::share(opened));
    self.await();
    return true;
  });
  const auto passed = first.hear<ferry::shared_handle>();
  CHECK(passed.record().segment.lease.process == ::getpid());
  forked second([&](forked& self) {
    const auto opened = open_one(passed);
    self.say();
    self.await();
    return is_whole(opened);
  });
  second.hear();
  first.answer();
  CHECK(first.ended_well());
  weights = tensor();
  CHECK(ferry::trim<process_space>() == 0);
  second.answer();
  CHECK(second.ended_well());
  CHECK(ferry::trim<process_space>() == 160);
}

TEST_CASE("Handles that do not fit are refused", "[share]") {
  const watchdog guard("handles that do not fit");
  tensor weights = made();
  const auto handle = ferry::share(weights);
  const auto refused = [](const auto& act) { return said<ferry::invalid_argument>(act); };
  const auto changed = [&](const auto& change) {
    auto record = handle.record();
    change(record);
    return refused([&] { (void)open_one(ferry::shared_handle(record)); });
  };
  std::string text = refused([&] { (void)ferry::open_shared<double, process_space>(handle); });
  CHECK(has(text, "ferry::open_shared: 'weights' [10 x 4] of float"));
  CHECK(has(text, "elements of 4 bytes, and was opened as a tensor of double, of 8 bytes"));
  text = refused([&] { (void)ferry::open_shared<std::int32_t, process_space>(handle); });
  CHECK(has(text, "opened as a tensor of int, of 4 bytes"));
  text =
      refused([&] { (void)ferry::open_shared<float, process_space, ferry::extents<ferry::dyn, 8>>(handle); });
  CHECK(has(text, "'weights' [10 x 4]"));
  CHECK(has(text, "extent 1 is 4 but its type fixes it at 8"));
  text = refused([&] { (void)ferry::open_shared<float, process_space, ferry::extents<ferry::dyn>>(handle); });
  CHECK(has(text, "2 extents, and was opened as a tensor of 1"));
  const auto fits = ferry::open_shared<float, process_space, ferry::extents<ferry::dyn, 4>>(handle);
  CHECK(fits.rows() == 10);
  text = refused([&] { (void)ferry::open_shared<float, process_space>(handle, ferry::device{3}); });
  CHECK(has(text, "device 3"));
  text = refused([&] { (void)open_one(ferry::shared_handle()); });
  CHECK(has(text, "names no tensor"));
  CHECK(has(changed([](auto& copy) { copy.home.boot[0] ^= 1; }), "on another machine"));
  CHECK(has(changed([](auto& copy) { copy.home.numbers += 1; }), "another container"));
  CHECK(has(changed([](auto& copy) { copy.space = {}; }), "opened as a tensor in process_space"));
  // A process that has another's number has not its file.
  CHECK(has(changed([](auto& copy) { copy.segment.lease.key ^= std::uint64_t{1} << 40; }),
            "has ended or is of another user"));
  process_space::refuses = true;
  forked child([&](forked&) {
    return has(said<ferry::device_error>([&] { (void)open_one(handle); }), "'weights' [10 x 4] of float") &&
           has(said<ferry::device_error>([&] { (void)open_one(handle); }), "does not reach the memory");
  });
  CHECK(child.ended_well());
  const tensor fresh = made("fresh");
  CHECK_THROWS_AS(ferry::share(fresh), ferry::device_error);
  process_space::refuses = false;
  CHECK(open_one(ferry::share(fresh)).label() == "fresh");
  float values[8];
  const tensor foreign("foreign",
                       ferry::shape<ferry::dynamic_rank>::make(std::vector<std::size_t>{8}, "foreign", 4),
                       static_cast<float*>(values), nullptr);
  text = refused([&] { (void)ferry::share(foreign); });
  CHECK(has(text, "'foreign' [8] of float"));
  CHECK(has(text, "memory of other code"));
}

TEST_CASE("A tensor without elements is shared without memory", "[share]") {
  const tensor none("none", 0, 4);
  const auto opened = open_one(ferry::share(none));
  CHECK(opened.rows() == 0);
  CHECK(opened.width() == 4);
  CHECK(opened.label() == "none");
}

TEST_CASE("A handle of a process that has ended opens nothing", "[share]") {
  const watchdog guard("a process that ended");
  const bool killed = GENERATE(false, true);
  forked child([&](forked& self) {  // a child of a process that shares begins anew
    const tensor child_tensor = made("of the child");
    self.say(ferry::share(child_tensor));
    self.await();
    return true;
  });
  const auto handle = child.hear<ferry::shared_handle>();
  CHECK(handle.record().segment.lease.process == child.process());
  std::optional<tensor> opened(open_one(handle));
  CHECK(is_whole(*opened));
  if (killed) {
    child.kill();
  } else {
    child.answer();
    CHECK(child.ended_well());
  }
  CHECK(is_whole(*opened));  // what is open stays
  CHECK(is_whole(open_one(handle)));
  opened.reset();
  const auto text = said<ferry::invalid_argument>([&] { (void)open_one(handle); });
  CHECK(has(text, "'of the child' [10 x 4] of float in process_space, of process"));
  CHECK(has(text, "has ended or is of another user"));
}

TEST_CASE("The end of a copied process ends no lease", "[share]") {
  const watchdog guard("a copied process");
  tensor weights = made();
  const auto handle = ferry::share(weights);
  forked copy([&](forked&) {
    tensor owner = std::move(weights);  // its copy: not the last word about the memory
    return true;
  });
  CHECK(copy.ended_well());
  forked user([&](forked& self) {
    std::optional<tensor> opened(open_one(handle));
    forked inner([&](forked&) {
      opened.reset();
      return true;
    });
    if (!inner.ended_well()) return false;
    self.say();
    self.await();
    return is_whole(*opened);
  });
  user.hear();
  weights = tensor();
  CHECK(ferry::trim<process_space>() == 0);
  user.answer();
  CHECK(user.ended_well());
  CHECK(ferry::trim<process_space>() == 160);
}

TEST_CASE("Kills at any time leave no memory behind", "[share]") {
  const watchdog guard("kills");
  const std::size_t before = held();
  for (int turn = 0; turn < 40; ++turn) {
    tensor weights = made();
    const auto handle = ferry::share(weights);
    forked child([&](forked& self) {
      self.say();
      for (;;) {
        const auto opened = open_one(handle);
        if (!is_whole(opened)) return false;
      }
    });
    child.hear();
    ::usleep(static_cast<useconds_t>(turn * 50));
    if (turn % 2 == 0) weights = tensor();
    child.kill();
    weights = tensor();
    ferry::trim<process_space>();
    CHECK(held() == before);
  }
}

TEST_CASE("Several threads share and end tensors", "[share]") {
  const watchdog guard("threads that share");
  const std::size_t before = held();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        std::optional<tensor> owner(made());
        const auto opened = open_one(ferry::share(*owner));
        if (i % 2 == 0) owner.reset();
        right += is_whole(opened) ? 1 : 0;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(right == 400);
  ferry::trim<process_space>();
  CHECK(held() == before);
}

TEST_CASE("Host backends name shared_tensor", "[share]") {
  if constexpr (!ferry::detail::shares_memory<ferry::device_space>()) {
    const ferry::tensor<float, ferry::device_space> plain("plain", 3, 2);
    const auto text = said<ferry::invalid_argument>([&] { (void)ferry::share(plain); });
    CHECK(has(text, "'plain' [3 x 2] of float in device_space"));
    CHECK(has(text, "ferry::shared_tensor"));
  }
}

}  // namespace ferry_test::open_shared_test
