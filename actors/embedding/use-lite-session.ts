import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { assert, must } from '../../src/base/assert.ts';
import { readWeights } from './model-weights.ts';
import { encodeOnnx } from './onnx-encoder.ts';
import { paddingId, positionsMax, useLiteGraph, vectorDims } from './use-lite-graph.ts';

/** The door to onnxruntime: runs the graph of Universal Sentence Encoder lite. Closed, its memory is given back. */
export class UseLiteSession {
  readonly #session: InferenceSession;
  readonly #Tensor: typeof Tensor;

  private constructor(session: InferenceSession, tensor: typeof Tensor) {
    this.#session = session;
    this.#Tensor = tensor;
  }

  /** Rejects where there is no binary of the runtime for this platform, or the weights are not there. */
  static async open(): Promise<UseLiteSession> {
    // Here, so that a thread that never embeds does not load 46 MB of native code.
    const { InferenceSession, Tensor } = await import('onnxruntime-node');
    // One thread: a second would take its core from searches. What is read here is garbage as soon as the session stands.
    const session = await InferenceSession.create(encodeOnnx(useLiteGraph(await readWeights())), {
      executionProviders: ['cpu'],
      intraOpNumThreads: 1,
      interOpNumThreads: 1,
      graphOptimizationLevel: 'all',
    });
    return new UseLiteSession(session, Tensor);
  }

  /** A vector of 512 for each piece of 1 to 128 ids, one behind the other. The thread computes and does nothing else. */
  async run(pieces: readonly Uint16Array[]): Promise<Float32Array> {
    const length = pieces.reduce((longest, ids) => Math.max(longest, ids.length), 0);
    assert(length <= positionsMax, () => `a piece of ${length} tokens`);
    const padded = new Int32Array(pieces.length * length).fill(paddingId);
    pieces.forEach((ids, at) => {
      padded.set(ids, at * length);
    });
    const ids = new this.#Tensor('int32', padded, [pieces.length, length]);
    const { data } = must((await this.#session.run({ ids })).vectors, 'vectors of the model');
    assert(data.length === pieces.length * vectorDims, () => `${data.length} numbers of a model`);
    return data as Float32Array;
  }

  async close(): Promise<void> {
    await this.#session.release();
  }
}
