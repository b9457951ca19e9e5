// Takes the tensors of a file one by one, checks each and hands it to the device.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "model/model.h"

namespace model {

class Loader {
 public:
  Loader(Model& model, HostTensors tensors) : model_(model), tensors_(std::move(tensors)) {}

  void load();

 private:
  struct Named {
    std::string name;
    std::int64_t rows;
  };

  bool has(const std::string& name) const { return tensors_.contains(name); }
  vt::Tensor take(const std::string& name, std::initializer_list<std::int64_t> shape);
  Weight prepare(std::span<const vt::Tensor> parts, vt::WeightUse use);
  Weight vector(const std::string& name, std::int64_t size);
  Weight matrix(const std::string& name, std::int64_t rows, std::int64_t cols, vt::WeightUse use);
  Linear linear(const std::vector<Named>& parts, std::int64_t inputs, bool merge);
  Weight biases(const std::vector<Named>& parts);
  Layer layer(const std::string& prefix);
  void refuse_leftovers() const;

  Model& model_;
  HostTensors tensors_;
};

}  // namespace model
