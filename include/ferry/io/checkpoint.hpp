// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/concepts/optimizer.hpp>
#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/checkpoint_options.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_refusals.hpp>
#include <ferry/io/detail/state_entry.hpp>
#include <ferry/io/detail/variable_entry.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/quantized/quantizations/rowwise_int8.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {
class checkpoint_core;
}

/// Files: checkpoints, .npy and safetensors.
namespace ferry::io {

/// Tables, optimizers with their states, and numbers, saved together in a folder and loaded again. Training
/// that goes on from a loaded checkpoint has the bits of training that never stopped.
///
///   ferry::io::checkpoint run("run.ckpt");
///   run.add("weights", table);
///   run.add("adam", adam, state);
///   run.add("epoch", epoch);
///   if (run.exists()) run.load();
///   ...
///   run.save();                                  // or: auto saving = run.save_async(exec);
///
/// A save is atomic: after a crash, a kill or a full disk the folder holds the checkpoint of before the save
/// or the new one, complete, and load() finds it. load() checks everything, checksums too, before it changes
/// anything. docs/checkpoints.md describes the files byte by byte.
///
/// The objects are kept as references: they must live, and their memory must stay where it is, until the last
/// call that uses them. Moving a tensor or a state is allowed. A vector may be resized: a save takes the
/// elements that it has then, and a load gives it the length that was saved. A tensor or state that ended, or
/// was given other memory, is refused with invalid_argument. Plans are not saved: make_plan makes them anew.
/// Calls of several threads are served one after the other; ranks of a group save and load sharded tables
/// together. Saves into one folder by two objects or processes at the same time throw io_error.
class checkpoint {
 public:
  /// `path` names the folder; the first save makes it. Throws invalid_argument for a path that is empty or
  /// has a NUL inside, and for options outside of their range.
  explicit checkpoint(std::string path, const checkpoint_options& options = {});
  /// Takes what the other has been given; its save in the background goes on.
  checkpoint(checkpoint&&) noexcept;
  /// As above, after a wait for the save of this one.
  checkpoint& operator=(checkpoint&&) noexcept;
  checkpoint(const checkpoint&) = delete;
  checkpoint& operator=(const checkpoint&) = delete;
  /// Waits for a save in the background. Its ticket remains valid.
  ~checkpoint();

  /// The folder.
  [[nodiscard]] const std::string& path() const;

  /// Adds an array under a name of its own: a tensor, slice, view, Kokkos::View with adjacent elements in a
  /// row, or a span or vector, of trivially copyable elements and in any memory space. Throws
  /// invalid_argument for a name that is taken, empty handles, and rows whose elements are not adjacent.
  template <class Array>
    requires(detail::is_array_of_values<std::remove_reference_t<Array>>())
  void add(const std::string& name, Array&& array) {
    detail::require_lasting<Array>();
    auto entry = std::make_unique<detail::array_entry>(name, "array", std::vector<detail::manifest_fact>{},
                                                       detail::as_stored("", make_ref(array), name));
    if constexpr (detail::may_be_resized<std::remove_cvref_t<Array>>) entry->look_at(array);
    add_entry(std::move(entry));
  }
  /// Adds a table of 8-bit rows.
  template <MemorySpace Space>
  void add(const std::string& name, rowwise_int8_tensor<Space>& table) {
    add_entry(std::make_unique<detail::array_entry>(
        name, "rowwise_int8",
        std::vector<detail::manifest_fact>{{"width", detail::manifest_fact::natural, {}, {table.width()}}},
        detail::as_stored("", make_ref(table.records()), name)));
  }
  /// Adds a table of quantized rows as "<name>/codes", "<name>/scales" if blocks have scales, and
  /// "<name>/scale", the factor, if the table has one.
  template <class Table>
    requires detail::is_kept_in_parts<Table>
  void add(const std::string& name, Table& table) {
    detail::add_quantized(*this, name, table, [this](const std::string& part) { drop(part); });
  }
  /// Adds a variable: a number, an enumerator, a std::string or a std::vector of them, an engine or a
  /// distribution of the standard header random (by its text, see operator<<), or a trivially copyable struct
  /// (by its bytes). load() sets it, or compares it if it is const. Of pointers inside of a struct nobody
  /// knows: their targets are not saved.
  template <class Variable>
    requires detail::is_kept_variable<Variable>
  void add(const std::string& name, Variable& variable) {
    add_entry(detail::make_variable_entry(name, variable, ""));
  }
  /// Adds a trivially copyable struct, and the name of its layout: one of your own, which you change with the
  /// struct. load() compares the name and the size, and throws io_error if one of them differs.
  template <class Struct>
    requires(detail::kind_of_variable<Struct>() == detail::variable_kind::record)
  void add(const std::string& name, Struct& object, const std::string& layout) {
    add_entry(detail::make_variable_entry(name, object, layout));
  }

  /// Adds a rule, or a chain, and the state that make_state made for it: the rule's name and options, those
  /// of the transforms, the fields, steps(), skipped(), seed(), and with step_count::per_row and catch_up the
  /// counters of the rows and the recorded options of past steps. Arrays that transforms read, such as the
  /// mask of frozen_rows, are yours to add.
  ///
  /// load() sets the options of a rule that is passed as a variable. It compares those of a const or
  /// temporary one, and throws if they differ.
  template <class Rule, Optimizer StateRule, class T, MemorySpace Space>
  void add(const std::string& name, Rule&& rule, optim::state<StateRule, T, Space>& state) {
    add_state<StateRule>(name, rule, std::is_lvalue_reference_v<Rule>, state);
  }
  /// Adds a rule and records: the weights as "<name>/weights", the rest as `name`. The file does not know
  /// how rows lie in memory: what records have saved loads into a table and a state of these names, and the
  /// other way round.
  template <class Rule, Optimizer StateRule, class T, class StateType, MemorySpace Space>
  void add(const std::string& name, Rule&& rule, optim::records<StateRule, T, StateType, Space>& records) {
    add(name + "/weights", name, std::forward<Rule>(rule), records);
  }
  /// As above, with a name for the weights and one for the state.
  template <class Rule, Optimizer StateRule, class T, class StateType, MemorySpace Space>
  void add(const std::string& weights, const std::string& name, Rule&& rule,
           optim::records<StateRule, T, StateType, Space>& records) {
    require_name(name);
    add(weights, records.table());
    try {
      add_state<StateRule>(name, rule, std::is_lvalue_reference_v<Rule>, records);
    } catch (...) {
      drop(weights);
      throw;
    }
  }

  /// Adds a sharded table or state: see ferry/distributed/sharded/checkpoint.hpp.
  /// @{
  template <class Object>
    requires detail::CheckpointPart<Object>
  void add(const std::string& name, Object& object) {
    add_entry(detail::checkpoint_part<Object>::entry(name, object));
  }
  template <class Rule, class State>
    requires detail::CheckpointPart<State>
  void add(const std::string& name, Rule&& rule, State& state) {
    add_entry(detail::checkpoint_part<State>::entry(name, rule, std::is_lvalue_reference_v<Rule>, state));
  }
  /// @}

  /// Refuses what a checkpoint can't hold. Does not compile.
  /// @{
  template <class Object>
    requires(detail::is_refused_object<Object>())
  void add(const std::string&, Object&&) { detail::refuse_object<Object>(); }
  template <class Rule, class State>
    requires(detail::is_refused_state<Rule, State>())
  void add(const std::string&, Rule&&, State&&) { detail::refuse_state<State>(); }
  /// @}

  /// Writes everything that was added, and makes it the newest generation of the folder. Waits for work in
  /// flight on the tensors, and blocks until the files are on the disk. Throws io_error; the folder then
  /// holds the checkpoint that it held before, or the new one if only the last step failed, which brings the
  /// folder's entries to the disk.
  ///
  /// Wait for the tickets of steps with nonfinite::skip or with indices that may be bad first: a step that is
  /// taken back is taken back by its wait().
  void save(const save_options& options = {});
  /// As above, with save_options::name: save("best"). Throws invalid_argument for an empty name.
  template <class Name>
    requires std::is_convertible_v<const Name&, std::string>
  void save(const Name& name) { save_as(name); }

  /// As save(), of everything as it is after the work that `exec` has been given so far; later work does not
  /// show. Waits for that work, copies the arrays into host memory, and returns; a thread of ferry writes the
  /// copy. The memory of the copy is at most save_options::snapshot_bytes, and is released when the save
  /// ends.
  ///
  /// The ticket's wait() throws io_error. The arrays are free when the call returns. A save in the background
  /// is waited for by the next save or load of this object, and by its destructor.
  template <class Exec>
  [[nodiscard("the save is still in flight: wait() for its ticket or detach() it")]] ticket save_async(
      const Exec& exec, const save_options& options = {}) {
    static_assert(
        ExecutionSpace<Exec>,
        "ferry: save_async takes the instance of a Kokkos execution space whose work it comes after.");
    using backend = execution_backend<Exec>;
    detail::require_kokkos("io::checkpoint::save_async");
    if (backend::capturing(exec))
      throw invalid_argument(
          "ferry::io::checkpoint::save_async: the instance is being captured into a graph, whose work runs only when the graph is launched; end the capture first");
    backend::fence(exec, "ferry::save_async");
    return save_in_background(options, detail::engine::get_on<Exec>());
  }

  /// Loads a checkpoint of the folder, the newest one without options, into everything that was added. Names,
  /// types, extents, rules, options and all checksums are checked first, and constants are compared. Throws
  /// not_found for a checkpoint that does not exist; io_error, which names the entry and both values. All
  /// objects are then as they were. Waits for work in flight on the tensors; blocks.
  void load(const load_options& options = {});

  /// True if load(options) would find a checkpoint: if (run.exists()) run.load(). Throws io_error if the
  /// folder can't be read. If objects of several ranks were added, a rank's call is collective.
  [[nodiscard]] bool exists(const load_options& options = {}) const;
  /// The generations of the folder, in ascending order: load_options::generation takes one of them.
  [[nodiscard]] std::vector<std::uint64_t> generations() const;
  /// The names of its named checkpoints, in alphabetical order.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  void add_entry(std::unique_ptr<detail::checkpoint_entry> entry);
  void require_name(const std::string& name) const;
  void drop(const std::string& name) noexcept;
  void save_as(const std::string& name);
  ticket save_in_background(const save_options& options, std::weak_ptr<detail::ticket_state_keeper> keeper);

  template <class StateRule, class Rule, class State>
  void add_state(const std::string& name, Rule& rule, bool stays, State& state) {
    using plain = std::remove_const_t<Rule>;
    using optim::detail::rule_of;
    static_assert(
        std::is_same_v<rule_of<plain>, StateRule>,
        "ferry: a checkpoint needs the state that make_state made for this optimizer, not for another one.");
    using space = typename State::memory_space;
    auto fields = detail::fields_of_state(optim::detail::transforms_of<plain>::rule_in(rule), state, name);
    const auto put = [&]<class Kept>(std::shared_ptr<Kept> holder) {
      add_entry(std::make_unique<detail::state_entry<Kept, space>>(name, std::move(holder), std::move(fields),
                                                                   state.clock()));
    };
    if (!stays)
      put(std::shared_ptr<const plain>(std::make_shared<plain>(rule)));
    else
      put(std::shared_ptr<Rule>(&rule, [](Rule*) {}));
  }

  std::unique_ptr<detail::checkpoint_core> core_;
};

}  // namespace ferry::io
