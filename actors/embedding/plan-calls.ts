import { limits } from '../../protocol/limits.ts';
import type { CallLimits } from './embedding-models.ts';

/** One call to a provider: its texts, and where in the request their vectors belong. */
export interface PlannedCall {
  readonly texts: readonly string[];
  readonly places: readonly number[];
  /** Bytes of its texts in UTF-8. */
  readonly bytes: number;
}

const encoder = new TextEncoder();

/**
 * Texts in their order, cut and put together into calls that keep the provider's limits. A text with nothing to see is in
 * none: providers refuse it, and with it the whole call.
 */
export function planCalls(texts: readonly string[], { textsMax, bytesMax }: CallLimits): PlannedCall[] {
  const calls: PlannedCall[] = [];
  let open = newCall();
  for (const [place, text] of texts.entries()) {
    const cut = cutText(text);
    if (cut.text === '') continue;
    if (open.texts.length > 0 && (open.texts.length >= textsMax || open.bytes + cut.bytes > bytesMax)) {
      calls.push(open);
      open = newCall();
    }
    open.texts.push(cut.text);
    open.places.push(place);
    open.bytes += cut.bytes;
  }
  if (open.texts.length > 0) calls.push(open);
  return calls;
}

function newCall(): { texts: string[]; places: number[]; bytes: number } {
  return { texts: [], places: [], bytes: 0 };
}

/**
 * The beginning of a text that fits, in whole characters, without the white space around it. Only what may fit is encoded:
 * a text may have two million characters, each at least a byte.
 */
export function cutText(text: string): { readonly text: string; readonly bytes: number } {
  const head = text.trimStart().slice(0, limits.embeddedTextBytesMax);
  const { read } = encoder.encodeInto(head, new Uint8Array(limits.embeddedTextBytesMax));
  const cut = head.slice(0, read).trimEnd();
  return { text: cut, bytes: Buffer.byteLength(cut) };
}
