import { z } from './validate.ts';

/**
 * The check of a stored value whose bytes were decoded: answers the value itself, as the type of its schema, or throws a
 * `StoredValueError` that names the first field that is wrong. The value is not copied, so whoever encodes it again writes its
 * fields in the order in which they were read. Whoever knows where the bytes lie makes a `DataError` of the refusal.
 *
 * A checksum says that the bytes are those that were written; this says that what was written is what this server reads.
 */
export function storedCheck<Schema extends z.ZodType>(schema: Schema): (value: unknown) => z.output<Schema> {
  return (value) => {
    const checked = schema.safeParse(value);
    if (checked.success) return value as z.output<Schema>;
    const [issue] = checked.error.issues;
    const path = (issue?.path ?? []).map(String).join('.');
    throw new StoredValueError(`${path === '' ? 'the value' : path}: ${issue?.message ?? 'not valid'}`);
  };
}

/** Bytes: a view on those of the record. */
export const storedBytes = z.custom<Uint8Array>((value) => value instanceof Uint8Array, 'must be bytes');

/** The number of a person, tenant or key: 1 to 2^48 - 1. */
export function storedId<Id extends number>() {
  return z.custom<Id>((value) => Number.isSafeInteger(value) && (value as number) >= 1, 'must be an id');
}

/** A stored value of another shape than its format has. */
export class StoredValueError extends Error {
  override name = 'StoredValueError';
}
