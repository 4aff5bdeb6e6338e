/** Servers that only have peers, for tests of the channel between them. */
import type { Clock } from '../../../src/base/clock.ts';
import { systemClock } from '../../../src/base/clock.ts';
import type { LogFields, Logger } from '../../../src/base/log.ts';
import { systemRandom } from '../../../src/base/random.ts';
import type { PeerAnswer, PeerCall, PeerHandler } from '../../../src/peers/call.ts';
import type { PeerMember } from '../../../src/peers/dialled-peer.ts';
import type { ReceivedBody } from '../../../src/peers/message.ts';
import { tlsTransport } from '../../../src/peers/node-tls.ts';
import { Peers } from '../../../src/peers/peers.ts';
import type { PeerTransport } from '../../../src/peers/transport.ts';

export interface LoggedLine {
  readonly level: 'error' | 'info';
  readonly message: string;
  readonly fields: LogFields;
}

export interface TestServer {
  readonly peers: Peers;
  readonly member: PeerMember;
  readonly lines: LoggedLine[];
}

export interface TestServerOptions {
  readonly name: string;
  /** Named after `name` where it is not given. */
  readonly serverId?: string;
  /** Any free one where it is not given. */
  readonly port?: number;
  readonly transport?: PeerTransport;
  readonly clock?: Clock;
  readonly handler?: PeerHandler;
}

/** Answers each request with its own head and body. */
export const echo: PeerHandler = {
  call: ({ head, body }, respond) => {
    wholeBody(body).then(
      (whole) => respond(head, whole),
      (error: unknown) => respond(['failed', String(error)]),
    );
  },
};

export const oneKey = { present: new Uint8Array(32).fill(1), previous: null };

export async function startTestServer({
  name,
  serverId = `server-${name}`,
  port: wantedPort = 0,
  transport = tlsTransport(oneKey, systemClock),
  clock = systemClock,
  handler = echo,
}: TestServerOptions): Promise<TestServer> {
  const lines: LoggedLine[] = [];
  const line =
    (level: LoggedLine['level']) =>
    (message: string, fields: LogFields = {}) =>
      lines.push({ level, message, fields });
  const logger: Logger = { error: line('error'), info: line('info'), debug() {} };
  const self = { serverId, logId: `log-${name}` };
  const peers = new Peers({ self, transport, handler, clock, random: systemRandom, logger });
  const port = await peers.listen({ host: '127.0.0.1', port: wantedPort });
  return { peers, lines, member: { ...self, address: { host: '127.0.0.1', port } } };
}

/** A call's answer, its body as it comes; rejects with what `failed` was given. */
export function ask(from: TestServer, to: TestServer, call: Partial<PeerCall>): Promise<PeerAnswer> {
  return new Promise((resolve, reject) => {
    const whole = { head: null, body: null, deadlineMs: 10_000, placement: 1, ...call };
    from.peers.call(to.member.logId, whole, resolve, reject);
  });
}

export async function wholeBody(body: ReceivedBody): Promise<Buffer | null> {
  if (body === null) return null;
  if (body instanceof Uint8Array) return Buffer.from(body);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export async function until(holds: () => boolean, what: string): Promise<void> {
  for (let waitedMs = 0; !holds(); waitedMs += 5) {
    if (waitedMs > 15_000) throw new Error(`it did not come to be: ${what}`);
    await systemClock.sleep(5);
  }
}
