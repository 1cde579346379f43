// SPDX-License-Identifier: Apache-2.0
#include "quantized_training.hpp"
#include "support/lanes_of_threads.hpp"

#include <ferry/quantized.hpp>

/// The kernels of devices that step on quantized rows, run by a host: lanes share a row, a block at a time.
namespace ferry_test::quantized_step_lanes_test {

namespace quantization = ferry::quantization;
namespace detail = ferry::detail;
namespace kernels = ferry::kernels;

/// Its blocks are no number of tiles that is a power of two.
struct mxfp8_of_48 : quantization::mxfp8 {
  static constexpr const char* name = "mxfp8_of_48";
  static constexpr int block = 48;
};

template <class Q, class Tile, class Rounding>
void train_by_lanes(std::size_t width, int least = 1) {
  using rule_type = ferry::optim::adam;
  using space = ferry::pinned_space;
  const std::size_t rows = 13;
  const rule_type rule{.lr = 0.3};
  auto random = generator(1400 + width);
  plain_quantized_training<Q, rule_type, 2> expected(rule, random, rows, width);
  auto table = table_of<Q, space>(expected.table);
  auto state = ferry::optim::make_state(rule, table);
  state.set_seed(random());
  const std::vector<std::int64_t> ids{11, 0, 5, 6, 2};
  const auto gradients = values<float>(random, ids.size() * width);
  const auto grads = make<space>("grads", ids.size(), width, gradients);

  const auto weights = detail::weights_of(table);
  using weights_type = std::remove_const_t<decltype(weights)>;
  detail::step_call<detail::step_policies_of<detail::chosen_policies<Rounding>>, rule_type, decltype(state),
                    weights_type>
      call("step", rule, weights, state, std::type_identity<const float>{});
  const auto count = static_cast<std::int64_t>(ids.size());
  const kernels::index_rows<std::int64_t, ferry::bounds::unchecked> source{
      ids.data(), static_cast<std::int64_t>(rows), {}};
  const auto kernel = call.job().template kernel<exec_space, ferry::duplicates::assume_unique, Tile, 2>(
      source, count, make_ref(grads));
  run_by_lanes(kernel, least);

  for (std::size_t p = 0; p < ids.size(); ++p) {
    const auto row = static_cast<std::size_t>(ids[p]);
    const std::vector<float> gradient(gradients.begin() + static_cast<std::ptrdiff_t>(p * width),
                                      gradients.begin() + static_cast<std::ptrdiff_t>((p + 1) * width));
    expected.step(rule, 1, row, gradient, draws_of<Rounding>(state.seed(), 1, row));
  }
  CAPTURE(Q::name, width, Tile::elements, Rounding::name, least);
  const auto bytes = bytes_of(table);
  CHECK(bytes.codes == expected.table.codes);
  CHECK(bytes.scales == expected.table.scales);
  CHECK(take(state.field(0)) == expected.state[0]);
  CHECK(take(state.field(1)) == expected.state[1]);
}

template <class Q>
void train_rows() {
  for (const std::size_t width : {32u, 96u, 160u, 416u}) {
    train_by_lanes<Q, kernels::packed_tile, ferry::rounding::stochastic>(width);
    train_by_lanes<Q, kernels::packed_tile, ferry::rounding::nearest>(width, 32);
    train_by_lanes<Q, kernels::single_tile, ferry::rounding::stochastic>(width);
    if (width > 256) continue;  // a lane has one wide tile
    train_by_lanes<Q, kernels::wide_packed_tile, ferry::rounding::stochastic>(width, 32);
    train_by_lanes<Q, kernels::wide_packed_tile, ferry::rounding::nearest>(width);
  }
  if constexpr (Q::block == 0) {
    train_by_lanes<Q, kernels::packed_tile, ferry::rounding::stochastic>(4);  // one lane
    train_by_lanes<Q, kernels::single_tile, ferry::rounding::nearest>(131);
  }
}

TEST_CASE("lanes of a device step on quantized rows", "[optim][quantized]") {
  if constexpr (std::is_same_v<exec_space, Kokkos::DefaultHostExecutionSpace>) {
    train_rows<quantization::e4m3>();
    train_rows<quantization::per_row<quantization::e4m3>>();
    train_rows<quantization::mxfp8>();
    train_rows<quantization::mxfp4>();
    train_rows<quantization::nvfp4>();
    train_rows<quantization::rowwise_int8>();
    for (const std::size_t width : {8u, 40u, 256u})
      train_by_lanes<quantization::rowwise_int8, kernels::wide_packed_tile, ferry::rounding::stochastic>(
          width);
    for (const std::size_t width : {48u, 96u, 480u}) {
      train_by_lanes<mxfp8_of_48, kernels::packed_tile, ferry::rounding::nearest>(width);
      train_by_lanes<mxfp8_of_48, kernels::single_tile, ferry::rounding::nearest>(width, 32);
    }
  }
}

}  // namespace ferry_test::quantized_step_lanes_test
