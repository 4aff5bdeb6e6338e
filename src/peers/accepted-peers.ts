import { limits } from '../../protocol/limits.ts';
import { peerVersions } from '../../protocol/version.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { ByteLink } from './byte-link.ts';
import type { PassOn, PeerHandler } from './call.ts';
import type { Hello, PeerIdentity } from './hello.ts';
import { PeerConnection } from './peer-connection.ts';
import type { PeerMetrics } from './peer-metrics.ts';
import { ServingSide } from './serving-side.ts';
import { TakenRequests } from './taken-requests.ts';
import type { PortEvents } from './transport.ts';

export interface AcceptedOptions {
  readonly self: PeerIdentity;
  readonly handler: PeerHandler;
  readonly passOn: PassOn;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: PeerMetrics;
}

interface Accepted {
  readonly connection: PeerConnection;
  readonly side: ServingSide;
}

/** The connections that other servers have made to this one: one of each use from each process, the last one counts. */
export class AcceptedPeers implements PortEvents {
  readonly #options: AcceptedOptions;
  readonly #taken: TakenRequests;
  /** Every connection whose other end has shown the key. */
  readonly #open = new Set<PeerConnection>();
  readonly #known = new Map<string, Accepted>();
  #leaving = false;
  #strangersUntold = 0;
  #lastToldMs = Number.NEGATIVE_INFINITY;

  constructor(options: AcceptedOptions) {
    this.#options = options;
    this.#taken = new TakenRequests(options.clock);
  }

  get connections(): number {
    return this.#known.size;
  }

  /** Calls that were not answered yet. */
  get waiting(): number {
    let waiting = 0;
    for (const { side } of this.#known.values()) waiting += side.waiting;
    return waiting;
  }

  /** Takes no more calls, and says so; answers go out as they come. */
  leave(): void {
    this.#leaving = true;
    for (const { connection } of this.#known.values()) connection.sayBye('this server is leaving');
  }

  close(reason: string): void {
    this.#leaving = true;
    for (const connection of [...this.#open]) connection.close(reason);
  }

  accepted(link: ByteLink, remote: string): void {
    if (this.#open.size >= limits.peerConnectionsMax) {
      this.stranger('too-many', remote);
      link.listen({ received() {}, drained() {}, closed() {} });
      link.destroy();
      return;
    }
    const { self, clock, handler, passOn, logger } = this.#options;
    let known: string | null = null;
    const connection: PeerConnection = new PeerConnection({
      link,
      clock,
      ownHello: (theirs) => this.#hello(theirs),
      speaksFirst: false,
      refusalOf: ({ wants }) => {
        if (wants !== self.logId) return 'another process of this server answers now';
        return this.#leaving ? 'this server is leaving' : null;
      },
      ready: ({ serverId, logId, use }, writer) => {
        const from = { serverId, logId };
        const isLeaving = () => this.#leaving;
        const side = new ServingSide(writer, {
          self,
          from,
          handler,
          passOn,
          taken: this.#taken,
          logger,
          isLeaving,
        });
        known = `${logId} ${use}`;
        this.#know(known, { connection, side });
        return side;
      },
      ended: ({ kind, reason }) => {
        this.#open.delete(connection);
        if (known !== null && this.#known.get(known)?.connection === connection) this.#known.delete(known);
        if (kind === 'refused') logger.info('another server was refused', { remote, reason });
        else if (kind !== 'lost') logger.error('another server was refused', { remote, reason });
      },
    });
    this.#open.add(connection);
  }

  /** Logs a connection that is no peer's. Anybody can make one, so the log has a line a minute at most. */
  stranger(kind: 'wrong-key' | 'no-peer' | 'too-many', remote: string): void {
    const { clock, logger, metrics } = this.#options;
    metrics.stranger();
    this.#strangersUntold++;
    const now = clock.monotonic();
    if (now - this.#lastToldMs < limits.peerStrangerLogMs) return;
    this.#lastToldMs = now;
    const fields = { remote, count: this.#strangersUntold };
    this.#strangersUntold = 0;
    if (kind === 'wrong-key')
      logger.error(
        'wrong cluster key: another server has a TIDEBASE_CLUSTER_KEY that this one does not know',
        fields,
      );
    else logger.info(`a connection to the peer port was closed: ${strangerTexts[kind]}`, fields);
  }

  /** A process that connects again has lost its connection, whether or not this side has noticed. */
  #know(name: string, accepted: Accepted): void {
    this.#known.get(name)?.connection.close('a newer connection took its place');
    this.#known.set(name, accepted);
  }

  #hello(theirs: Hello | null): Hello {
    const { least, greatest } = peerVersions;
    const { self } = this.#options;
    return { tidebase: 'peer', least, greatest, ...self, wants: '', use: theirs?.use ?? 'calls' };
  }
}

const strangerTexts = {
  'no-peer': 'it did not show the key of the cluster',
  'too-many': 'there are too many',
} as const;
