/** Routers of several servers, joined by peers over memory, with actors that are functions. */
import { MessageChannel } from 'node:worker_threads';
import { limits } from '../../protocol/limits.ts';
import {
  type ActorCall,
  actorAnswerToWire,
  actorCallFromWire,
  noCaller,
  noMeter,
} from '../../protocol/messages.ts';
import { placementKey } from '../../protocol/placement.ts';
import { builtInPlans } from '../../src/accounts/plans.ts';
import type { Cached } from '../../src/auth/key-cache.ts';
import { ByteGate } from '../../src/base/byte-gate.ts';
import type { Clock } from '../../src/base/clock.ts';
import { exposition, type Family } from '../../src/base/exposition.ts';
import type { Logger } from '../../src/base/log.ts';
import { PortChannel, type Respond } from '../../src/base/port-channel.ts';
import { systemRandom } from '../../src/base/random.ts';
import { rendezvousPick } from '../../src/base/rendezvous-hash.ts';
import { AttemptCounts, type CountAttempt } from '../../src/identity/attempt-counts.ts';
import { Peers } from '../../src/peers/peers.ts';
import type { PeerTransport } from '../../src/peers/transport.ts';
import { ForwardMetrics } from '../../src/router/forward-metrics.ts';
import { KnownMembers, type Membership } from '../../src/router/members.ts';
import { OtherServers } from '../../src/router/other-servers.ts';
import { Router } from '../../src/router/router.ts';
import { type ReceiveFile, ServedCalls } from '../../src/router/served-calls.ts';
import { sharedAttempts } from '../../src/router/shared-attempts.ts';

/** What the actor of a server does with a call. */
export type Act = (call: ActorCall, body: Uint8Array | null, respond: Respond, channel: PortChannel) => void;

export const done = actorAnswerToWire({
  status: 200,
  headers: [['a', 'b']],
  meter: { ...noMeter, bytes: 7 },
});
const echo: Act = (_, body, respond) => respond(done, body);

export class RoutedServer {
  readonly id: string;
  readonly router: Router;
  readonly members: KnownMembers;
  readonly peers: Peers;
  readonly others: OtherServers;
  readonly thread: PortChannel;
  /** The channel's other end, where its actors are. */
  readonly actors: PortChannel;
  readonly gates: { readonly answers: ByteGate; readonly bodies: ByteGate };
  /** What its actors got, in order. */
  readonly got: ActorCall[] = [];
  readonly forgotten: Cached[] = [];
  /** Logs of servers that asked for the flush of what they will own, which lasts until `flushing` has resolved. */
  readonly prepared: string[] = [];
  flushing: Promise<void> = Promise.resolve();
  /** What it counts of attempts, and the same as all servers count it together. */
  readonly attempts: AttemptCounts;
  readonly countAttempt: CountAttempt;
  readonly views: string[] = [];
  readonly lines: string[] = [];
  timesBehind = 0;
  act: Act = echo;
  receiveFile: ReceiveFile = () => Promise.reject(new Error('no file is received here'));
  port = 0;

  constructor(id: string, members: Membership, { clock, transport, gateBytes }: ClusterOptions) {
    this.id = id;
    const line = (message: string) => void this.lines.push(message);
    const logger: Logger = { error: line, info: line, debug() {} };
    this.attempts = new AttemptCounts({ limits: builtInPlans.attempts, clock });
    this.members = new KnownMembers(members, clock);
    this.router = new Router({
      clock,
      forget: (cached) => void this.forgotten.push(cached),
      recentOwners: null,
    });
    const ports = new MessageChannel();
    ports.port1.unref();
    ports.port2.unref();
    this.thread = new PortChannel(ports.port1, this.router.handler(), limits.messageInlineBytesMax);
    this.actors = new PortChannel(
      ports.port2,
      {
        call: (message, respond) => {
          const call = actorCallFromWire(message.head);
          this.got.push(call);
          this.act(call, message.body, respond, this.actors);
        },
        notice() {},
      },
      limits.messageInlineBytesMax,
    );
    this.router.use([{ channel: this.thread }]);
    const gate = () => new ByteGate({ max: gateBytes ?? 64_000_000, clock, waitersMax: 1_000 });
    this.gates = { answers: gate(), bodies: gate() };
    const metrics = new ForwardMetrics();
    const { router } = this;
    const served = new ServedCalls({
      router,
      members: this.members,
      bodies: this.gates.bodies,
      receiveFile: (...asked) => this.receiveFile(...asked),
      clock,
      logger,
      metrics,
      forget: (cached) => void this.forgotten.push(cached),
      onView: (bytes) => void this.views.push(Buffer.from(bytes).toString()),
      onPrepare: async (log) => {
        this.prepared.push(log);
        await this.flushing;
      },
      onAttempt: (ask) => this.attempts.take(ask),
      onBehind: () => void this.timesBehind++,
    });
    const self = { serverId: id, logId: logOf(id) };
    this.peers = new Peers({ self, transport, handler: served, clock, random: systemRandom, logger });
    this.others = new OtherServers({
      router,
      members: this.members,
      peers: this.peers,
      answers: this.gates.answers,
      clock,
      logger,
      metrics,
    });
    this.countAttempt = sharedAttempts({ members: this.members, peers: this.peers, own: this.attempts });
    router.join(this.others);
  }

  metric(name: string): number {
    const text = exposition(this.others.families() as Family[]);
    const line = text.split('\n').find((each) => each.startsWith(`${name} `)) ?? '';
    return Number(line.slice(name.length + 1));
  }

  close(): void {
    this.peers.close();
    this.thread.close();
    this.actors.close();
  }
}

export interface ClusterOptions {
  readonly clock: Clock;
  readonly transport: PeerTransport;
  readonly gateBytes?: number;
}

export const logOf = (id: string) => `log-${id}`;

/** A snapshot as one server knows it. `ids` are all members, of which `servers` own something. */
export function membersOf(
  self: string,
  placement: number,
  ids: readonly string[],
  servers: readonly string[] = ids,
): Membership {
  const logs = new Map(ids.map((id) => [id, logOf(id)]));
  return { owners: { placement, servers, self }, logs };
}

/** Servers that know each other, at placement 1. `cut`: who has no way to whom. */
export async function startServers(
  ids: readonly string[],
  options: ClusterOptions,
  cut: readonly (readonly [from: string, to: string])[] = [],
): Promise<RoutedServer[]> {
  const servers = ids.map((id) => new RoutedServer(id, membersOf(id, 1, ids), options));
  for (const server of servers) server.port = await server.peers.listen({ host: 'memory', port: 0 });
  for (const server of servers) connect(server, servers, cut);
  return servers;
}

/** Says who the others are, and where. */
export function connect(
  server: RoutedServer,
  servers: readonly RoutedServer[],
  cut: readonly (readonly [from: string, to: string])[] = [],
): void {
  const portOf = ({ id, port }: RoutedServer) =>
    cut.some(([from, to]) => from === server.id && to === id) ? 9_999 : port;
  server.peers.use(
    servers.map((each) => ({
      serverId: each.id,
      logId: logOf(each.id),
      address: { host: 'memory', port: portOf(each) },
    })),
  );
}

export const tenantId = 7;

/** A name of which it holds, of those that servers own at each of some placements. */
export function nameWhere(
  ...owned: readonly (readonly [servers: readonly string[], owner: string])[]
): string {
  for (let n = 0; n < 10_000; n++) {
    const name = `name-${n}`;
    const key = placementKey(tenantId, name);
    if (owned.every(([servers, owner]) => servers[rendezvousPick(key, servers)] === owner)) return name;
  }
  throw new Error('no name is owned so');
}

export function callOf(operation: string, namespace: string, more: Partial<ActorCall> = {}): ActorCall {
  const caller = { ...noCaller, owner: 42, weight: 8, requestId: 'r1' };
  return { operation, tenantId, namespace, argument: '', query: '', deadlineMs: 10_000, caller, ...more };
}
