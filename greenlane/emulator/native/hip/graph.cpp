// Graphs: captured or built node by node, and run in the order in which the nodes were added.

#include <algorithm>

#include "runtime.h"

namespace greenlane {
void end_capture(Graph* graph);
hipError_t copy_later(void* to, const void* from, size_t size, hipMemcpyKind kind, hipStream_t stream);
Function* function_of(const void* host);

hipError_t add_captured(Graph* graph, Operation operation) {
  auto node = std::make_shared<Node>();
  node->type = hipGraphNodeTypeKernel;
  node->run = std::move(operation);
  graph->nodes.push_back(std::move(node));
  return hipSuccess;
}

static hipError_t run_nodes(const std::vector<std::shared_ptr<Node>>& nodes) {
  for (const auto& node : nodes) {
    if (!node->enabled) continue;
    const hipError_t status = node->child ? run_nodes(node->child->nodes) : node->run ? node->run() : hipSuccess;
    if (status != hipSuccess) return status;
  }
  return hipSuccess;
}

}  // namespace greenlane

using namespace greenlane;

struct hipGraphExec {
  std::vector<std::shared_ptr<Node>> nodes;
};

namespace {

Graph* graph_of(hipGraph_t graph) {
  return (Graph*)graph;
}

hipError_t add_node(hipGraphNode_t* out, hipGraph_t graph, hipGraphNodeType type, Operation run) {
  if (!graph) return note(hipErrorInvalidValue);
  Lock lock(runtime_mutex());
  auto node = std::make_shared<Node>();
  node->type = type;
  node->run = std::move(run);
  graph_of(graph)->nodes.push_back(node);
  if (out) *out = (hipGraphNode_t)node.get();
  return hipSuccess;
}

Operation kernel_operation(const hipKernelNodeParams& p) {
  Function* function = function_of(p.func);
  if (!function) return {};
  auto kernarg = pack_arguments(*function, p.kernelParams);
  return [=] {
    Launch launch{function, p.gridDim, p.blockDim, p.sharedMemBytes, kernarg};
    return run(launch);
  };
}

}  // namespace

extern "C" {

hipError_t hipStreamBeginCapture(hipStream_t handle, hipStreamCaptureMode mode) {
  Lock lock(runtime_mutex());
  Stream* stream = stream_of(handle);
  if (!stream || !handle) return note(hipErrorStreamCaptureUnsupported);
  if (stream->capture) return note(hipErrorIllegalState);
  if (hipError_t status = drain(stream); status != hipSuccess) return note(status);
  stream->capture = new Graph;
  stream->capture_origin = true;
  stream->capture_mode = mode;
  return hipSuccess;
}

hipError_t hipStreamEndCapture(hipStream_t handle, hipGraph_t* graph) {
  Lock lock(runtime_mutex());
  Stream* stream = stream_of(handle);
  if (!stream || !graph) return note(hipErrorInvalidValue);
  if (!stream->capture) return note(hipErrorIllegalState);
  if (!stream->capture_origin) return note(hipErrorStreamCaptureUnmatched);
  *graph = (hipGraph_t)stream->capture;
  end_capture(stream->capture);
  return hipSuccess;
}

hipError_t hipStreamIsCapturing(hipStream_t handle, hipStreamCaptureStatus* status) {
  Stream* stream = stream_of(handle);
  if (!stream || !status) return note(hipErrorInvalidValue);
  *status = stream->capture ? hipStreamCaptureStatusActive : hipStreamCaptureStatusNone;
  return hipSuccess;
}
hipError_t hipStreamGetCaptureInfo(hipStream_t handle, hipStreamCaptureStatus* status, unsigned long long* id) {
  Stream* stream = stream_of(handle);
  if (stream && id) *id = (unsigned long long)stream->capture;
  return hipStreamIsCapturing(handle, status);
}
hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  thread_local hipStreamCaptureMode current = hipStreamCaptureModeGlobal;
  std::swap(*mode, current);
  return hipSuccess;
}

hipError_t hipGraphCreate(hipGraph_t* graph, unsigned) {
  return *graph = (hipGraph_t) new Graph, hipSuccess;
}
hipError_t hipGraphDestroy(hipGraph_t graph) {
  if (!graph) return note(hipErrorInvalidValue);
  delete graph_of(graph);
  return hipSuccess;
}
hipError_t hipGraphInstantiate(hipGraphExec_t* exec, hipGraph_t graph, hipGraphNode_t*, char*, size_t) {
  if (!exec || !graph) return note(hipErrorInvalidValue);
  Lock lock(runtime_mutex());
  *exec = new hipGraphExec{graph_of(graph)->nodes};
  return hipSuccess;
}
hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* exec, hipGraph_t graph, unsigned long long) {
  return hipGraphInstantiate(exec, graph, nullptr, nullptr, 0);
}
hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  Lock lock(runtime_mutex());
  if (!exec) return note(hipErrorInvalidValue);
  if (hipError_t status = drain_all(); status != hipSuccess) return note(status);
  delete exec;
  return hipSuccess;
}
hipError_t hipGraphUpload(hipGraphExec_t, hipStream_t) {
  return hipSuccess;
}
hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t handle) {
  Lock lock(runtime_mutex());
  Stream* stream = stream_of(handle);
  if (!exec || !stream) return note(hipErrorInvalidValue);
  return note(submit(stream, [nodes = exec->nodes] { return run_nodes(nodes); }));
}
hipError_t hipGraphExecUpdate(hipGraphExec_t exec, hipGraph_t graph, hipGraphNode_t*,
                              hipGraphExecUpdateResult* result) {
  if (!exec || !graph) return note(hipErrorInvalidValue);
  Lock lock(runtime_mutex());
  const bool same = exec->nodes.size() == graph_of(graph)->nodes.size();
  if (result) *result = same ? hipGraphExecUpdateSuccess : hipGraphExecUpdateErrorTopologyChanged;
  if (!same) return note(hipErrorGraphExecUpdateFailure);
  exec->nodes = graph_of(graph)->nodes;
  return hipSuccess;
}
hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t* nodes, size_t* count) {
  if (!graph || !count) return note(hipErrorInvalidValue);
  const auto& held = graph_of(graph)->nodes;
  for (size_t i = 0; nodes && i < *count && i < held.size(); i++) nodes[i] = (hipGraphNode_t)held[i].get();
  *count = held.size();
  return hipSuccess;
}
hipError_t hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType* type) {
  return *type = ((Node*)node)->type, hipSuccess;
}

hipError_t hipGraphAddKernelNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t*, size_t,
                                 const hipKernelNodeParams* params) {
  if (!params) return note(hipErrorInvalidValue);
  Lock lock(runtime_mutex());
  Operation operation = kernel_operation(*params);
  if (!operation) return note(hipErrorInvalidDeviceFunction);
  return add_node(node, graph, hipGraphNodeTypeKernel, std::move(operation));
}
hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const hipKernelNodeParams* params) {
  if (!exec || !node || !params) return note(hipErrorInvalidValue);
  Lock lock(runtime_mutex());
  Operation operation = kernel_operation(*params);
  if (!operation) return note(hipErrorInvalidDeviceFunction);
  ((Node*)node)->run = std::move(operation);
  return hipSuccess;
}
hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t*, size_t, void* to,
                                   const void* from, size_t size, hipMemcpyKind kind) {
  return add_node(node, graph, hipGraphNodeTypeMemcpy, [=] { return copy_later(to, from, size, kind, nullptr); });
}
hipError_t hipGraphAddMemsetNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t*, size_t,
                                 const hipMemsetParams* p) {
  if (!p) return note(hipErrorInvalidValue);
  const hipMemsetParams params = *p;
  return add_node(node, graph, hipGraphNodeTypeMemset, [=] {
    for (size_t row = 0; row < params.height; row++) {
      char* to = (char*)params.dst + row * params.pitch;
      const hipError_t status = params.elementSize == 4   ? hipMemsetD32(to, (int)params.value, params.width)
                                : params.elementSize == 2 ? hipMemsetD16(to, (unsigned short)params.value, params.width)
                                                          : hipMemset(to, (int)params.value, params.width);
      if (status != hipSuccess) return status;
    }
    return hipSuccess;
  });
}
hipError_t hipGraphAddEmptyNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t*, size_t) {
  return add_node(node, graph, hipGraphNodeTypeEmpty, {});
}
hipError_t hipGraphAddHostNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t*, size_t,
                               const hipHostNodeParams* p) {
  if (!p || !p->fn) return note(hipErrorInvalidValue);
  return add_node(node, graph, hipGraphNodeTypeHost, [call = *p] { return call.fn(call.userData), hipSuccess; });
}
// Nodes run in the order in which they were added, so an edge that points back can't be kept.
hipError_t hipGraphAddDependencies(hipGraph_t graph, const hipGraphNode_t* from, const hipGraphNode_t* to,
                                   size_t count) {
  const auto& nodes = graph_of(graph)->nodes;
  const auto place = [&](hipGraphNode_t node) {
    return std::find_if(nodes.begin(), nodes.end(), [&](const auto& held) { return held.get() == (Node*)node; });
  };
  for (size_t i = 0; i < count; i++)
    if (place(from[i]) >= place(to[i])) return note(hipErrorNotSupported);
  return hipSuccess;
}

}  // extern "C"
