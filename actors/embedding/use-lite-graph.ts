import { must } from '../../src/base/assert.ts';
import { OnnxGraphBuilder } from './graph-builder.ts';
import type { Weights } from './model-weights.ts';
import type { OnnxGraph } from './onnx-encoder.ts';

export const vectorDims = 512;
/** Places that the model was trained with: it reads no further in a text. */
export const positionsMax = 128;
/** Behind a text's end. Id 0 is a token: an unknown character. */
export const paddingId = -1;
const embeddingDims = 256;
const heads = 4;

const encode = 'module_apply_default/Encoder_en/KonaTransformer/Encode/';
const stack = `${encode}TransformerStack/`;
/** What was trained as a variable of its own stands outside the applied module. */
const variables = 'module/Encoder_en/KonaTransformer/Encode/';
const hidden = 'module/Encoder_en/hidden_layers/tanh_layer_0/';
/** Constants that the published graph has once for all layers. */
const epsilonName = `${stack}Layer_1/TransformerLayer/FFN/layer_prepostprocess/layer_norm/Cast/x`;
const paddingBiasName = `${stack}Layer_1/TransformerLayer/MultiheadAttention/DotProductAttention/attention_bias_ignore_padding/mul/y`;
const frequenciesName = `${stack}Layer_0/AddTimingSignal/TimingSignal/ExpandDims_1`;
/** ONNX's number of the type that `Cast` makes: a float. */
const castToFloat = { to: 1 };

/**
 * Universal Sentence Encoder lite as a graph of ONNX operators: `ids` (batch × length, -1 behind a text's end) to `vectors`
 * (batch × 512, each of length 1). Weights have their names of the published graph, which this one follows:
 *
 * 1. Of each token its row of the embedding table, twice, and its place's sines and cosines: 256 numbers.
 * 2. Two layers. Each: normalise, attention of every token to every token, add; normalise, two dense layers with a cut at
 *    zero between them, add. The first widens to 512 numbers, adding its input through a dense layer.
 * 3. The mean of the tokens, a dense layer, tanh, and the length brought to 1.
 *
 * The published graph clears padding after each step. Here it is kept out of attention and out of the mean, the two places
 * where tokens meet; what stands at padded places in between is never read.
 */
export function useLiteGraph(weights: Weights): OnnxGraph {
  const graph = new OnnxGraphBuilder(weights);
  const isToken = graph.apply('Greater', ['ids', graph.integer(paddingId)]);
  const mask = graph.apply('Cast', [isToken], castToFloat);
  const bias = paddingBias(graph, mask);

  const placed = placedTokens(graph);
  const widened = transformerLayer(graph, placed, { at: 0, dims: embeddingDims, bias });
  const tokens = transformerLayer(graph, widened, { at: 1, dims: vectorDims, bias });

  const mean = meanOfTokens(graph, tokens, mask);
  const direction = graph.apply('Tanh', [graph.dense(mean, `${hidden}weights`, `${hidden}bias`)]);
  const squares = graph.apply('ReduceSum', [graph.apply('Mul', [direction, direction]), graph.sizes(1)]);
  graph.apply('Div', [direction, graph.apply('Sqrt', [squares])], {}, 'vectors');
  return graph.finish({
    name: 'use-lite',
    inputs: [{ name: 'ids', type: 'int32', dims: ['batch', 'length'] }],
    outputs: [{ name: 'vectors', type: 'float32', dims: ['batch', vectorDims] }],
  });
}

/** What attention adds for each token it could look at: nothing, or for padding a number below all others. */
function paddingBias(graph: OnnxGraphBuilder, mask: string): string {
  const isPadding = graph.apply('Sub', [graph.float(1), mask]);
  const bias = graph.apply('Mul', [isPadding, graph.weight(paddingBiasName)]);
  return graph.apply('Unsqueeze', [bias, graph.sizes(1, 2)]);
}

function placedTokens(graph: OnnxGraphBuilder): string {
  // Padding takes the table's last row, as an index of -1 does.
  const rows = graph.apply('Gather', [graph.weight('module/Embeddings_en'), 'ids']);
  const length = graph.apply('Slice', [graph.apply('Shape', ['ids']), graph.sizes(1), graph.sizes(2)]);
  const places = graph.table('places', [1, positionsMax, embeddingDims], placeSignals(graph));
  const used = graph.apply('Slice', [places, graph.sizes(0), length, graph.sizes(1)]);
  return graph.apply('Add', [graph.apply('Add', [rows, rows]), used]);
}

function placeSignals(graph: OnnxGraphBuilder): Float32Array {
  const frequencies = graph.numbers(frequenciesName);
  const half = embeddingDims / 2;
  const signals = new Float32Array(positionsMax * embeddingDims);
  for (let place = 0; place < positionsMax; place++) {
    for (let i = 0; i < half; i++) {
      const angle = place * must(frequencies[i], 'a frequency');
      signals[place * embeddingDims + i] = Math.sin(angle);
      signals[place * embeddingDims + half + i] = Math.cos(angle);
    }
  }
  return signals;
}

interface LayerShape {
  readonly at: 0 | 1;
  /** Numbers of what the layer is given; it gives 512. */
  readonly dims: number;
  readonly bias: string;
}

function transformerLayer(graph: OnnxGraphBuilder, input: string, shape: LayerShape): string {
  const layer = `Layer_${shape.at}/TransformerLayer/`;
  const attended = attention(graph, normalised(graph, input, `${encode}${layer}`), shape);
  const widen = `${encode}${layer}dense/`;
  const kept = shape.at === 0 ? graph.dense(input, kernelOf(widen), biasOf(widen)) : input;
  const sum = graph.apply('Add', [attended, kept]);

  const forward = `${encode}${layer}FFN/`;
  const forwardKernel = (name: string) => `${stack}${layer}FFN/${name}/Tensordot/Reshape_1`;
  const entering = normalised(graph, sum, forward);
  const wide = graph.dense(entering, forwardKernel('conv1'), biasOf(`${forward}conv1/`));
  const narrow = graph.dense(graph.apply('Relu', [wide]), forwardKernel('conv2'), biasOf(`${forward}conv2/`));
  return graph.apply('Add', [narrow, sum]);
}

function attention(graph: OnnxGraphBuilder, tokens: string, { at, dims, bias }: LayerShape): string {
  const names = `Layer_${at}/TransformerLayer/MultiheadAttention/`;
  const dense = (from: string, name: string) =>
    graph.dense(from, `${variables}${names}${name}/kernel/part_0`, biasOf(`${encode}${names}${name}/`));
  const ofHeads = (from: string, perm: readonly number[]) =>
    graph.apply('Transpose', [graph.apply('Reshape', [from, graph.sizes(0, 0, heads, dims / heads)])], {
      perm,
    });

  const [queries, keys, values] = graph.thirds(dense(tokens, 'qkv_transform_single'));
  const scale = graph.weight(`${stack}${names}mul/y`);
  const scaled = graph.apply('Mul', [ofHeads(queries, [0, 2, 1, 3]), scale]);
  const scores = graph.apply('Add', [graph.apply('MatMul', [scaled, ofHeads(keys, [0, 2, 3, 1])]), bias]);
  const seen = graph.apply('MatMul', [graph.apply('Softmax', [scores]), ofHeads(values, [0, 2, 1, 3])]);
  const inPlace = graph.apply('Transpose', [seen], { perm: [0, 2, 1, 3] });
  return dense(graph.apply('Reshape', [inPlace, graph.sizes(0, 0, dims)]), 'output_transform_single');
}

function normalised(graph: OnnxGraphBuilder, tokens: string, prefix: string): string {
  const [scale, bias] = ['scale', 'bias'].map((part) =>
    graph.weight(`${prefix}layer_prepostprocess/layer_norm/layer_norm_${part}/ConcatPartitions/concat`),
  ) as [string, string];
  const epsilon = must(graph.numbers(epsilonName)[0], 'the smallest variance');
  return graph.apply('LayerNormalization', [tokens, scale, bias], { epsilon });
}

function meanOfTokens(graph: OnnxGraphBuilder, tokens: string, mask: string): string {
  const kept = graph.apply('Mul', [tokens, graph.apply('Unsqueeze', [mask, graph.sizes(2)])]);
  const sum = graph.apply('ReduceSum', [kept, graph.sizes(1)], { keepdims: 0 });
  return graph.apply('Div', [sum, graph.apply('ReduceSum', [mask, graph.sizes(1)])]);
}

const kernelOf = (prefix: string) => `${prefix}kernel/ConcatPartitions/concat`;
const biasOf = (prefix: string) => `${prefix}bias/ConcatPartitions/concat`;
