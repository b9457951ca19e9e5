// A whole decode step of one token in one cooperative launch, BF16: reading the weights is what it costs, so they are
// streamed without a pause (weight_stream.h) while the blocks pass activations to one another over grid barriers.
// A block computes rows blockIdx.x, blockIdx.x + gridDim.x, .. of every matrix.

#include <algorithm>

#include "decode_attention.h"
#include "decode_step.h"
#include "gpu/launch.h"
#include "gpu/workspace.h"
#include "grid_barrier.h"
#include "weight_stream.h"

namespace vt::gpu::cuda {
namespace {

constexpr int kThreads = kStreamWarps * 32;
constexpr int kPieceChunks = 160;  // a multiple of a warp
constexpr int kDepth = 4;
constexpr int kHeld = 8;  // elements of the hidden state per thread
constexpr int kMaxLayers = 80;
constexpr int kMaxGroup = 8;

// The matrices of a layer in the order in which they are read; then the head's shape.
enum Kind { kQkv, kOutput, kGate, kUp, kDown, kPerLayer, kHead = kPerLayer, kKinds };

struct LayerPointers {
  const unsigned char* matrices[kPerLayer];
  const float* attn_norm;
  const float* ffn_norm;
  const float* qkv_bias;
  const float* q_norm;
  const float* k_norm;
  unsigned char* keys;
  unsigned char* values;
};

struct Parameters {
  LayerPointers layers[kMaxLayers];
  StreamShape shapes[kKinds];
  const unsigned char* head;
  const float* output_norm;
  float* residual;         // (hidden)
  float* qkv;              // as StepAttention
  BFloat16* mixed;         // (attention_width)
  BFloat16* ffn;           // (ffn_width)
  float* logits;           // (vocab)
  unsigned int* arrivals;  // two of the step's own, then attention's
  StepAttention attention;
  StepCache cache;  // without pointers
  int num_layers;
  int hidden, attention_width, kv_width, ffn_width;
  int ring_bytes, x_bytes;
  float eps;
};

// What the weights' stream reads, in order. The head comes in parts of at most one row per thread of a block.
struct StepMatrices {
  const Parameters& p;

  __device__ int first_of_head() const { return kPerLayer * p.num_layers; }
  __device__ int count() const { return first_of_head() + (p.shapes[kHead].units + kThreads) / kThreads; }
  __device__ StreamPart operator()(int index) const {
    const bool is_head = index >= first_of_head();
    const int kind = is_head ? kHead : index % kPerLayer;
    const StreamShape& shape = p.shapes[kind];
    const int units = shape.units + (static_cast<int>(blockIdx.x) < shape.more ? 1 : 0);
    const int before = is_head ? (index - first_of_head()) * kThreads : 0;
    const std::int64_t row = blockIdx.x + static_cast<std::int64_t>(before) * gridDim.x;
    const unsigned char* matrix = is_head ? p.head : p.layers[index / kPerLayer].matrices[kind];
    return {&shape, matrix + row * shape.row_bytes, min(kThreads, max(0, units - before))};
  }
};

// Elements threadIdx.x, threadIdx.x + kThreads, .. of a vector of weights.
__device__ void load_norm(const float* weight, int size, float (&out)[kHeld]) {
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int i = threadIdx.x + j * kThreads;
    out[j] = i < size ? __ldg(weight + i) : 0.0f;
  }
}

// x = residual * weight. The factor 1 / rms(residual) that is missing comes from `squares`, once its warps' sums stand.
__device__ void weigh(const float* residual, const float (&weight)[kHeld], int size, BFloat16* x, float* squares) {
  float held[kHeld], square_sum = 0.0f;
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int i = threadIdx.x + j * kThreads;
    held[j] = i < size ? __ldcg(residual + i) : 0.0f;
  }
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int i = threadIdx.x + j * kThreads;
    if (i < size) store(x + i, held[j] * weight[j]);
    square_sum += held[j] * held[j];
  }
  square_sum = tile_sum(square_sum);
  if (threadIdx.x % 32 == 0) squares[threadIdx.x / 32] = square_sum;
  __syncthreads();
}

__device__ float inverse_rms(const float* squares, int size, float eps) {
  float sum = 0.0f;
  for (int warp = 0; warp < kStreamWarps; ++warp) sum += squares[warp];
  return 1.0f / sqrtf(sum / size + eps);
}

__device__ void fetch(const BFloat16* from, int size, BFloat16* x) {
  for (int i = threadIdx.x; i < size / 8; i += kThreads) {
    reinterpret_cast<uint4*>(x)[i] = __ldcg(reinterpret_cast<const uint4*>(from) + i);
  }
  __syncthreads();
}

// The product of the unit that is this thread's.
__device__ float product(const StreamPart& part, const float* partial) {
  const int per_row = part.shape->per_row;
  float sum = partial[threadIdx.x * per_row];
  for (int i = 1; i < per_row; ++i) sum += partial[threadIdx.x * per_row + i];
  return sum;
}

template <int kGroup>
__global__ void __launch_bounds__(kThreads, 1) decode_step_kernel(const __grid_constant__ Parameters p) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ alignas(8) std::uint64_t copied[kStreamWarps * kDepth];
  __shared__ float squares[kStreamWarps];
  BFloat16* x = reinterpret_cast<BFloat16*>(shared + p.ring_bytes);
  const uint4* x_chunks = reinterpret_cast<const uint4*>(x);
  float* partial = reinterpret_cast<float*>(shared + p.ring_bytes + p.x_bytes);
  const StepMatrices matrices{p};
  WeightStream<StepMatrices, kPieceChunks, kDepth> stream(matrices, shared, copied);
  GridBarrier barrier(p.arrivals);
  // Its shared memory is that of x, which is free between the query product and the output product.
  DecodeAttention<kGroup> attention(p.attention, p.cache, *reinterpret_cast<StepAttentionShared<kGroup>*>(x));
  const int thread = threadIdx.x, row = blockIdx.x + gridDim.x * thread;  // the row of this thread's unit
  float residual = row < p.hidden ? p.residual[row] : 0.0f;
  float norm[kHeld];
  load_norm(p.layers[0].attn_norm, p.hidden, norm);

  for (int l = 0; l < p.num_layers; ++l) {
    const LayerPointers& layer = p.layers[l];
    const int index = l * kPerLayer;
    weigh(p.residual, norm, p.hidden, x, squares);
    const StreamPart qkv = stream.multiply(index + kQkv, x_chunks, partial);
    __syncthreads();
    if (thread < qkv.units) {
      const float bias = layer.qkv_bias ? layer.qkv_bias[row] : 0.0f;
      __stcg(p.qkv + row, product(qkv, partial) * inverse_rms(squares, p.hidden, p.eps) + bias);
    }
    barrier.arrive();
    StepCache cache = p.cache;
    cache.keys = layer.keys, cache.values = layer.values;
    attention.prefetch(cache, layer.q_norm, layer.k_norm);
    barrier.wait();

    attention.run(cache);
    barrier.arrive();
    barrier.wait();

    fetch(p.mixed, p.attention_width, x);
    const StreamPart output = stream.multiply(index + kOutput, x_chunks, partial);
    __syncthreads();
    if (thread < output.units) __stcg(p.residual + row, residual += product(output, partial));
    barrier.arrive();
    load_norm(layer.ffn_norm, p.hidden, norm);
    barrier.wait();

    weigh(p.residual, norm, p.hidden, x, squares);
    const StreamPart gate = stream.multiply(index + kGate, x_chunks, partial);
    float* up_partial = partial + gate.units * gate.shape->per_row;
    const StreamPart up = stream.multiply(index + kUp, x_chunks, up_partial);
    __syncthreads();
    if (thread < gate.units) {
      const float scale = inverse_rms(squares, p.hidden, p.eps);
      const float gated = product(gate, partial) * scale;
      store(p.ffn + row, gated / (1.0f + expf(-gated)) * (product(up, up_partial) * scale));
    }
    barrier.arrive();
    barrier.wait();

    fetch(p.ffn, p.ffn_width, x);
    const StreamPart down = stream.multiply(index + kDown, x_chunks, partial);
    __syncthreads();
    if (thread < down.units) __stcg(p.residual + row, residual += product(down, partial));
    barrier.arrive();
    load_norm(l + 1 < p.num_layers ? p.layers[l + 1].attn_norm : p.output_norm, p.hidden, norm);
    barrier.wait();
  }

  weigh(p.residual, norm, p.hidden, x, squares);
  for (int index = matrices.first_of_head(); index < matrices.count(); ++index) {
    const StreamPart head = stream.multiply(index, x_chunks, partial);
    __syncthreads();
    const int first = (index - matrices.first_of_head()) * kThreads * gridDim.x;
    if (thread < head.units) p.logits[first + row] = product(head, partial) * inverse_rms(squares, p.hidden, p.eps);
    __syncthreads();
  }

  // The last block to end leaves the counters as it found them.
  if (thread == 0 && atomicAdd(p.arrivals + 1, 1u) == gridDim.x - 1) p.arrivals[0] = p.arrivals[1] = 0u;
}

// Of partial sums, in the largest part.
int most_floats(const Parameters& p) {
  int most = 0;
  for (int kind = 0; kind < kKinds; ++kind) {
    const int units = std::min(kThreads, p.shapes[kind].units + 1);
    most = std::max(most, units * p.shapes[kind].per_row * (kind == kGate ? 2 : 1));
  }
  return most;
}

const unsigned char* bytes_of(const PreparedWeight& weight) {
  return weight.tensor.as<unsigned char>();
}

bool is_bfloat16(std::initializer_list<DType> types) {
  return std::all_of(types.begin(), types.end(), [](DType type) { return type == DType::BF16; });
}

// Whether the kernel can: BF16 throughout, one token, sizes that fit its registers and its tiles.
bool serves(const DecodeStepArgs& a, int blocks) {
  if (a.residual.rows() != 1 || a.layers.empty() || a.layers.size() > kMaxLayers) return false;
  for (const DecodeLayer& layer : a.layers) {
    if (!is_bfloat16({layer.qkv.tensor.dtype, layer.output.tensor.dtype, layer.gate.tensor.dtype, layer.up.tensor.dtype,
                      layer.down.tensor.dtype, layer.cache.keys.dtype})) {
      return false;
    }
  }
  const DecodeLayer& layer = a.layers[0];
  const std::int64_t hidden = a.residual.cols(), ffn = layer.gate.tensor.rows();
  const std::int64_t head_dim = layer.cache.keys.shape[3], kv_heads = layer.cache.keys.shape[1];
  const std::int64_t group = layer.output.tensor.cols() / head_dim / kv_heads;
  const auto rows_fit = [&](std::int64_t rows) { return rows <= std::int64_t{kThreads} * blocks; };
  return a.head.tensor.dtype == DType::BF16 && head_dim == kStepHeadDim && hidden % 8 == 0 && ffn % 8 == 0 &&
         hidden <= kHeld * kThreads && (group == 1 || group == 2 || group == 4 || group == kMaxGroup) &&
         group * kv_heads * head_dim == layer.output.tensor.cols() && rows_fit(layer.qkv.tensor.rows()) &&
         rows_fit(ffn) && kv_heads + 2 <= kMaxArrivals;
}

void point_at(LayerPointers& to, const DecodeLayer& layer) {
  to.matrices[kQkv] = bytes_of(layer.qkv), to.matrices[kOutput] = bytes_of(layer.output);
  to.matrices[kGate] = bytes_of(layer.gate), to.matrices[kUp] = bytes_of(layer.up);
  to.matrices[kDown] = bytes_of(layer.down);
  to.attn_norm = layer.attn_norm.as<float>(), to.ffn_norm = layer.ffn_norm.as<float>();
  to.qkv_bias = layer.qkv_bias.as<float>();
  to.q_norm = layer.q_norm.as<float>(), to.k_norm = layer.k_norm.as<float>();
  to.keys = layer.cache.keys.as<unsigned char>(), to.values = layer.cache.values.as<unsigned char>();
}

// False where a matrix can't be cut.
bool set_sizes(Parameters& p, const DecodeStepArgs& a, int blocks) {
  const DecodeLayer& layer = a.layers[0];
  p.num_layers = static_cast<int>(a.layers.size());
  p.hidden = static_cast<int>(a.residual.cols());
  p.attention_width = static_cast<int>(layer.output.tensor.cols());
  p.kv_width = static_cast<int>(layer.cache.keys.shape[1] * layer.cache.keys.shape[3]);
  p.ffn_width = static_cast<int>(layer.gate.tensor.rows());
  p.eps = a.eps;
  const Tensor& keys = layer.cache.keys;
  p.cache = {nullptr, nullptr, keys.stride[0], keys.stride[1], keys.stride[2], static_cast<int>(keys.shape[2])};
  const Tensor* matrices[kKinds] = {&layer.qkv.tensor, &layer.output.tensor, &layer.gate.tensor,
                                    &layer.up.tensor,  &layer.down.tensor,   &a.head.tensor};
  for (int kind = 0; kind < kKinds; ++kind) {
    if (!cut(p.shapes[kind], matrices[kind]->rows(), matrices[kind]->cols(), kPieceChunks, blocks)) return false;
  }
  return true;
}

// Activations that blocks exchange, in the queue's workspace.
void set_workspace(Parameters& p, Queue* queue) {
  const auto rounded = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
  const std::size_t qkv = rounded((p.attention_width + 2 * p.kv_width) * sizeof(float));
  const std::size_t mixed = rounded(p.attention_width * 2), ffn = rounded(p.ffn_width * 2);
  const std::size_t partial =
      static_cast<std::size_t>(p.attention_width / kStepHeadDim) * kStepMaxSplits * kStepSlot * sizeof(float);
  auto* memory = static_cast<unsigned char*>(workspace(queue, qkv + mixed + ffn + partial));
  p.qkv = reinterpret_cast<float*>(memory);
  p.mixed = reinterpret_cast<BFloat16*>(memory + qkv);
  p.ffn = reinterpret_cast<BFloat16*>(memory + qkv + mixed);
  p.attention.partial = reinterpret_cast<float*>(memory + qkv + mixed + ffn);
}

template <int kGroup>
void launch_step(Queue* queue, const Parameters& p, int blocks, unsigned shared_bytes) {
  static LaunchCounter counter("decode_step");
  vendor::allow_shared(decode_step_kernel<kGroup>, shared_bytes);
  vendor::launch_cooperative(decode_step_kernel<kGroup>, dim3(blocks), dim3(kThreads), shared_bytes, of(queue).stream,
                             p);
  counter.add();
}

}  // namespace

bool decode_step(Queue* queue, const DecodeStepArgs& a) {
  const int blocks = of(queue).device->properties.multiprocessors;
  if (of(queue).device->properties.arch != "sm_90" || !serves(a, blocks)) return false;
  Parameters p{};
  if (!set_sizes(p, a, blocks)) return false;
  p.ring_bytes = WeightStream<StepMatrices, kPieceChunks, kDepth>::kRingBytes;
  p.x_bytes = (std::max({p.hidden * 2, p.attention_width * 2, p.ffn_width * 2,
                         static_cast<int>(sizeof(StepAttentionShared<kMaxGroup>))}) +
               127) /
              128 * 128;
  const unsigned shared_bytes = p.ring_bytes + p.x_bytes + most_floats(p) * sizeof(float);
  constexpr unsigned kStatic = 2048;
  if (shared_bytes + kStatic > static_cast<unsigned>(of(queue).device->properties.shared_memory_per_block))
    return false;
  for (std::size_t i = 0; i < a.layers.size(); ++i) point_at(p.layers[i], a.layers[i]);
  p.head = bytes_of(a.head);
  p.output_norm = a.output_norm.as<float>();
  p.residual = a.residual.as<float>();
  p.logits = a.logits.as<float>();
  p.arrivals = of(queue).arrivals;
  set_workspace(p, queue);
  const float* const partial_qkv = p.qkv;
  p.attention = {partial_qkv, p.mixed,     p.attention.partial, p.arrivals + 2, a.block_table,
                 a.seq_lens,  a.positions, a.slot_mapping,      a.cos_sin,      p.kv_width / kStepHeadDim,
                 a.scale,     a.eps,       a.interleaved};
  switch (p.attention_width / p.kv_width) {
    case 1:
      launch_step<1>(queue, p, blocks, shared_bytes);
      break;
    case 2:
      launch_step<2>(queue, p, blocks, shared_bytes);
      break;
    case 4:
      launch_step<4>(queue, p, blocks, shared_bytes);
      break;
    default:
      launch_step<8>(queue, p, blocks, shared_bytes);
  }
  return true;
}

}  // namespace vt::gpu::cuda
