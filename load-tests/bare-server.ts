import { loadUws } from '../src/front/http-uws-load.ts';

/**
 * What warm reads are compared with: uWebSockets alone, answering every request with the same head and bytes. Started
 * as a process of its own; the answer is JSON in the first argument, the chosen port goes to standard output.
 */
export interface ConstantAnswer {
  /** Status and headers as they stand in the answer, without Content-Length, which uWebSockets writes itself. */
  readonly head: string;
  readonly body: string;
}

const { head, body } = JSON.parse(process.argv[2] ?? '') as ConstantAnswer;
const loaded = loadUws();
if (!('uws' in loaded)) throw new Error(`uWebSockets does not load: ${loaded.reason}`);
const { uws } = loaded;
const bytes = Buffer.from(body);
uws._cfg('silent');
const app = uws.App();
app.any('/*', (response) => {
  response.writeStatus(head);
  const [, done] = response.tryEnd(bytes, bytes.byteLength);
  if (done) return;
  // Larger than the socket's buffer.
  response.onAborted(() => {});
  response.onWritable((offset) => response.tryEnd(bytes.subarray(offset), bytes.byteLength)[1]);
});
app.listen('127.0.0.1', 0, uws.LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
  if (socket === false) throw new Error('no port is free');
  process.stdout.write(`${uws.us_socket_local_port(socket)}\n`);
});
