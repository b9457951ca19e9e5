// A model's weights on a device.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/config.h"
#include "vt/handles.h"

namespace model {

// Host tensors in the file's formats, by GGUF name; matrices are (rows, cols), vectors (size).
using HostTensors = std::map<std::string, vt::Tensor>;

class Weight {
 public:
  Weight() = default;
  Weight(const vt::OpenDevice& device, const vt::PreparedWeight& prepared) : device_(&device), prepared_(prepared) {}
  Weight(Weight&& other) noexcept { swap(other); }
  Weight& operator=(Weight&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Weight() {
    if (device_) device_->platform().free_weight(device_->get(), prepared_);
  }

  explicit operator bool() const { return device_ != nullptr; }
  const vt::PreparedWeight& prepared() const { return prepared_; }
  const vt::Tensor& tensor() const { return prepared_.tensor; }

 private:
  void swap(Weight& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(prepared_, other.prepared_);
  }

  const vt::OpenDevice* device_ = nullptr;
  vt::PreparedWeight prepared_;
};

// One product whose rows may come from tensors of different formats.
struct Linear {
  struct Part {
    Weight weight;           // (outputs, inputs)
    std::int64_t first = 0;  // its first output
  };
  std::vector<Part> parts;
  Weight bias;  // (all outputs), or empty
};

struct Layer {
  Weight attn_norm;  // (hidden)
  Linear qkv;        // ((heads + 2 * kv_heads) * head_dim, hidden)
  Weight q_norm;     // (head_dim), or empty
  Weight k_norm;     // (head_dim), or empty
  Linear output;     // (hidden, heads * head_dim)
  Weight ffn_norm;   // (hidden)
  Linear gate_up;    // (2 * ffn, hidden); two parts of the same size where the backend fuses them with SiLU
  bool fused_silu = false;
  Linear down;  // (hidden, ffn)
};

class Model {
 public:
  Model(const vt::Backend& backend, int index, const vt::DeviceOptions& options, const Config& config,
        HostTensors tensors, vt::Precision precision);

  const vt::OpenDevice& device() const { return device_; }
  const vt::OpTable& ops() const { return *ops_; }
  const Config& config() const { return config_; }
  vt::Precision precision() const { return precision_; }
  vt::DType matrix_dtype() const { return matrix_dtype_; }  // as most matrices of the file are stored
  std::size_t weight_bytes() const { return weight_bytes_; }
  bool huge_pages() const { return huge_pages_; }

  const Weight& embedding() const { return embedding_; }
  const Weight& head() const { return head_ ? head_ : embedding_; }
  const Weight& output_norm() const { return output_norm_; }
  const std::vector<Layer>& layers() const { return layers_; }
  const std::vector<float>& frequencies() const { return frequencies_; }

 private:
  friend class Loader;

  vt::OpenDevice device_;
  const vt::OpTable* ops_;
  Config config_;
  vt::Precision precision_;
  vt::DType matrix_dtype_ = vt::DType::F32;
  std::size_t weight_bytes_ = 0;
  bool huge_pages_ = false;
  Weight embedding_;    // (vocab, hidden)
  Weight head_;         // (vocab, hidden); empty where tied
  Weight output_norm_;  // (hidden)
  std::vector<Layer> layers_;
  std::vector<float> frequencies_;  // (head_dim / 2)
};

}  // namespace model
