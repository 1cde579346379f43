// SPDX-License-Identifier: Apache-2.0
#include "support/folder.hpp"
#include "support/test.hpp"

#include <ferry/io/checkpoint.hpp>
#include <ferry/io/safetensors_file.hpp>
#include <ferry/io/save_safetensors.hpp>

/// Objects that change or end between add() and the calls that use them.
namespace ferry_test::checkpoint_objects_test {

using table = ferry::tensor<float, ferry::pageable_space>;

std::vector<float> content_of(const std::string& path, const std::string& name, std::size_t size) {
  std::vector<float> list(size, -7.0F);
  ferry::io::checkpoint run(path);
  run.add(name, list);
  run.load();
  return list;
}

TEST_CASE("a vector may be resized after it was added to a checkpoint", "[io][checkpoint]") {
  const temporary_folder folder;
  auto random = generator(371);
  const std::string path = folder.path() + "/run";
  ferry::io::checkpoint run(path);
  std::vector<float> list = values<float>(random, 11);
  run.add("list", list);
  for (const std::size_t size : {11, 5000, 3, 0, 20000}) {
    list = std::vector<float>();  // frees the elements that add() saw
    list = values<float>(random, size);
    const bool changes = size == 3;
    INFO("saved at " << size);
    run.save({.changes = changes});
    CHECK(content_of(path, "list", size) == list);
    const std::vector<float> content = list;
    list = std::vector<float>(size, -7.0F);
    run.load();
    CHECK(list == content);
    list.push_back(1);
    run.load();
    CHECK(list == content);
  }
}

TEST_CASE("a checkpoint refuses a tensor that ended or has other memory", "[io][checkpoint]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/run";
  ferry::io::checkpoint run(path);
  std::optional<table> weights(make<ferry::pageable_space>("weights", 20, 3, std::vector<float>(60, 2.0F)));
  run.add("w", *weights);
  run.save();
  table owner = std::move(*weights);  // memory and entry stay
  weights.reset();
  owner.data()[0] = 3;
  run.save();
  {
    table second("other", 20, 3);
    ferry::io::checkpoint reading(path);
    reading.add("w", second);
    reading.load();
    CHECK(second.data()[0] == 3);
    CHECK(second.data()[59] == 2);
  }
  owner.data()[0] = 4;
  run.load();
  CHECK(owner.data()[0] == 3);
  // A ticket of finished work does not hide that its table was destroyed.
  const ferry::tensor<float, ferry::pinned_space> batch("batch", 1, 3);
  const ferry::ticket unwaited = ferry::scatter(exec_space{}, owner, std::vector{0}, batch);
  exec_space{}.fence("ferry_test::scatter");
  owner = make<ferry::pageable_space>("weights", 20, 3, std::vector<float>(60, 5.0F));
  const auto is_refused = [](const auto& call) {
    try {
      call();
    } catch (const ferry::invalid_argument& refused) {
      return std::string(refused.what()) ==
             "ferry::io::checkpoint: 'w': 'weights' was destroyed, or was given other memory, after it was added";
    }
    return false;
  };
  CHECK(is_refused([&] { run.save(); }));
  CHECK(is_refused([&] { run.save({.changes = true}); }));
  CHECK(is_refused([&] { run.save_async(exec_space{}).wait(); }));
  CHECK(is_refused([&] { run.load(); }));
  CHECK(owner.data()[0] == 5);
}

TEST_CASE("a checkpoint refuses a state that ended or was replaced", "[io][checkpoint]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/run";
  const auto weights = make<ferry::pageable_space>("weights", 20, 3, std::vector<float>(60, 2.0F));
  ferry::optim::adam rule;
  auto state = ferry::optim::make_state(rule, weights);
  ferry::io::checkpoint run(path);
  run.add("adam", rule, state);
  run.save();
  auto owner = std::move(state);
  owner.field(0).data()[5] = 7;
  run.save();
  owner.field(0).data()[5] = 8;
  run.load();
  CHECK(owner.field(0).data()[5] == 7);
  owner = ferry::optim::make_state(rule, weights);
  const auto is_refused = [](const auto& call) {
    try {
      call();
    } catch (const ferry::invalid_argument& refused) {
      return std::string(refused.what()).find("'adam': 'weights") != std::string::npos &&
             std::string(refused.what()).find("was destroyed, or was given other memory") !=
                 std::string::npos;
    }
    return false;
  };
  CHECK(is_refused([&] { run.save(); }));
  CHECK(is_refused([&] { run.load(); }));
}

TEST_CASE("a named array takes a temporary over", "[io][safetensors]") {
  const temporary_folder folder;
  auto random = generator(373);
  const std::string path = folder.path() + "/named.safetensors";
  const auto first = values<float>(random, 12);
  const auto second = values<float>(random, 500);
  std::vector<ferry::io::named_array> list;
  list.emplace_back("first", make<ferry::pageable_space>("first", 4, 3, first));
  list.push_back({"second", std::vector<float>(second)});
  const std::vector<ferry::io::named_array> copies = list;
  list.clear();
  ferry::io::save_safetensors(path, std::span<const ferry::io::named_array>(copies));
  const auto file = ferry::io::open_safetensors(path);
  CHECK(take(file.load<float, ferry::pageable_space>("first")) == first);
  CHECK(take(file.load<float, ferry::pageable_space>("second")) == second);
}

}  // namespace ferry_test::checkpoint_objects_test
