/** Looks for secrets where they don't belong, in every form in which text is commonly written down. */
import { join, relative } from 'node:path';
import { filesBelow, readIfThere } from './living-folder.ts';

export interface Secret {
  readonly what: string;
  readonly bytes: Uint8Array;
}

export function secretText(what: string, text: string): Secret {
  return { what, bytes: Buffer.from(text) };
}

/** Shorter ones would be found by chance. */
const formCharactersMin = 8;

/** As it is, in JSON, in a URL, in hexadecimal, and in base64 wherever it may begin in what was encoded. */
export function formsOf({ bytes }: Secret): ReadonlyMap<string, Buffer> {
  const raw = Buffer.from(bytes);
  const text = raw.toString();
  const forms = new Map<string, Buffer>([['plain', raw]]);
  const add = (name: string, form: string) => forms.set(name, Buffer.from(form));
  if (Buffer.from(text).equals(raw)) {
    add('in JSON', JSON.stringify(text).slice(1, -1));
    add('in a URL', encodeURIComponent(text));
  }
  add('hexadecimal', raw.toString('hex'));
  add('upper-case hexadecimal', raw.toString('hex').toUpperCase());
  for (const before of [0, 1, 2]) {
    const encoded = Buffer.concat([Buffer.alloc(before), raw])
      .toString('base64')
      .replaceAll('=', '');
    // The first characters also hold what stands before, the last one what comes after.
    const own = encoded.slice(Math.ceil((before * 8) / 6), -1);
    if (own.length < formCharactersMin) continue;
    add(`base64 at ${before}`, own);
    add(`base64url at ${before}`, own.replaceAll('+', '-').replaceAll('/', '_'));
  }
  return forms;
}

/** A place that was looked at, for the message of a failure. */
export interface Place {
  readonly name: string;
  readonly bytes: Buffer;
}

/** Every file under a folder, but for those in the folders named. */
export function filesUnder(folder: string, except: readonly string[] = []): Place[] {
  return filesBelow(folder)
    .map((path) => relative(folder, path))
    .filter((name) => !except.some((other) => name.startsWith(`${other}/`)))
    .map((name) => ({ name, bytes: readIfThere(join(folder, name)) ?? Buffer.alloc(0) }))
    .map(({ name, bytes }) => ({ name, bytes: Buffer.concat([Buffer.from(name), bytes]) }));
}

/** `SECRET, FORM: PLACE` for each that is found. */
export function leaksOf(secrets: readonly Secret[], places: readonly Place[]): string[] {
  const leaks: string[] = [];
  for (const secret of secrets) {
    for (const [form, bytes] of formsOf(secret)) {
      for (const place of places) {
        if (place.bytes.includes(bytes)) leaks.push(`${secret.what}, ${form}: ${place.name}`);
      }
    }
  }
  return leaks;
}
