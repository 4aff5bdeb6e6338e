/**
 * Names and ids with one parser each. A namespace's name is the user's; its id is ours, random, made for each
 * creation and never used again, so that a name that was deleted and made again is another namespace.
 */
import { limits } from './limits.ts';

export type Brand<T, Name extends string> = T & { readonly __brand: Name };
export type NamespaceName = Brand<string, 'NamespaceName'>;
export type NamespaceId = Brand<string, 'NamespaceId'>;
export type SegmentId = Brand<string, 'SegmentId'>;
export type LogId = Brand<string, 'LogId'>;
export type TenantId = Brand<number, 'TenantId'>;
export type PersonId = Brand<number, 'PersonId'>;
export type KeyId = Brand<number, 'KeyId'>;

const namespaceName = /^[a-z0-9._-]+$/;

const dotsProblem = 'may not be "." or "..": HTTP clients take such a step out of a path';

/** What is wrong with a namespace name, or null. */
export function namespaceNameProblem(name: string): string | null {
  if (name.length === 0 || name.length > limits.namespaceNameCharactersMax) {
    return `must have 1 to ${limits.namespaceNameCharactersMax} characters`;
  }
  if (!namespaceName.test(name)) return 'may contain only a-z, 0-9, "-", "_" and "."';
  return name === '.' || name === '..' ? dotsProblem : null;
}

/** What is wrong with a document id, or null. Ids are opaque: `..` and `//` mean nothing. */
export function documentIdProblem(id: string): string | null {
  if (id.length === 0) return 'must not be empty';
  if (!id.isWellFormed()) return 'must be well-formed Unicode: it holds half of a surrogate pair';
  if (hasControlCharacter(id)) return 'must be one line without control characters';
  if (id.length * 3 > limits.documentIdBytesMax && Buffer.byteLength(id) > limits.documentIdBytesMax) {
    return `must be at most ${limits.documentIdBytesMax} bytes of UTF-8`;
  }
  return null;
}

function hasControlCharacter(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f) || code === 0x2028 || code === 0x2029) return true;
  }
  return false;
}

/** A positive 48-bit integer in decimal, or null: ids in paths and headers. */
export function parseId48(text: string): number | null {
  if (!/^[1-9][0-9]{0,14}$/.test(text)) return null;
  const id = Number(text);
  return id < 2 ** 48 ? id : null;
}
