// SPDX-License-Identifier: Apache-2.0
#include "io_kit.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>

#include <cstdio>

namespace ferry_test::map_npy_test {

TEST_CASE("rows are gathered from the pages of a file", "[io][map]") {
  auto random = generator();
  const temporary_folder folder;
  const std::string path = folder.path() + "/features.npy";
  const auto content = values<float>(random, 4099 * 37);
  ferry::io::save_npy(path, make<ferry::pageable_space>("features", 4099, 37, content));
  const auto features = ferry::io::map_npy<float>(path);
  CHECK(features.label() == path);
  CHECK((features.rows() == 4099 && features.width() == 37 && features.rank() == 2));
  CHECK(features(17, 3) == content[17 * 37 + 3]);
  const exec_space exec;
  const auto chosen = indices<std::int64_t>(random, 1031, 4099);
  features.prefetch(chosen);
  features.prefetch(std::vector<std::int32_t>{-1, 4098, 4099});
  features.prefetch(0, 4099);
  CHECK_THROWS_AS(features.prefetch(0, 4100), ferry::out_of_range);
  for_each_path<ferry::pageable_space, ferry::device_space, work::moves>([&](auto path_policy) {
    if constexpr (!std::is_same_v<decltype(path_policy), ferry::path::cooperative> &&
                  !std::is_same_v<decltype(path_policy), ferry::path::ordered>) {
      ferry::tensor<float, ferry::device_space> batch("batch", 1031, 37);
      put(batch, std::vector<float>(1031 * 37, -77.0f));
      ferry::gather(exec, features, chosen, batch, path_policy).wait();
      const auto rows = take(batch);
      bool same = true;
      for (std::size_t p = 0; p < 1031; ++p)
        for (std::size_t j = 0; j < 37; ++j)
          same = same && rows[p * 37 + j] == content[static_cast<std::size_t>(chosen[p]) * 37 + j];
      CHECK(same);
    }
  });
  // A plan, a conversion, a slice, a copy, a save.
  const auto plan = ferry::make_plan(exec, chosen, features.rows());
  ferry::tensor<double, ferry::device_space> wide("wide", 1031, 37);
  ferry::gather(exec, features, plan, wide).wait();
  CHECK(take(wide)[5] == static_cast<double>(content[static_cast<std::size_t>(chosen[0]) * 37 + 5]));
  ferry::tensor<float, ferry::device_space> some("some", 2, 37);
  ferry::copy(exec, features.rows_between(100, 102), some).wait();
  CHECK(same_bits(take(some), std::vector<float>(content.begin() + 3700, content.begin() + 3774)));
  const std::vector<std::int64_t> wrong{4099};
  CHECK_THROWS_AS(ferry::gather(exec, features, wrong, some.first(1)).wait(), ferry::out_of_range);
  ferry::io::save_npy(path + ".copy", features);
  CHECK(bytes_of(path + ".copy") == bytes_of(path));
}

TEST_CASE("a mapped file may be removed or replaced", "[io][map]") {
  auto random = generator();
  const temporary_folder folder;
  const std::string path = folder.path() + "/features.npy";
  const auto content = values<float>(random, 4099 * 5);
  ferry::io::save_npy(path, make<ferry::pageable_space>("features", 4099, 5, content));
  auto first = ferry::io::map_npy<float>(path, "features");
  ferry::io::save_npy(path, make<ferry::pageable_space>("features", 1, 5, std::vector<float>(5, 1.0f)));
  const auto features = std::move(first);
  CHECK(features.label() == "features");
  CHECK(features(4098, 4) == content.back());
  CHECK(ferry::io::map_npy<float>(path).rows() == 1);
  std::remove(path.c_str());
  CHECK(features(0, 0) == content.front());
}

TEST_CASE("files that can't be mapped", "[io][map]") {
  CHECK(ferry::io::map_npy<float>(golden("f4.npy"))(4, 2) == golden_value<float>(14));
  CHECK(ferry::io::map_npy<float>(golden("empty.npy")).size() == 0);
  CHECK_THROWS_MATCHES(ferry::io::map_npy<float>(golden("f4_fortran.npy")), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("column-major") && ContainsSubstring("load it")));
  CHECK_THROWS_MATCHES(ferry::io::map_npy<double>(golden("f4.npy")), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("float32 ('<f4'), not float64")));
  const temporary_folder folder;
  const std::string path = folder.path() + "/odd.npy";
  const std::string dictionary = "{'descr':'<f4','fortran_order':False,'shape':(1,)}";
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(dictionary.size() + 1);
  bytes += '\0';
  bytes += dictionary + "\n" + std::string("\0\0\x40\x40", 4);
  write_bytes(path, bytes);
  CHECK_THROWS_MATCHES(ferry::io::map_npy<float>(path), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("begin at byte 61")));
  CHECK(ferry::io::load_npy<float>(path)(0) == 3.0f);
}

TEST_CASE("a tensor of a safetensors file is mapped", "[io][map][safetensors]") {
  const auto m = ferry::io::open_safetensors(golden("all.safetensors"));
  const auto cube = m.map<float>("cube");
  CHECK((cube.rank() == 3 && cube.rows() == 4 && cube.label() == "cube"));
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> batch("batch", 1, 3, 5);
  ferry::gather(exec, cube, std::vector<std::int64_t>{3}, batch).wait();
  CHECK(take(batch)[14] == golden_value<float>(59));
  CHECK_THROWS_AS(m.map<double>("cube"), ferry::invalid_argument);
  CHECK_THROWS_AS(m.map<double>("none of these"), ferry::out_of_range);
}

}  // namespace ferry_test::map_npy_test
