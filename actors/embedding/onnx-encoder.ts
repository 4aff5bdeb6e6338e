/**
 * A graph of operators as the bytes of an ONNX model: the little of protocol buffers and of `onnx.proto` that one model
 * takes. A field is its number and wire type, then its value; a message is the bytes of its fields, and in another message
 * a field of bytes. Fields may come in any order, and a repeated one is there several times.
 *
 * What is written is a list of chunks until the end, so that weights are copied once.
 */
import { assert } from '../../src/base/assert.ts';

export interface OnnxTensor {
  readonly type: keyof typeof elementTypes;
  readonly dims: readonly number[];
  /** Little-endian. */
  readonly bytes: Uint8Array;
}

export interface OnnxNode {
  readonly operator: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Integers and lists of them; a number with a fraction is a float. */
  readonly attributes: Readonly<Record<string, number | readonly number[]>>;
}

/** A value that the graph is given or gives; a dimension without a number has a name. */
export interface OnnxValue {
  readonly name: string;
  readonly type: keyof typeof elementTypes;
  readonly dims: readonly (number | string)[];
}

export interface OnnxGraph {
  readonly name: string;
  readonly nodes: readonly OnnxNode[];
  readonly constants: ReadonlyMap<string, OnnxTensor>;
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
}

const elementTypes = { float32: 1, int32: 6, int64: 7 } as const;
const attributeTypes = { float: 1, integer: 2, integers: 7 } as const;
/** Operators are those of opset 17, the first with LayerNormalization; 8 is the format's version of its time. */
const formatVersion = 8;
const operatorSet = 17;

type Chunks = readonly Uint8Array[];

export function encodeOnnx(graph: OnnxGraph): Uint8Array {
  const graphFields = [
    ...graph.nodes.map((node) => message(1, encodeNode(node))),
    text(2, graph.name),
    ...[...graph.constants].map(([name, tensor]) => message(5, encodeTensor(name, tensor))),
    ...graph.inputs.map((value) => message(11, encodeValue(value))),
    ...graph.outputs.map((value) => message(12, encodeValue(value))),
  ];
  return Buffer.concat(
    [
      integer(1, formatVersion),
      message(8, [text(1, ''), integer(2, operatorSet)]),
      message(7, graphFields),
    ].flat(),
  );
}

function encodeNode(node: OnnxNode): Chunks[] {
  return [
    ...node.inputs.map((name) => text(1, name)),
    ...node.outputs.map((name) => text(2, name)),
    text(4, node.operator),
    ...Object.entries(node.attributes).map(([name, value]) => message(5, encodeAttribute(name, value))),
  ];
}

function encodeAttribute(name: string, value: number | readonly number[]): Chunks[] {
  if (typeof value !== 'number') {
    const items = value.map((item) => integer(8, item));
    return [text(1, name), ...items, integer(20, attributeTypes.integers)];
  }
  return Number.isInteger(value)
    ? [text(1, name), integer(3, value), integer(20, attributeTypes.integer)]
    : [text(1, name), float(2, value), integer(20, attributeTypes.float)];
}

function encodeTensor(name: string, { type, dims, bytes: raw }: OnnxTensor): Chunks[] {
  return [
    ...dims.map((dim) => integer(1, dim)),
    integer(2, elementTypes[type]),
    text(8, name),
    bytes(9, [raw]),
  ];
}

function encodeValue({ name, type, dims }: OnnxValue): Chunks[] {
  const shape = dims.map((dim) => message(1, [typeof dim === 'number' ? integer(1, dim) : text(2, dim)]));
  return [text(1, name), message(2, [message(1, [integer(1, elementTypes[type]), message(2, shape)])])];
}

function integer(field: number, value: number): Chunks {
  return [varint(field * 8), varint(value)];
}

function float(field: number, value: number): Chunks {
  const chunk = Buffer.alloc(4);
  chunk.writeFloatLE(value);
  return [varint(field * 8 + 5), chunk];
}

function text(field: number, value: string): Chunks {
  return bytes(field, [Buffer.from(value)]);
}

function message(field: number, fields: readonly Chunks[]): Chunks {
  return bytes(field, fields.flat());
}

function bytes(field: number, chunks: Chunks): Chunks {
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  return [varint(field * 8 + 2), varint(length), ...chunks];
}

/** Seven bits a byte, the lowest first. */
function varint(value: number): Uint8Array {
  assert(Number.isInteger(value) && value >= 0 && value < 2 ** 32, () => `no varint of ours: ${value}`);
  const chunk: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) chunk.push((rest & 0x7f) | 0x80);
  return Uint8Array.of(...chunk, rest);
}
