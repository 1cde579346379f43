// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <ferry/interop/array_interface.hpp>
#include <ferry/interop/thrust.hpp>

#include <complex>

namespace ferry_test::array_interface_test {

TEMPLATE_TEST_CASE("the facts for Python's array protocols", "[array_interface]", ferry::device_space,
                   ferry::mapped_space) {
  ferry::tensor<float, TestType> table("table", 3, 4, 5);
  const auto facts = ferry::to_array_interface(table);
  CHECK(facts.shape == std::vector<std::int64_t>{3, 4, 5});
  CHECK(facts.strides == std::vector<std::int64_t>{80, 20, 4});
  CHECK(facts.data == table.data());
  CHECK(facts.typestr == "<f4");
  CHECK(facts.version == 3);
  CHECK_FALSE(facts.read_only);
  CHECK(ferry::to_array_interface(std::as_const(table)).read_only);
  const auto part = table.rows_between(1, 3);
  CHECK(ferry::to_array_interface(part).data == table.data() + 20);
  ferry::tensor<double, TestType> none("none", 0, 2);
  CHECK(ferry::to_array_interface(none).data == nullptr);
}

TEST_CASE("the strings of element types are NumPy's", "[array_interface]") {
  using ferry::detail::type_string;
  struct pair {
    float a;
    std::int16_t b;
  };
  CHECK(type_string<double>() == "<f8");
  CHECK(type_string<ferry::half_t>() == "<f2");
  CHECK(type_string<ferry::bhalf_t>() == "<V2");
  CHECK(type_string<std::int8_t>() == "|i1");
  CHECK(type_string<ferry::fp8_e4m3_t>() == "|V1");
  CHECK(type_string<std::uint64_t>() == "<u8");
  CHECK(type_string<bool>() == "|b1");
  CHECK(type_string<std::complex<float>>() == "<c8");
  CHECK(type_string<pair>() == "|V8");
}

/// The members that Thrust's device_ptr and device_vector offer.
template <class T>
class tagged_pointer {
 public:
  using raw_pointer = T*;
  explicit tagged_pointer(T* data) : data_(data) {}
  [[nodiscard]] T* get() const { return data_; }

 private:
  T* data_;
};

template <class T>
class tagged_vector {
 public:
  using value_type = T;
  using pointer = tagged_pointer<T>;
  explicit tagged_vector(const std::vector<T>& contents)
      : memory_(make<ferry::device_space>("memory", contents)) {}
  [[nodiscard]] pointer data() { return pointer(memory_.data()); }
  [[nodiscard]] tagged_pointer<const T> data() const { return tagged_pointer<const T>(memory_.data()); }
  [[nodiscard]] std::size_t size() const { return memory_.size(); }
  [[nodiscard]] std::vector<T> contents() const { return take(memory_); }

 private:
  ferry::tensor<T, ferry::device_space> memory_;
};

TEST_CASE("verbs take vectors with tagged pointers", "[thrust]") {
  const exec_space exec;
  const auto table = make<ferry::mapped_space>("table", 4, 1, std::vector<float>{1, 2, 3, 4});
  const tagged_vector<std::int32_t> indices({3, 0, 3});
  tagged_vector<float> batch({-1, -1, -1});
  STATIC_CHECK(ferry::ArrayLike<tagged_vector<float>>);
  STATIC_CHECK(std::is_const_v<decltype(ferry::make_ref(indices))::value_type>);
  ferry::gather(exec, table, indices, batch).wait();
  CHECK(batch.contents() == std::vector<float>{4, 1, 4});

  tagged_vector<float> flat({1, 2, 3, 4, 5, 6});
  const auto view = ferry::thrust_view(flat.data(), 3, 2);
  CHECK((view.rows() == 3 && view.width() == 2));
  ferry::tensor<float, ferry::device_space> rows("rows", 1, 2);
  ferry::gather(exec, view, std::vector<int>{1}, rows).wait();
  CHECK(take(rows) == std::vector<float>{3, 4});
  CHECK(ferry::to_thrust<tagged_pointer<float>>(rows).get() == rows.data());
  CHECK(ferry::to_thrust<tagged_pointer<const float>>(std::as_const(rows)).get() == rows.data());
  STATIC_CHECK_FALSE(ferry::detail::TaggedVector<std::vector<float>>);
}

}  // namespace ferry_test::array_interface_test
