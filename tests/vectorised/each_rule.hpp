// SPDX-License-Identifier: Apache-2.0
#pragma once

/// step(rule, fields) for every rule by elements and every number of its fields.
#define FERRY_TEST_EACH_RULE(step)                                                                           \
  step(sgd, 0) step(sgd, 1) step(adagrad, 1) step(adam, 2) step(adam, 3) step(adamw, 2) step(sparse_adam, 2) \
      step(nadam, 2) step(adadelta, 2) step(adamax, 2) step(rmsprop, 1) step(rmsprop, 2) step(rmsprop, 3)    \
          step(rprop, 2) step(asgd, 1) step(lion, 1) step(ftrl, 2)
