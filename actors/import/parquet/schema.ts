/**
 * The tree of a file's columns. A column of Parquet is a leaf of it; a leaf's values come with two levels each, of which the repetition says
 * which list goes on, and the definition how much of what is above the value is there (the Dremel encoding).
 */
import { limits } from '../../../protocol/limits.ts';
import { quoted } from '../import-error.ts';
import type { FileMetaData, SchemaElement } from './metadata.ts';
import { ParquetError } from './parquet-error.ts';

export type SchemaNode = LeafNode | StructNode | ListNode | MapNode;

interface NodePlace {
  readonly name: string;
  /** The definition level from which the node is there and not null; lower levels say what above it is missing. */
  readonly presentFrom: number;
  /** The leaves below the node, or the node itself where it is one, in the order of the file. */
  readonly leaves: readonly LeafNode[];
}

export interface LeafNode extends NodePlace {
  readonly kind: 'leaf';
  readonly element: SchemaElement;
  /** The leaf's place among the columns of a row group. */
  readonly column: number;
  readonly repetitionMax: number;
  readonly definitionMax: number;
}

export interface StructNode extends NodePlace {
  readonly kind: 'struct';
  readonly members: readonly SchemaNode[];
}

export interface ListNode extends NodePlace {
  readonly kind: 'list';
  /** The repetition level of a further item. */
  readonly repetition: number;
  /** The definition level from which the list has an item. */
  readonly itemFrom: number;
  readonly item: SchemaNode;
}

export interface MapNode extends NodePlace {
  readonly kind: 'map';
  readonly repetition: number;
  readonly itemFrom: number;
  readonly key: LeafNode;
  readonly value: SchemaNode;
}

/** Levels of JSON that a column's values may have: a row's meta is one around them. */
const depthMax = limits.jsonDepthMax - 1;

/** Reads the tree from the list of its elements, each before those below it. Throws ParquetError. */
export function schemaOf({ schema }: FileMetaData): readonly SchemaNode[] {
  const root = schema[0];
  const builder = new SchemaBuilder(schema);
  const columns = builder.members(root?.num_children ?? 0, { repetition: 0, definition: 0, depth: 0 });
  if (columns.length === 0) throw new ParquetError('the file has no columns');
  builder.expectEnd();
  return columns;
}

interface Levels {
  readonly repetition: number;
  readonly definition: number;
  readonly depth: number;
}

class SchemaBuilder {
  readonly #elements: readonly SchemaElement[];
  #at = 1;
  #leaves = 0;

  constructor(elements: readonly SchemaElement[]) {
    this.#elements = elements;
  }

  expectEnd(): void {
    if (this.#at !== this.#elements.length)
      throw new ParquetError("the file's schema has elements that belong nowhere");
  }

  members(count: number, levels: Levels): SchemaNode[] {
    if (count > this.#elements.length - this.#at) throw new ParquetError("the file's schema ends early");
    return Array.from({ length: count }, () => this.#column(levels));
  }

  /** Reads the next element as a column: one that is repeated without a list around it is a list itself. */
  #column(levels: Levels): SchemaNode {
    const element = this.#next(levels);
    if (element.repetition_type === 'REPEATED') {
      const within = { ...levels, repetition: levels.repetition + 1, definition: levels.definition + 1 };
      const item = this.#value(element, { ...within, depth: levels.depth + 1 });
      return listOf(element.name, { presentFrom: levels.definition, within, item });
    }
    const isOptional = element.repetition_type === 'OPTIONAL';
    return this.#value(element, { ...levels, definition: levels.definition + (isOptional ? 1 : 0) });
  }

  #next({ depth }: Levels): SchemaElement {
    const element = this.#elements[this.#at++];
    if (element === undefined) throw new ParquetError("the file's schema ends early");
    // Whatever the library's types say: a footer may lack it.
    const name: string | undefined = element.name;
    if (name === undefined || !name.isWellFormed())
      throw new ParquetError('the file has a column without a name');
    if (depth > depthMax)
      throw new ParquetError(`the column ${quoted(name)} nests deeper than ${depthMax} levels`);
    return element;
  }

  /** Reads what an element holds where it is there. `levels` are the element's own. */
  #value(element: SchemaElement, levels: Levels): SchemaNode {
    const children = element.num_children ?? 0;
    if (children === 0) return this.#leaf(element, levels);
    const { logical_type: logical, converted_type: converted } = element;
    const next = this.#elements[this.#at];
    const isRepeated = children === 1 && next?.repetition_type === 'REPEATED';
    if (isRepeated && (logical?.type === 'LIST' || converted === 'LIST')) return this.#list(element, levels);
    const isMap = logical?.type === 'MAP' || converted === 'MAP' || converted === 'MAP_KEY_VALUE';
    if (isRepeated && isMap && (next.num_children ?? 0) > 0) return this.#map(element, levels);
    return this.#struct(element, children, levels);
  }

  #leaf(element: SchemaElement, { repetition, definition }: Levels): LeafNode {
    if (element.type === undefined)
      throw new ParquetError(`the column ${quoted(element.name)} has neither a type nor members`);
    if (this.#leaves === limits.importColumnsMax)
      throw new ParquetError(`the file has more than ${limits.importColumnsMax} columns`);
    const leaf = {
      kind: 'leaf' as const,
      name: element.name,
      presentFrom: definition,
      leaves: [] as LeafNode[],
      element,
      column: this.#leaves++,
      repetitionMax: repetition,
      definitionMax: definition,
    };
    leaf.leaves.push(leaf);
    return leaf;
  }

  #struct(element: SchemaElement, children: number, levels: Levels): StructNode {
    const members = this.members(children, { ...levels, depth: levels.depth + 1 });
    const names = new Set(members.map(({ name }) => name));
    if (names.size < members.length)
      throw new ParquetError(`the column ${quoted(element.name)} has two members of one name`);
    return {
      kind: 'struct',
      name: element.name,
      presentFrom: levels.definition,
      leaves: members.flatMap(({ leaves }) => leaves),
      members,
    };
  }

  /** Reads a list, by the format's rules for those of older writers too: what is repeated is the item, or a struct with the item in it. */
  #list(element: SchemaElement, levels: Levels): ListNode {
    const repeated = this.#next(levels);
    const children = repeated.num_children ?? 0;
    const only = this.#elements[this.#at];
    const isItem =
      children !== 1 ||
      repeated.name === 'array' ||
      repeated.name === `${element.name}_tuple` ||
      only?.repetition_type === 'REPEATED';
    const within = {
      repetition: levels.repetition + 1,
      definition: levels.definition + 1,
      depth: levels.depth + 1,
    };
    const item = isItem ? this.#value(repeated, within) : this.#column(within);
    return listOf(element.name, { presentFrom: levels.definition, within, item });
  }

  /** Reads a map; one without values is a list of its keys. */
  #map(element: SchemaElement, levels: Levels): SchemaNode {
    const repeated = this.#next(levels);
    const within = {
      repetition: levels.repetition + 1,
      definition: levels.definition + 1,
      depth: levels.depth + 1,
    };
    const [key, value, ...others] = this.members(repeated.num_children ?? 0, within);
    const presentFrom = levels.definition;
    if (key !== undefined && value === undefined)
      return listOf(element.name, { presentFrom, within, item: key });
    if (key?.kind !== 'leaf' || value === undefined || others.length > 0)
      throw new ParquetError(`the column ${quoted(element.name)} is a map whose keys are no plain values`);
    return {
      kind: 'map',
      name: element.name,
      presentFrom,
      leaves: [key, ...value.leaves],
      repetition: within.repetition,
      itemFrom: within.definition,
      key,
      value,
    };
  }
}

function listOf(
  name: string,
  {
    presentFrom,
    within,
    item,
  }: { readonly presentFrom: number; readonly within: Levels; readonly item: SchemaNode },
): ListNode {
  return {
    kind: 'list',
    name,
    presentFrom,
    leaves: item.leaves,
    repetition: within.repetition,
    itemFrom: within.definition,
    item,
  };
}
