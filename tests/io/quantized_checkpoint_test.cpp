// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/checkpoint.hpp>
#include <ferry/quantized.hpp>

#include "quantized/quantized.hpp"
#include "support/folder.hpp"

namespace ferry_test::quantized_checkpoint_test {

namespace quantization = ferry::quantization;

template <class Q>
void save_and_load(std::mt19937_64& random, std::size_t rows, std::size_t width) {
  const temporary_folder folder;
  const auto saved = random_codes<Q>(random, rows, width);
  {
    using scale_space = std::conditional_t<Q::in_records, ferry::mapped_space, ferry::device_space>;
    auto table = table_of<Q, ferry::mapped_space, scale_space>(saved);
    ferry::io::checkpoint run(folder.path() + "/run");
    run.add("engram", table);
    auto moved = std::move(table);
    run.save();
  }
  auto contents = random_codes<Q>(random, rows, width);
  contents.tensor_scale = 1.0f;
  auto table = table_of<Q, ferry::pinned_space>(contents);
  ferry::io::checkpoint run(folder.path() + "/run");
  run.add("engram", table);
  CHECK_THROWS_AS(run.add("engram", table), ferry::invalid_argument);
  auto moved = std::move(table);
  run.load();
  CAPTURE(Q::name, rows, width);
  CHECK(same(bytes_of(moved), saved));
}

TEST_CASE("quantized tables come back from a checkpoint", "[quantized][checkpoint]") {
  auto random = generator(431);
  save_and_load<quantization::mxfp8>(random, 20, 64);
  save_and_load<quantization::nvfp4>(random, 20, 48);
  save_and_load<quantization::e4m3>(random, 20, 33);
  save_and_load<quantization::per_row<quantization::e4m3>>(random, 20, 17);
  save_and_load<six_bits>(random, 20, 32);
  save_and_load<quantization::rowwise_int8>(random, 20, 33);
}

TEST_CASE("a quantized table whose names are taken leaves a checkpoint as it was",
          "[quantized][checkpoint]") {
  const temporary_folder folder;
  auto random = generator(432);
  auto table =
      table_of<quantization::nvfp4, ferry::mapped_space>(random_codes<quantization::nvfp4>(random, 4, 16));
  for (const std::string used_name : {"engram/codes", "engram/scales", "engram/scale"}) {
    CAPTURE(used_name);
    ferry::io::checkpoint run(folder.path() + "/run");
    int number = 3;
    run.add(used_name, number);
    CHECK_THROWS_AS(run.add("engram", table), ferry::invalid_argument);
    CHECK_THROWS_AS(run.add(used_name, number), ferry::invalid_argument);
    for (const std::string name : {"engram/codes", "engram/scales", "engram/scale"})
      if (name != used_name) CHECK_NOTHROW(run.add(name, number));
  }
}

}  // namespace ferry_test::quantized_checkpoint_test
