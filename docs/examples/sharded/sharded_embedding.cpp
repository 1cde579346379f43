// SPDX-License-Identifier: Apache-2.0
#include "sharded_embedding.hpp"

#include "../skipgram/policies.hpp"

#include <ferry/distributed.hpp>

#include <stdexcept>
#include <utility>

namespace skipgram {

namespace {

/// As typed_embedding: a sharded table takes the same verbs. The plans are those of the rank's part of the
/// batch, and each verb means one device that works on the parts of all ranks.
template <class Rule>
class sharded_embedding final : public embedding {
 public:
  sharded_embedding(const execution& exec, const ferry::communicator& comm, const embedding_spec& spec)
      : exec_(exec),
        rule_{.lr = spec.learning_rate},
        table_(spec.label, comm, spec.rows, spec.width),
        state_(ferry::optim::make_state(rule_, table_)) {
    if (spec.spread > 0.0)
      ferry::init::uniform(exec_, table_, -spec.spread, spec.spread, spec.seed);
    else
      ferry::init::zeros(exec_, table_);
  }

  ferry::ticket gather(const ferry::row_plan& plan, batch_rows& rows) const override {
    return ferry::gather(exec_, table_, plan, rows);
  }
  ferry::ticket step(const ferry::row_plan& plan, const batch_rows& gradients) override {
    return ferry::step(exec_, rule_, table_, state_, plan, gradients);
  }
  ferry::ticket copy_to(std::span<float> numbers) const override {
    return ferry::copy(exec_, table_, ferry::tensor_view(numbers.data(), table_.rows(), table_.width()));
  }

  std::string describe() const override { return table_.describe() + "; " + std::string(Rule::name); }
  std::int64_t weight_bytes() const override {
    return static_cast<std::int64_t>(table_.width() * sizeof(float));
  }
  std::int64_t state_bytes() const override {
    return weight_bytes() * state_.shard(table_.comm().rank()).fields();
  }

 private:
  using table_type = ferry::sharded_table<float, ferry::mapped_space>;
  using state_type = decltype(ferry::optim::make_state(Rule{}, std::declval<const table_type&>()));

  execution exec_;
  Rule rule_;
  table_type table_;
  state_type state_;
};

}  // namespace

std::pair<std::int64_t, std::int64_t> communicator_group::part_of(std::int64_t items) const {
  return ferry::split_range(items, comm_.rank(), comm_.size());
}

void communicator_group::sum(const execution& exec, std::vector<std::int64_t>& numbers) const {
  ferry::all_reduce(exec, comm_, numbers).wait();
}

std::unique_ptr<embedding> communicator_group::make_embedding(const execution& exec,
                                                              const embedding_spec& spec) const {
  require_sharded(spec.space, spec.path, spec.dtype);
  return dispatch<std::unique_ptr<embedding>>(
      [&](auto rule) -> std::unique_ptr<embedding> {
        return std::make_unique<sharded_embedding<typename decltype(rule)::type>>(exec, comm_, spec);
      },
      choice{optimizers, spec.optimizer});
}

void require_sharded(const std::string& space, const std::string& path, const std::string& dtype) {
  if (space != "mapped" || path != "automatic" || dtype != "float")
    throw std::invalid_argument(
        "tables over ranks are compiled for --space mapped, --path automatic and --dtype float");
}

}  // namespace skipgram
