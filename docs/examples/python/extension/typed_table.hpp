// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "streams.hpp"
#include "table.hpp"

#include <ferry/ferry.hpp>
#include <ferry/interop/dlpack.hpp>
#include <ferry/io.hpp>
#include <ferry/io/load_npy.hpp>
#include <ferry/io/save_npy.hpp>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ferry_tables {

/// A ticket with the arrays of its verb. The ticket dies first, and waits.
template <class... Arrays>
class pending_verb final : public pending {
 public:
  explicit pending_verb(ferry::ticket work, Arrays&&... arrays)
      : arrays_(std::move(arrays)...), work_(std::move(work)) {}
  void wait() override { work_.wait(); }
  bool ready() override { return work_.ready(); }
  void then(std::uintptr_t stream) override { work_.then(instance_of(stream)); }

 private:
  std::tuple<Arrays...> arrays_;
  ferry::ticket work_;
};

template <class... Arrays>
std::unique_ptr<pending> keep(ferry::ticket work, Arrays&&... arrays) {
  return std::make_unique<pending_verb<std::remove_cvref_t<Arrays>...>>(std::move(work),
                                                                        std::forward<Arrays>(arrays)...);
}

/// Calls run(array) with another library's array as a tensor of ferry, in device_space or pageable_space.
template <class T, class Run>
auto with_array(dlpack_object object, const char* label, const Run& run) {
  const auto taken_as = [&]<class Space>(Space) {
    const bool versioned = object.versioned();
    void* const managed = object.release();
    return versioned
               ? run(ferry::from_dlpack<T, Space>(static_cast<DLManagedTensorVersioned*>(managed), label))
               : run(ferry::from_dlpack<T, Space>(static_cast<DLManagedTensor*>(managed), label));
  };
  if constexpr (!ferry::execution_backend<exec_space>::device_is_host)
    if (!object.on_host()) return taken_as(ferry::device_space{});
  return taken_as(ferry::pageable_space{});
}

/// Calls run(plan, rows, indices) with the plan of the indices, which are sorted once, and another library's rows.
/// The indices must live as long as the work.
template <class Run>
std::unique_ptr<pending> with_plan(std::uintptr_t stream, std::size_t table_rows, dlpack_object indices,
                                   dlpack_object rows, const char* label, const Run& run) {
  return with_array<const std::int64_t>(std::move(indices), "indices", [&](auto&& list) {
    return with_array<const float>(std::move(rows), label, [&](auto&& source) {
      const exec_space exec = instance_of(stream);
      auto plan = ferry::make_plan(exec, list, table_rows);
      ferry::ticket work = run(exec, plan, source);
      return keep(std::move(work), std::move(plan), std::move(source), std::move(list));
    });
  });
}

template <class Space, class Rule>
class typed_optimizer final : public optimizer {
 public:
  typed_optimizer(std::shared_ptr<ferry::tensor<float, Space>> rows, Rule rule)
      : rows_(std::move(rows)), rule_(rule), state_(ferry::optim::make_state(rule_, *rows_)) {}

  std::unique_ptr<pending> step(std::uintptr_t stream, dlpack_object indices,
                                dlpack_object gradients) override {
    return with_plan(stream, rows_->rows(), std::move(indices), std::move(gradients), "gradients",
                     [&](const exec_space& exec, const ferry::row_plan& plan, const auto& source) {
                       return ferry::step(exec, rule_, *rows_, state_, plan, source);
                     });
  }
  double get_lr() const override { return rule_.lr; }
  void set_lr(double lr) override {
    Rule changed = rule_;
    changed.lr = lr;
    changed.check();
    rule_ = changed;
  }

 private:
  std::shared_ptr<ferry::tensor<float, Space>> rows_;
  Rule rule_;
  decltype(ferry::optim::make_state(std::declval<Rule>(),
                                    std::declval<ferry::tensor<float, Space>&>())) state_;
};

template <class Space>
class typed_table final : public table {
 public:
  explicit typed_table(ferry::tensor<float, Space>&& rows)
      : rows_(std::make_shared<ferry::tensor<float, Space>>(std::move(rows))) {
    if (rows_->rank() != 2)
      throw ferry::invalid_argument("'" + rows_->label() + "' has " + std::to_string(rows_->rank()) +
                                    " extents, a table has 2");
  }

  std::size_t rows() const override { return rows_->rows(); }
  std::size_t width() const override { return rows_->width(); }
  std::string describe() const override { return rows_->describe(); }
  std::uintptr_t address() const override { return reinterpret_cast<std::uintptr_t>(rows_->data()); }
  device where() const override {
    auto* const shared = ferry::to_dlpack(exec_space(), rows_);
    const device place{shared->dl_tensor.device.device_type, shared->dl_tensor.device.device_id};
    shared->deleter(shared);
    return place;
  }

  void zeros() override { ferry::init::zeros(exec_space(), *rows_); }
  void uniform(float low, float high, std::uint64_t seed) override {
    ferry::init::uniform(exec_space(), *rows_, low, high, seed);
  }

  std::unique_ptr<pending> gather(std::uintptr_t stream, dlpack_object indices, dlpack_object out) override {
    return with_array<const std::int64_t>(std::move(indices), "indices", [&](auto&& list) {
      return with_array<float>(std::move(out), "out", [&](auto&& target) {
        auto work = ferry::gather(instance_of(stream), *rows_, list, target);
        return keep(std::move(work), std::move(list), std::move(target));
      });
    });
  }
  std::unique_ptr<pending> scatter(std::uintptr_t stream, dlpack_object indices,
                                   dlpack_object rows) override {
    return with_plan(stream, rows_->rows(), std::move(indices), std::move(rows), "rows",
                     [&](const exec_space& exec, const ferry::row_plan& plan, const auto& source) {
                       return ferry::scatter(exec, *rows_, plan, source);
                     });
  }
  std::unique_ptr<pending> scatter_add(std::uintptr_t stream, dlpack_object indices,
                                       dlpack_object rows) override {
    return with_plan(stream, rows_->rows(), std::move(indices), std::move(rows), "rows",
                     [&](const exec_space& exec, const ferry::row_plan& plan, const auto& source) {
                       return ferry::scatter_add(exec, *rows_, plan, source);
                     });
  }

  std::unique_ptr<optimizer> make_optimizer(const std::string& rule, double lr) override {
    const auto make = [&](auto chosen) -> std::unique_ptr<optimizer> {
      chosen.lr = lr;
      chosen.check();
      return std::make_unique<typed_optimizer<Space, decltype(chosen)>>(rows_, chosen);
    };
    if (rule == "sgd") return make(ferry::optim::sgd{});
    if (rule == "adagrad") return make(ferry::optim::adagrad{});
    if (rule == "sparse_adam") return make(ferry::optim::sparse_adam{});
    throw ferry::invalid_argument("there is no rule '" + rule + "'; take sgd, adagrad or sparse_adam");
  }

  dlpack_object share(bool versioned, order how, std::uintptr_t stream, const device* target) override {
    std::optional<DLDevice> device_type;
    if (target != nullptr) device_type = DLDevice{static_cast<DLDeviceType>(target->first), target->second};
    const auto shared = [&]<class Managed>(std::type_identity<Managed>) {
      if (how == order::wait) return dlpack_object(ferry::to_dlpack<Managed>(rows_, device_type), versioned);
      // Without an order the consumer takes care itself: it gets the order of an instance that it does not use.
      const exec_space exec = how == order::none ? exec_space() : instance_of(stream);
      return dlpack_object(ferry::to_dlpack<Managed>(exec, rows_, device_type), versioned);
    };
    return versioned ? shared(std::type_identity<DLManagedTensorVersioned>{})
                     : shared(std::type_identity<DLManagedTensor>{});
  }

  void save(const std::string& path) override { ferry::io::save_npy(path, *rows_); }

 private:
  std::shared_ptr<ferry::tensor<float, Space>> rows_;
};

template <class Space>
std::unique_ptr<table> make_in(const std::string& label, std::size_t rows, std::size_t width) {
  return std::make_unique<typed_table<Space>>(ferry::tensor<float, Space>(label, rows, width));
}
template <class Space>
std::unique_ptr<table> load_in(const std::string& label, const std::string& path) {
  return std::make_unique<typed_table<Space>>(ferry::io::load_npy<float, Space>(path, label));
}

}  // namespace ferry_tables
