/**
 * JSON with whole numbers of 64 bits kept: one that a double cannot hold comes back as a bigint, where the browser tells a
 * reviver what a number was written as. Older ones do not, and show such numbers rounded, as JavaScript does.
 */
export type Json =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly Json[]
  | { readonly [key: string]: Json };

interface ReviverContext {
  readonly source?: string;
}

export function parseExactly(text: string): unknown {
  const reviver = (_key: string, value: unknown, context?: ReviverContext): unknown => {
    const source = context?.source;
    if (typeof value !== 'number' || Number.isSafeInteger(value) || source === undefined) return value;
    return /^-?\d+$/.test(source) ? BigInt(source) : value;
  };
  return JSON.parse(text, reviver);
}

/** Writes a value as JSON, on lines of its own where it is an object or a list; bigints as the numbers that they are. */
export function writeExactly(value: unknown, indent = ''): string {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map((item) => writeExactly(item, indent)).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const inner = `${indent}  `;
  const lines = Object.entries(value).map(
    ([key, item]) => `${inner}${JSON.stringify(key)}: ${writeExactly(item, inner)}`,
  );
  return lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n${indent}}`;
}
