/**
 * The values of a nested column, each as JSON: a row's entries of all of its leaves are put together as the schema says. One row is
 * in memory at a time, in the order of the file.
 */
import { limits } from '../../../protocol/limits.ts';
import { escapedBytesMax } from '../json-bytes.ts';
import { RenderedValues, renderedKinds } from '../rendered-values.ts';
import { LevelColumn } from './level-column.ts';
import type { FileMetaData } from './metadata.ts';
import type { ParquetSource } from './pages.ts';
import { ParquetError } from './parquet-error.ts';
import type { ParquetValue } from './parquet-value.ts';
import type { LeafNode, ListNode, MapNode, SchemaNode, StructNode } from './schema.ts';
import { parquetValue } from './value.ts';
import { nullBytes } from './window.ts';

const quote = 0x22;
const rowBytesFirst = 16 * 1024;

/** What a leaf is read with; its column is another one in each row group. */
interface LeafReading {
  readonly node: LeafNode;
  readonly value: ParquetValue;
  column: LevelColumn | null;
}

export class NestedField {
  readonly name: string;
  readonly kind = 'nested';
  readonly quoteBytes = 0;
  readonly dropsFraction = false;
  /** For each row at hand: -1 for null, else the place of the row that was read last. */
  readonly places: Int32Array;
  readonly rendered: RenderedValues;
  readonly texts = null;
  /** As long as a row may be: how long a nested value is, is not known before its row is read. */
  readonly longest = limits.importRowBytesMax;
  readonly #node: SchemaNode;
  readonly #leaves: ReadonlyMap<LeafNode, LeafReading>;
  #problem: string | null = null;
  #row = -1;
  #bytes = 0;

  /** `leafValue`: how the values of a leaf are rendered. */
  constructor(node: SchemaNode, rows: number, leafValue: (leaf: LeafNode) => ParquetValue = defaultValue) {
    this.name = node.name;
    this.#node = node;
    this.places = new Int32Array(rows);
    this.rendered = new RenderedValues(1, { bytes: rowBytesFirst, isLasting: false });
    this.#leaves = new Map(
      node.leaves.map((leaf) => [leaf, { node: leaf, value: leafValue(leaf), column: null }]),
    );
  }

  /** Begins a row group. */
  begin(source: ParquetSource, group: FileMetaData['row_groups'][number]): void {
    for (const leaf of this.#leaves.values()) {
      const chunk = group.columns[leaf.node.column]?.meta_data;
      if (chunk === undefined) throw new ParquetError('a row group lacks a column');
      leaf.column = new LevelColumn(source, chunk, leaf.node, Number(group.num_rows));
    }
  }

  get rowsAtHand(): number {
    let rows = Number.POSITIVE_INFINITY;
    for (const leaf of this.#leaves.values()) rows = Math.min(rows, columnOf(leaf).rowsAtHand);
    return rows;
  }

  async load(): Promise<void> {
    for (const leaf of this.#leaves.values())
      if (columnOf(leaf).rowsAtHand === 0) await columnOf(leaf).load();
  }

  open(): void {
    this.#row = -1;
  }

  /** Reads a row, the next one or the last one again, and answers what its JSON takes. */
  bytesOf(row: number): number {
    if (row !== this.#row) this.#read(row);
    return this.#bytes;
  }

  release(): void {
    for (const leaf of this.#leaves.values()) {
      leaf.column?.release();
      leaf.column = null;
    }
  }

  #read(row: number): void {
    const { rendered } = this;
    rendered.clear();
    this.#problem = null;
    this.#row = row;
    const isThere = this.#isPresent(this.#node);
    if (isThere) this.#write(this.#node);
    else this.#passAll(this.#node);
    this.#expectRowEnd();
    this.places[row] = isThere ? 0 : -1;
    this.#bytes = isThere ? rendered.json.at : nullBytes;
    if (this.#problem === null) rendered.endNested(0);
    else rendered.endBroken(0, this.#problem);
  }

  #write(node: SchemaNode): void {
    switch (node.kind) {
      case 'leaf':
        return this.#leaf(node);
      case 'struct':
        return this.#struct(node);
      case 'list':
        return this.#list(node);
      case 'map':
        return this.#map(node);
    }
  }

  /** Writes a value, or null where it is missing. */
  #writeOrNull(node: SchemaNode): void {
    if (this.#isPresent(node)) return this.#write(node);
    this.#passAll(node);
    this.#ascii('null');
  }

  #leaf(node: LeafNode): void {
    const reading = this.#readingOf(node);
    const column = columnOf(reading);
    const { values, place } = column;
    const { value } = reading;
    const { rendered } = this;
    const length =
      values.kind === 'bytes' ? (values.ends[place] as number) - (values.starts[place] as number) : 0;
    this.#reserve(value.jsonBytesMax ?? length * escapedBytesMax + 2);
    value.render(values, place, rendered, 0);
    if (rendered.kinds[0] === renderedKinds.broken) this.#problem ??= rendered.problemOf(0);
    column.pass();
  }

  #struct({ members }: StructNode): void {
    members.forEach((member, at) => {
      this.#ascii(`${at === 0 ? '{' : ','}${JSON.stringify(member.name)}:`);
      this.#writeOrNull(member);
    });
    this.#ascii('}');
  }

  #list(node: ListNode): void {
    this.#ascii('[');
    if (this.#hasItems(node))
      for (let isFirst = true; isFirst || this.#goesOn(node); isFirst = false) {
        if (!isFirst) this.#ascii(',');
        this.#writeOrNull(node.item);
      }
    else this.#passAll(node);
    this.#ascii(']');
  }

  #map(node: MapNode): void {
    this.#ascii('{');
    if (this.#hasItems(node))
      for (let isFirst = true; isFirst || this.#goesOn(node); isFirst = false) {
        if (!isFirst) this.#ascii(',');
        this.#key(node.key);
        this.#ascii(':');
        this.#writeOrNull(node.value);
      }
    else this.#passAll(node);
    this.#ascii('}');
  }

  /** Writes a key: a text as it is, any other value in quotes. */
  #key(key: LeafNode): void {
    const start = this.rendered.json.at;
    this.#writeOrNull(key);
    const { json } = this.rendered;
    if (json.bytes[start] === quote) return;
    const text = json.bytes.toString('latin1', start, json.at);
    json.at = start;
    this.#ascii(`"${text}"`);
  }

  #isPresent(node: SchemaNode): boolean {
    return this.#agree(node, (column) => column.definition >= node.presentFrom);
  }

  #hasItems(node: ListNode | MapNode): boolean {
    return this.#agree(node, (column) => column.definition >= node.itemFrom);
  }

  #goesOn(node: ListNode | MapNode): boolean {
    return this.#agree(node, (column) => column.repetition === node.repetition);
  }

  /** Answers what all leaves below a node must say alike. Throws where they don't: the file is damaged. */
  #agree(node: SchemaNode, said: (column: LevelColumn) => boolean): boolean {
    const { leaves } = node;
    const first = said(this.#columnOf(leaves[0]));
    for (let at = 1; at < leaves.length; at++)
      if (said(this.#columnOf(leaves[at])) !== first)
        throw new ParquetError('the columns of a value have levels that contradict each other');
    return first;
  }

  #passAll({ leaves }: SchemaNode): void {
    for (const leaf of leaves) this.#columnOf(leaf).pass();
  }

  #expectRowEnd(): void {
    for (const { column } of this.#leaves.values())
      if (column !== null && column.repetition !== 0)
        throw new ParquetError('a row goes on where its schema says that it ends');
  }

  #readingOf(leaf: LeafNode | undefined): LeafReading {
    const reading = leaf === undefined ? undefined : this.#leaves.get(leaf);
    if (reading === undefined) throw new ParquetError("the file's schema has a group without columns");
    return reading;
  }

  #columnOf(leaf: LeafNode | undefined): LevelColumn {
    return columnOf(this.#readingOf(leaf));
  }

  #ascii(text: string): void {
    // Names may be more than ASCII.
    const bytes = Buffer.from(text);
    this.#reserve(bytes.length);
    this.rendered.json.copy(bytes, 0, bytes.length);
  }

  #reserve(bytes: number): void {
    const { rendered } = this;
    if (rendered.json.at > limits.importRowBytesMax)
      throw new ParquetError(
        `a value of the column ${JSON.stringify(this.name)} takes more than ${limits.importRowBytesMax} bytes as JSON`,
      );
    rendered.reserve(bytes);
  }
}

function defaultValue({ element }: LeafNode): ParquetValue {
  return parquetValue(element);
}

function columnOf({ column }: LeafReading): LevelColumn {
  if (column === null) throw new ParquetError('a column is read before its row group');
  return column;
}
