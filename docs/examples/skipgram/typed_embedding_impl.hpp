// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies.hpp"
#include "typed_embedding.hpp"

#include <memory>
#include <span>
#include <string>
#include <utility>

namespace skipgram {

/// The table itself: all choices are types here, and each verb below is compiled for them.
template <class T, class Space, class Path, class Rule>
class typed_embedding final : public embedding {
 public:
  typed_embedding(const execution& exec, const embedding_spec& spec)
      : exec_(exec), rule_{.lr = spec.learning_rate}, table_(spec.label, spec.rows, spec.width) {
    if (spec.spread > 0.0)
      ferry::init::uniform(exec_, table_, -spec.spread, spec.spread, spec.seed);
    else
      ferry::init::zeros(exec_, table_);
    state_ = ferry::optim::make_state(rule_, table_);
  }

  ferry::ticket gather(const ferry::row_plan& plan, batch_rows& rows) const override {
    return ferry::gather(exec_, table_, plan, rows, Path{});
  }
  /// Rows that the plan names more than once get the sum of their gradients.
  ferry::ticket step(const ferry::row_plan& plan, const batch_rows& gradients) override {
    return ferry::step(exec_, rule_, table_, state_, plan, gradients, Path{});
  }
  ferry::ticket copy_to(std::span<float> numbers) const override {
    return ferry::copy(exec_, table_, numbers);
  }

  std::string describe() const override {
    return table_.describe() + "; " + std::string(Rule::name) + ", path::" + std::string(Path::name);
  }
  std::int64_t weight_bytes() const override { return row_bytes<T>(1); }
  std::int64_t state_bytes() const override {
    return row_bytes<typename state_type::value_type>(state_.fields());
  }

 private:
  using table_type = ferry::tensor<T, Space>;
  using state_type = decltype(ferry::optim::make_state(Rule{}, std::declval<const table_type&>()));

  template <class Element>
  std::int64_t row_bytes(int arrays) const {
    return static_cast<std::int64_t>(table_.width() * sizeof(Element)) * arrays;
  }

  execution exec_;
  Rule rule_;
  table_type table_;
  state_type state_;
};

template <class T>
std::unique_ptr<embedding> make_typed_embedding(const execution& exec, const embedding_spec& spec) {
  return dispatch<std::unique_ptr<embedding>>(
      [&](auto space, auto path, auto rule) -> std::unique_ptr<embedding> {
        using where = typename decltype(space)::type;
        using how = typename decltype(path)::type;
        using what = typename decltype(rule)::type;
        if constexpr (is_supported<where, how>)
          return std::make_unique<typed_embedding<T, where, how, what>>(exec, spec);
        else
          return nullptr;  // make_embedding has refused it
      },
      choice{spaces, spec.space}, choice{paths, spec.path}, choice{optimizers, spec.optimizer});
}

}  // namespace skipgram
