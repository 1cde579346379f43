// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_kit.hpp"

/// Training that goes on from a checkpoint has the bits of training that never stopped.
namespace ferry_test::checkpoint_resume_test {

namespace optim = ferry::optim;
using ferry::device_space;
using ferry::mapped_space;

TEST_CASE("resumed training has the same bits", "[io][checkpoint]") {
  check_resumed<float, mapped_space>(optim::adam{.lr = 0.01, .weight_decay = 0.1, .amsgrad = true});
  check_resumed<double, device_space>(optim::sgd{.lr = 0.05, .momentum = 0.9, .nesterov = true});
  check_resumed<float, device_space>(optim::sgd{.lr = 0.05});
  check_resumed<float, mapped_space>(optim::adagrad{.lr = 0.1, .lr_decay = 0.01}, true);
  check_resumed<float, mapped_space>(optim::rowwise_adagrad{});
}

TEST_CASE("resumed training by row counts has the same bits", "[io][checkpoint]") {
  check_resumed<float, mapped_space, optim::adam, ferry::step_count::per_row>(optim::adam{.lr = 0.01}, true);
}

TEST_CASE("resumed training that catches up has the same bits", "[io][checkpoint]") {
  check_resumed<float, mapped_space, optim::adam, ferry::step_count::catch_up>(
      optim::adam{.lr = 0.01, .weight_decay = 0.01}, true);
  check_resumed<float, device_space, optim::sgd, ferry::step_count::catch_up>(
      optim::sgd{.lr = 0.01, .momentum = 0.9});
}

TEST_CASE("resumed training at random rounding has the same bits", "[io][checkpoint]") {
  check_resumed<ferry::bhalf_t, mapped_space, optim::adagrad, ferry::rounding::stochastic>(
      optim::adagrad{.lr = 0.1});
}

TEST_CASE("resumed training by a chain has the same bits", "[io][checkpoint]") {
  check_resumed<float, mapped_space>(
      optim::chain{optim::adam{.lr = 0.01}, optim::clip_norm{0.5}, optim::max_norm{3.0}});
}

}  // namespace ferry_test::checkpoint_resume_test
