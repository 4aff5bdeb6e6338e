import { type ActorReply, reply } from '../../actors/actor/actor-reply.ts';
import { effectOf } from '../../protocol/effect-of.ts';
import { ApiError } from '../../protocol/errors.ts';
import type { ActorCall } from '../../protocol/messages.ts';
import { type Owners, placementKey } from '../../protocol/placement.ts';
import { rendezvousPick } from '../../src/base/rendezvous-hash.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './process.ts';
import type { Scheduler } from './scheduler.ts';

/** The way of a message between two servers, in milliseconds. */
const wayMsMin = 0.3;
const wayMsMax = 4;
/** Whoever forwarded gives up after this long. */
const patienceMs = 10_000;

/**
 * Calls from server to server, in place of connections: a call finds the process that has its server's place now, takes its way there
 * and back, and is lost with either end. It carries the placement by which it was sent; an owner that knows a later one refuses it, and it
 * is sent once more by the view that there is then.
 */
export class Forwards {
  readonly #scheduler: Scheduler;
  readonly #chance: Chance;
  readonly #processOf: (serverId: string) => SimulatedProcess | undefined;

  constructor(
    scheduler: Scheduler,
    chance: Chance,
    processOf: (serverId: string) => SimulatedProcess | undefined,
  ) {
    this.#scheduler = scheduler;
    this.#chance = chance;
    this.#processOf = processOf;
  }

  /** `owners`: as the sender knows them. */
  async ask(
    from: SimulatedProcess,
    call: ActorCall,
    body: Uint8Array | null,
    owners: Owners,
  ): Promise<ActorReply> {
    const { servers } = owners;
    if (servers.length === 0) throw notWritten('nobody owns this yet');
    const owner = servers[rendezvousPick(placementKey(call.tenantId, call.namespace), servers)];
    // The body is moved or used where it arrives.
    const copy = body === null ? null : Uint8Array.from(body);
    if (owner === from.serverId) return atHost(from, call, copy);
    const to = this.#processOf(owner ?? '');
    if (to === undefined) throw notWritten('its server cannot be reached');
    return this.#forward(from, to, { call, body: copy, placement: owners.placement });
  }

  #forward(
    from: SimulatedProcess,
    to: SimulatedProcess,
    sent: { readonly call: ActorCall; readonly body: Uint8Array | null; readonly placement: number },
  ): Promise<ActorReply> {
    const scheduler = this.#scheduler;
    const { call, body, placement } = sent;
    return new Promise((resolve, reject) => {
      const lost = () =>
        reject(
          effectOf(call.operation).lost === 'unavailable'
            ? notWritten('its server has gone')
            : new ApiError('write_unknown', 'its server has gone: the write may or may not be applied', {
                retryAfter: 1,
              }),
        );
      scheduler.after(patienceMs, from, lost);
      to.onDeath(() => scheduler.after(this.#wayMs(), from, lost));
      scheduler.after(this.#wayMs(), to, () => {
        const answering =
          placement === to.owners.placement ? atHost(to, call, body) : Promise.reject(otherPlacement());
        answering.then(
          (answer) =>
            scheduler.after(0, to, () => scheduler.after(this.#wayMs(), from, () => resolve(answer))),
          (error) => scheduler.after(0, to, () => scheduler.after(this.#wayMs(), from, () => reject(error))),
        );
      });
    });
  }

  #wayMs(): number {
    return this.#chance.between(wayMsMin, wayMsMax);
  }
}

async function atHost(
  process: SimulatedProcess,
  call: ActorCall,
  body: Uint8Array | null,
): Promise<ActorReply> {
  const host = process.composed?.host;
  if (host === undefined) throw notWritten('its server is starting');
  if (call.operation === 'getDocument') {
    const packed = host.getWarm(call);
    if (packed !== null) return reply('', { packed });
  }
  return host.handle(call, body);
}

function otherPlacement(): ApiError {
  return notWritten('its server knows other owners');
}

function notWritten(why: string): ApiError {
  return new ApiError('unavailable', `${why}; nothing was written`, { retryAfter: 1 });
}
