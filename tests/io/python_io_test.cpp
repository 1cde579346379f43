// SPDX-License-Identifier: Apache-2.0
#include "io_kit.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>

#include <sys/wait.h>
#include <unistd.h>

namespace ferry_test::python_io_test {

struct point {
  float x;
  std::int64_t id;
};

template <class T>
std::vector<T> random_bits(std::mt19937_64& random, std::size_t count) {
  std::vector<T> result(count);
  for (auto& element : result) {
    std::uint64_t bits = random();
    if (std::is_same_v<T, bool>) bits &= 0x0101010101010101u;
    std::memcpy(static_cast<void*>(&element), &bits, std::min(sizeof(T), sizeof bits));
  }
  return result;
}

template <class T, class Space>
std::string raw(const ferry::tensor<T, Space>& array) {
  const auto host = take(array);
  return {reinterpret_cast<const char*>(host.data()), host.size() * sizeof(T)};
}

template <class T>
void write_for_python(const std::string& folder, const char* name,
                      const ferry::tensor<T, ferry::mapped_space>& table) {
  ferry::io::save_npy(folder + "/ferry_" + name + ".npy", table);
  write_bytes(folder + "/ferry_" + name + ".raw", raw(table));
}

template <class T>
ferry::tensor<T, ferry::mapped_space> table_of(std::mt19937_64& random) {
  return make<ferry::mapped_space>("table", 1031, 3, random_bits<T>(random, 1031 * 3));
}

template <class T>
void read_from_python(const std::string& folder, const ferry::io::safetensors_file& m,
                      const std::string& name) {
  CAPTURE(name);
  for (const char* kind : {"1C", "1F", "2C", "2F", "3C", "3F"}) {
    const std::string path = folder + "/numpy_" + name + "_" + kind;
    const auto table = ferry::io::load_npy<T>(path + ".npy");
    CHECK(table.rank() == (kind[1] == 'F' ? 3 : 2));
    CHECK((raw(table) == bytes_of(path + ".raw")));
  }
  CHECK((raw(m.load<T>(name)) == bytes_of(folder + "/python_" + name + ".raw")));
}

TEST_CASE("NumPy and safetensors read ferry's files, and ferry theirs", "[io][python]") {
  const std::string script = tests_folder() + "/io/python_io.py";
  if (::access(script.c_str(), R_OK) != 0) SKIP("the sources of the tests are not on this machine");
  std::mt19937_64 random(std::random_device{}());
  const temporary_folder folder;
  const auto i8 = table_of<std::int8_t>(random);
  const auto i16 = table_of<std::int16_t>(random);
  const auto i32 = table_of<std::int32_t>(random);
  const auto i64 = table_of<std::int64_t>(random);
  const auto u8 = table_of<std::uint8_t>(random);
  const auto u16 = table_of<std::uint16_t>(random);
  const auto u32 = table_of<std::uint32_t>(random);
  const auto u64 = table_of<std::uint64_t>(random);
  const auto f16 = table_of<ferry::half_t>(random);
  const auto f32 = table_of<float>(random);
  const auto f64 = table_of<double>(random);
  const auto b16 = table_of<ferry::bhalf_t>(random);
  const auto& path_of_folder = folder.path();
  write_for_python(path_of_folder, "int8", i8);
  write_for_python(path_of_folder, "int16", i16);
  write_for_python(path_of_folder, "int32", i32);
  write_for_python(path_of_folder, "int64", i64);
  write_for_python(path_of_folder, "uint8", u8);
  write_for_python(path_of_folder, "uint16", u16);
  write_for_python(path_of_folder, "uint32", u32);
  write_for_python(path_of_folder, "uint64", u64);
  write_for_python(path_of_folder, "float16", f16);
  write_for_python(path_of_folder, "float32", f32);
  write_for_python(path_of_folder, "float64", f64);
  write_for_python(path_of_folder, "bfloat16", b16);
  write_for_python(path_of_folder, "struct", table_of<point>(random));
  ferry::io::save_safetensors(path_of_folder + "/ferry.safetensors",
                              {{"int8", i8},
                               {"int16", i16},
                               {"int32", i32},
                               {"int64", i64},
                               {"uint8", u8},
                               {"uint16", u16},
                               {"uint32", u32},
                               {"uint64", u64},
                               {"float16", f16},
                               {"float32", f32},
                               {"float64", f64},
                               {"bfloat16", b16}},
                              {{"made by", "ferry \u2708"}});

  const auto e4m3 = table_of<ferry::fp8_e4m3_t>(random);
  const auto e5m2 = table_of<ferry::fp8_e5m2_t>(random);
  const auto e8m0 = table_of<ferry::ue8m0_t>(random);
  const auto e2m1 = table_of<ferry::fp4_e2m1_pair_t>(random);
  write_for_python(path_of_folder, "float8_e4m3fn", e4m3);
  write_for_python(path_of_folder, "float8_e5m2", e5m2);
  write_for_python(path_of_folder, "float8_e8m0fnu", e8m0);
  write_bytes(path_of_folder + "/ferry_float4_e2m1fn_x2.raw", raw(e2m1));
  ferry::io::save_safetensors(
      path_of_folder + "/ferry_fp8.safetensors",
      {{"float8_e4m3fn", e4m3}, {"float8_e5m2", e5m2}, {"float8_e8m0fnu", e8m0}, {"float4_e2m1fn_x2", e2m1}});

  const int status = std::system(
      (std::string("'") + FERRY_TESTS_PYTHON + "' '" + script + "' '" + path_of_folder + "'").c_str());
  if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127))
    SKIP("Python's packages numpy, ml_dtypes and safetensors are missing");
  REQUIRE(status == 0);

  const auto m = ferry::io::open_safetensors(path_of_folder + "/python.safetensors");
  CHECK(m.names().size() == 13);
  read_from_python<std::int8_t>(path_of_folder, m, "int8");
  read_from_python<std::int16_t>(path_of_folder, m, "int16");
  read_from_python<std::int32_t>(path_of_folder, m, "int32");
  read_from_python<std::int64_t>(path_of_folder, m, "int64");
  read_from_python<std::uint8_t>(path_of_folder, m, "uint8");
  read_from_python<std::uint16_t>(path_of_folder, m, "uint16");
  read_from_python<std::uint32_t>(path_of_folder, m, "uint32");
  read_from_python<std::uint64_t>(path_of_folder, m, "uint64");
  read_from_python<ferry::half_t>(path_of_folder, m, "float16");
  read_from_python<float>(path_of_folder, m, "float32");
  read_from_python<double>(path_of_folder, m, "float64");
  read_from_python<ferry::bhalf_t>(path_of_folder, m, "bfloat16");
  const auto bytes = ferry::io::open_safetensors(path_of_folder + "/python_fp8.safetensors");
  const auto read_bytes = [&]<class T>(T, const std::string& name) {
    CAPTURE(name);
    const std::string expected = bytes_of(path_of_folder + "/numpy_" + name + ".raw");
    CHECK(expected.size() == 257 * 3);
    CHECK((raw(ferry::io::load_npy<T>(path_of_folder + "/numpy_" + name + ".npy")) == expected));
    CHECK((raw(bytes.load<T>(name)) == expected));
  };
  read_bytes(ferry::fp8_e4m3_t{}, "float8_e4m3fn");
  read_bytes(ferry::fp8_e5m2_t{}, "float8_e5m2");
  read_bytes(ferry::ue8m0_t{}, "float8_e8m0fnu");
  const auto flags = ferry::io::load_npy<bool>(path_of_folder + "/numpy_bool_1F.npy");
  CHECK((std::string(reinterpret_cast<const char*>(flags.data()), flags.size()) ==
         bytes_of(path_of_folder + "/numpy_bool_1F.raw")));
}

}  // namespace ferry_test::python_io_test
