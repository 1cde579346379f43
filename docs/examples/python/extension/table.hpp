// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of ferry that module.cpp knows: no header of ferry or Kokkos, so that it compiles without nvcc.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace ferry_tables {

/// A DLPack object that this code owns: out of a capsule, or to be put into one.
class dlpack_object {
 public:
  dlpack_object() = default;
  dlpack_object(void* managed, bool versioned) : managed_(managed), versioned_(versioned) {}
  dlpack_object(dlpack_object&& source) noexcept
      : managed_(std::exchange(source.managed_, nullptr)), versioned_(source.versioned_) {}
  dlpack_object& operator=(dlpack_object&&) = delete;
  ~dlpack_object();  ///< calls the deleter, if nobody took the object

  [[nodiscard]] bool versioned() const { return versioned_; }
  [[nodiscard]] bool on_host() const;
  [[nodiscard]] void* release() { return std::exchange(managed_, nullptr); }

 private:
  void* managed_ = nullptr;
  bool versioned_ = false;
};

/// Work in flight, with the arrays that it uses.
class pending {
 public:
  virtual ~pending() = default;
  virtual void wait() = 0;
  virtual bool ready() = 0;
  virtual void then(std::uintptr_t stream) = 0;
};

class optimizer {
 public:
  virtual ~optimizer() = default;
  virtual std::unique_ptr<pending> step(std::uintptr_t stream, dlpack_object indices,
                                        dlpack_object gradients) = 0;
  virtual double get_lr() const = 0;
  virtual void set_lr(double lr) = 0;
};

/// A device as DLPack names it: type and number.
using device = std::pair<int, int>;

/// A table of floats in one of ferry's memory spaces.
class table {
 public:
  virtual ~table() = default;
  virtual std::size_t rows() const = 0;
  virtual std::size_t width() const = 0;
  virtual std::string describe() const = 0;
  virtual std::uintptr_t address() const = 0;
  virtual device where() const = 0;
  virtual void zeros() = 0;
  virtual void uniform(float low, float high, std::uint64_t seed) = 0;
  virtual std::unique_ptr<pending> gather(std::uintptr_t stream, dlpack_object indices,
                                          dlpack_object out) = 0;
  virtual std::unique_ptr<pending> scatter(std::uintptr_t stream, dlpack_object indices,
                                           dlpack_object rows) = 0;
  virtual std::unique_ptr<pending> scatter_add(std::uintptr_t stream, dlpack_object indices,
                                               dlpack_object rows) = 0;
  /// rule: sgd, adagrad or sparse_adam
  virtual std::unique_ptr<optimizer> make_optimizer(const std::string& rule, double lr) = 0;
  /// The whole table, for a consumer on `stream`; 0 and less: as `order` says.
  enum class order { of_stream, none, wait };
  virtual dlpack_object share(bool versioned, order how, std::uintptr_t stream, const device* target) = 0;
  virtual void save(const std::string& path) = 0;
};

/// space: device, pinned, mapped or pageable.
std::unique_ptr<table> make_table(const std::string& space, const std::string& label, std::size_t rows,
                                  std::size_t width);
std::unique_ptr<table> load_table(const std::string& space, const std::string& label,
                                  const std::string& path);

void initialize();
void finalize();
std::string backend();

}  // namespace ferry_tables
