import { sleep } from './judge.ts';
import type { Connections } from './measured-server.ts';

/** Documents put through the API in requests of a moderate size, in the order given, which is then the order of their age. */
export interface PutOptions {
  /** Requests on the way at once. More than one leave the order of their documents open. */
  readonly connections?: number;
}

const batchBytesMax = 4_000_000;
const batchDocumentsMax = 5_000;

export type Texts = Iterable<readonly [id: string, text: Buffer | string]>;

/** Resolves when all are acknowledged. Waits where the server says that it is busy; rejects for any other refusal. */
export async function putTexts(
  client: Connections,
  namespace: string,
  texts: Texts,
  { connections = 1 }: PutOptions = {},
): Promise<void> {
  const path = `/v1/namespaces/${namespace}/docs`;
  const batches = batchesOf(texts);
  const send = async () => {
    // One iterator for all of them: each takes the next batch.
    for (const body of batches) await postUntilTaken(client, path, body);
  };
  await Promise.all(Array.from({ length: connections }, send));
}

/** For how long 503 is taken for a moment, such as that in which servers hand data over, in milliseconds. */
const unavailableMsMax = 30_000;

/** Again and again while the server says that it is busy, and for a while where it is unavailable. */
export async function postUntilTaken(
  client: Connections,
  path: string,
  body: Buffer,
  onBusy: () => void = () => {},
): Promise<void> {
  for (const began = performance.now(); ; ) {
    const { status, text, retryAfterMs } = await client.send('POST', path, body);
    if (status === 200) return;
    const isMoment = status === 503 && performance.now() - began < unavailableMsMax;
    if (status !== 429 && !isMoment) throw new Error(`POST ${path}: ${status} ${text.slice(0, 500)}`);
    onBusy();
    await sleep(retryAfterMs);
  }
}

function* batchesOf(texts: Texts): Generator<Buffer, undefined> {
  let documents: string[] = [];
  let bytes = 0;
  const body = () => Buffer.from(`{"docs":[${documents.join(',')}]}`);
  for (const [id, text] of texts) {
    documents.push(JSON.stringify({ id, text: text.toString() }));
    bytes += text.length;
    if (bytes < batchBytesMax && documents.length < batchDocumentsMax) continue;
    yield body();
    documents = [];
    bytes = 0;
  }
  if (documents.length > 0) yield body();
  return undefined;
}
