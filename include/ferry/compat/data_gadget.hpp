// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/io/load_npy.hpp>
#include <ferry/io/save_npy.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/gather_to.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/future.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <string>

namespace ferry::speedtorch {

/// SpeedTorch's DataGadget: the rows of a .npy file in a memory space of choice, which batches are taken from
/// and written to. DataGadgetMM is ferry::io::map_npy, which leaves the file on the disk.
template <class T = float, MemorySpace Space = pinned_space>
class data_gadget {
 public:
  /// gadgetInit: loads the file. Throws as io::load_npy.
  explicit data_gadget(const std::string& file) : table_(io::load_npy<T, Space>(file, file)) {}

  /// getData: the rows as a new tensor in device memory, see ferry::gather. Bad indices are thrown by get().
  template <class Exec, class Indices, class... Policies>
  [[nodiscard]] auto get_data(const Exec& exec, const Indices& indices, Policies... policies) const {
    return gather<device_space>(exec, table_, indices, policies...);
  }
  /// insertData: replaces rows; of equal indices the last one wins. See ferry::scatter.
  template <class Exec, class Rows, class Indices, class... Policies>
  ticket insert_data(const Exec& exec, const Rows& rows, const Indices& indices, Policies... policies) {
    return scatter(exec, table_, indices, rows, policies...);
  }

  /// Saves the table as a .npy file.
  void save(const std::string& file) const { io::save_npy(file, table_); }
  /// The whole table.
  /// @{
  [[nodiscard]] tensor<T, Space>& table() { return table_; }
  [[nodiscard]] const tensor<T, Space>& table() const { return table_; }
  /// @}

 private:
  tensor<T, Space> table_;
};

}  // namespace ferry::speedtorch
