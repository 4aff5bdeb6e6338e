import { must } from '../../src/base/assert.ts';
import type { Weights } from './model-weights.ts';
import type { OnnxGraph, OnnxNode, OnnxTensor } from './onnx-encoder.ts';

/** Puts a graph together: each method answers the name of a value, for others to take. */
export class OnnxGraphBuilder {
  readonly #weights: Weights;
  readonly #nodes: OnnxNode[] = [];
  readonly #constants = new Map<string, OnnxTensor>();

  constructor(weights: Weights) {
    this.#weights = weights;
  }

  apply(
    operator: string,
    inputs: readonly string[],
    attributes: OnnxNode['attributes'] = {},
    output = `t${this.#nodes.length}`,
  ): string {
    this.#nodes.push({ operator, inputs, outputs: [output], attributes });
    return output;
  }

  /** Three equal parts of the last of three dimensions. */
  thirds(from: string): [string, string, string] {
    const name = `t${this.#nodes.length}`;
    const outputs: [string, string, string] = [`${name}a`, `${name}b`, `${name}c`];
    this.#nodes.push({ operator: 'Split', inputs: [from], outputs, attributes: { axis: 2 } });
    return outputs;
  }

  /** A weight as it is, or a matrix that was kept with dimensions of 1 in front. */
  weight(name: string): string {
    const { dims, bytes } = must(this.#weights.get(name), name);
    const shape = dims.length > 2 ? dims.slice(-2) : dims;
    this.#constants.set(name, { type: 'float32', dims: shape, bytes });
    return name;
  }

  /** A weight's numbers, where the graph needs them itself. */
  numbers(name: string): Float32Array {
    const { bytes } = must(this.#weights.get(name), name);
    return new Float32Array(Uint8Array.from(bytes).buffer);
  }

  dense(from: string, kernel: string, bias: string): string {
    return this.apply('Add', [this.apply('MatMul', [from, this.weight(kernel)]), this.weight(bias)]);
  }

  /** Shapes and axes. */
  sizes(...values: readonly number[]): string {
    const numbers = BigInt64Array.from(values, BigInt);
    return this.#constant(`sizes ${values}`, { type: 'int64', dims: [values.length], ...bytesOf(numbers) });
  }

  integer(value: number): string {
    return this.#constant(`integer ${value}`, { type: 'int32', dims: [1], ...bytesOf(Int32Array.of(value)) });
  }

  float(value: number): string {
    return this.#constant(`float ${value}`, {
      type: 'float32',
      dims: [1],
      ...bytesOf(Float32Array.of(value)),
    });
  }

  table(name: string, dims: readonly number[], values: Float32Array): string {
    return this.#constant(name, { type: 'float32', dims, ...bytesOf(values) });
  }

  finish(ends: Pick<OnnxGraph, 'name' | 'inputs' | 'outputs'>): OnnxGraph {
    return { ...ends, nodes: this.#nodes, constants: this.#constants };
  }

  #constant(name: string, tensor: OnnxTensor): string {
    this.#constants.set(name, tensor);
    return name;
  }
}

/** Every machine that runs Node.js keeps numbers with the lowest byte first, as the format wants them. */
function bytesOf(values: BigInt64Array | Float32Array | Int32Array): { readonly bytes: Uint8Array } {
  return { bytes: new Uint8Array(values.buffer) };
}
