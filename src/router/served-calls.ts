import { effectOf, takesFile } from '../../protocol/effect-of.ts';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import {
  type ActorCall,
  actorCallFromWire,
  apiErrorToWire,
  movedFromWire,
  type ReceivedFile,
} from '../../protocol/messages.ts';
import type { Cached } from '../auth/key-cache.ts';
import type { ByteGate, Hold } from '../base/byte-gate.ts';
import type { Clock } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import { packMessage } from '../base/msgpack.ts';
import type { Message } from '../base/port-channel.ts';
import type { Share } from '../base/share.ts';
import type { AttemptAsk, AttemptSaid } from '../identity/attempt-counts.ts';
import type { PeerHandler, PeerRespond, ServedCall } from '../peers/call.ts';
import { BodyLost, type IncomingBody } from '../peers/incoming-body.ts';
import type { ReceivedBody } from '../peers/message.ts';
import { BodyRoom, type HeldWhole } from './body-room.ts';
import { CallBudgets, type CallKind, callKindOf, limitsToPeer } from './call-budgets.ts';
import type { ForwardMetrics } from './forward-metrics.ts';
import type { KnownMembers } from './members.ts';
import { attemptReply, doneReply, failedReply, movedReply, readAsk } from './peer-messages.ts';
import type { Router } from './router.ts';

/** Has a body as a file on this server's disk while work is done with it. Throws `ApiError` where it is refused, and what ends the body early. */
export type ReceiveFile = (
  body: IncomingBody | Uint8Array,
  whose: { readonly share: Share; readonly quotaBytes: number | null; readonly packing: string },
  work: (file: ReceivedFile) => Promise<Message>,
) => Promise<Message>;

export interface ServedCallsOptions {
  readonly router: Pick<Router, 'deliverHere'>;
  readonly members: KnownMembers;
  /** Room for bodies that other servers send, and for answers that they have not taken; one of its own. */
  readonly bodies: ByteGate;
  readonly receiveFile: ReceiveFile;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: ForwardMetrics;
  /** A tenant or a person changed: what is cached of them here is void when this returns. */
  readonly forget: (cached: Cached) => void;
  /** Another server has made or found a view, which may be older than what is known here. */
  readonly onView: (bytes: Uint8Array) => void;
  /** The server of this log is joining: what it will own is to be flushed. Resolves when that is done. */
  readonly onPrepare: (logId: string) => Promise<void>;
  /** Counts attempts of a key that this server counts for all, as the asker sees it. */
  readonly onAttempt: (ask: AttemptAsk) => AttemptSaid;
  /** Somebody acts by a view that this server does not have yet. */
  readonly onBehind: () => void;
}

/** Whether this server may do a call: it owns what the call is about, at the placement by which it was sent, for a member that it knows. */
type Standing = 'own' | 'moved' | 'behind';

/** Under one name in the budgets: all other servers together. */
const everybody = '';

/** Does what the routers of other servers ask. A forwarded call goes to a thread of this server or back, and never to another server. */
export class ServedCalls implements PeerHandler {
  readonly #options: ServedCallsOptions;
  readonly #room: BodyRoom;
  readonly #ofPeer = new CallBudgets(limitsToPeer);
  readonly #ofAll = new CallBudgets((kind) =>
    kind === 'client'
      ? { callsMax: limits.servedForwardsMax, bytesMax: limits.servedForwardBytesMax }
      : { callsMax: limits.servedInsideCallsMax, bytesMax: limits.servedInsideBytesMax },
  );

  constructor(options: ServedCallsOptions) {
    this.#options = options;
    this.#room = new BodyRoom(options.bodies);
  }

  call(served: ServedCall, respond: PeerRespond): void {
    const ask = readAsk(served.head);
    switch (ask?.kind) {
      case 'call':
        return this.#take(served, actorCallFromWire(ask.call), respond);
      case 'forget':
        closeUnread(served.body);
        this.#options.forget(ask.cached);
        return respond(doneReply(null));
      case 'view':
        // An answer would end what is left of the body.
        void this.#takeView(served.body).then(() => respond(doneReply(null)));
        return;
      case 'prepare': {
        closeUnread(served.body);
        const done = () => respond(doneReply(null));
        void this.#options.onPrepare(served.name.origin).then(done, done);
        return;
      }
      case 'attempt':
        closeUnread(served.body);
        return respond(attemptReply(this.#options.onAttempt(ask.ask)));
      default:
        closeUnread(served.body);
        this.#options.metrics.served('other_version');
        return respond(failedReply(apiErrorToWire(otherVersion())));
    }
  }

  #take(served: ServedCall, call: ActorCall, respond: PeerRespond): void {
    const kind = callKindOf(call.operation);
    const { name, body } = served;
    // Who has lost the answer of a write asks for it again.
    const isKept = effectOf(call.operation).does === 'write';
    // What comes in pieces takes room in the gate.
    const bytes = body instanceof Uint8Array ? body.byteLength : 0;
    if (!this.#admit(name.origin, kind, bytes)) {
      closeUnread(body);
      this.#options.metrics.served('full');
      return respond(failedReply(apiErrorToWire(tooManyHere())), null, isKept);
    }
    const work = new Served(this.#options, this.#room, { served, call }, (head, answer) => {
      this.#ofPeer.release(name.origin, kind, bytes);
      this.#ofAll.release(everybody, kind, bytes);
      respond(head, answer, isKept);
    });
    work.begin();
  }

  #admit(origin: string, kind: CallKind, bytes: number): boolean {
    if (!this.#ofPeer.take(origin, kind, bytes)) return false;
    if (this.#ofAll.take(everybody, kind, bytes)) return true;
    this.#ofPeer.release(origin, kind, bytes);
    return false;
  }

  async #takeView(body: ReceivedBody): Promise<void> {
    if (body === null) return;
    if (body instanceof Uint8Array) return this.#options.onView(body);
    try {
      const whole = await this.#room.read(body, { owner: 0, copies: 1 });
      if (whole === null) return;
      whole.hold.release();
      this.#options.onView(whole.bytes);
    } catch {
      // Its sender is gone in the middle of it: whoever follows the view finds it in the store.
    }
  }
}

/** One forwarded call, from its head to its answer. */
class Served {
  readonly #options: ServedCallsOptions;
  readonly #room: BodyRoom;
  readonly #served: ServedCall;
  readonly #call: ActorCall;
  readonly #respond: PeerRespond;
  readonly #cameMs: number;
  #hold: Hold | null = null;

  constructor(
    options: ServedCallsOptions,
    room: BodyRoom,
    { served, call }: { readonly served: ServedCall; readonly call: ActorCall },
    respond: PeerRespond,
  ) {
    this.#options = options;
    this.#room = room;
    this.#served = served;
    this.#call = call;
    this.#respond = respond;
    this.#cameMs = options.clock.monotonic();
  }

  begin(): void {
    const standing = this.#standing();
    if (standing === 'behind') return this.#waitForView();
    if (standing === 'moved') return this.#refuseMoved();
    const { body } = this.#served;
    if (takesFile(this.#call.operation)) void this.#receive(body ?? noFile);
    else if (body === null || body instanceof Uint8Array) this.#deliver(body);
    else void this.#read(body);
  }

  #standing(): Standing {
    const { members } = this.#options;
    const { placement, name } = this.#served;
    const now = members.now.owners.placement;
    // Of whom it is not known that it is a member, it would not be known either that it has to forget what it is told.
    if (placement > now || !members.knows(name.origin)) return 'behind';
    const { tenantId, namespace } = this.#call;
    return placement === now && members.isOwn(tenantId, namespace) ? 'own' : 'moved';
  }

  #waitForView(): void {
    const { members, onBehind } = this.#options;
    onBehind();
    const ms = Math.min(limits.handoverWaitMs, this.#served.deadlineMs);
    members.until(
      () => this.#standing() !== 'behind',
      ms,
      (how) => (how === 'holds' ? this.begin() : this.#refuseMoved()),
    );
  }

  /**
   * Refuses a call whose data has moved. `placement` is the one with which it did, as far as is known here; actors know a later one
   * sooner than the router.
   */
  #refuseMoved(placement = this.#options.members.now.owners.placement): void {
    closeUnread(this.#served.body);
    this.#options.metrics.served('moved');
    this.#end(movedReply(placement));
  }

  async #read(body: IncomingBody): Promise<void> {
    const { owner } = this.#call.caller;
    let whole: HeldWhole | null;
    try {
      // As it came, and as it is understood.
      whole = await this.#room.read(body, { owner, copies: 2 });
    } catch {
      // Nothing was begun; mostly nobody is there to hear it.
      return this.#end(failedReply(apiErrorToWire(bodyLost())));
    }
    if (whole === null) {
      this.#options.metrics.served('full');
      return this.#end(failedReply(apiErrorToWire(noRoom())));
    }
    this.#hold = whole.hold;
    // It took a while: what was owned may have moved.
    if (this.#standing() === 'own') this.#deliver(whole.bytes);
    else this.#refuseMoved();
  }

  /** What came as a file is begun when it has come whole, by who owns it then: nobody has been told anything of it before. */
  async #receive(body: IncomingBody | Uint8Array): Promise<void> {
    const { tenantId, namespace, caller, argument: packing } = this.#call;
    const { members, router, metrics, receiveFile, logger } = this.#options;
    const share = { owner: caller.owner, tenant: tenantId, weight: caller.weight };
    const whose = { share, quotaBytes: caller.storageQuotaBytes, packing };
    const work = (file: ReceivedFile) =>
      new Promise<Message>((resolve, reject) => {
        if (!members.isOwn(tenantId, namespace)) return reject(movedMeanwhile());
        metrics.served('delivered');
        const unlessMoved = (message: Message) =>
          movedFromWire(message.head) === null ? resolve(message) : reject(movedMeanwhile());
        router.deliverHere(this.#call, packMessage(file), unlessMoved, reject);
      });
    try {
      this.#answer(await receiveFile(body, whose, work));
    } catch (error) {
      closeUnread(body);
      if (error instanceof ApiError) return this.#end(failedReply(apiErrorToWire(error)));
      if (!(error instanceof BodyLost))
        logger.error('a file of another server was not received', { error: describeError(error) });
      this.#end(failedReply(apiErrorToWire(bodyLost())));
    }
  }

  #deliver(body: Uint8Array | null): void {
    const { router, metrics, clock } = this.#options;
    metrics.served('delivered');
    const tookMs = clock.monotonic() - this.#cameMs;
    const call = this.#call;
    const now = tookMs < 1 ? call : { ...call, deadlineMs: Math.max(1, call.deadlineMs - tookMs) };
    const delivery = router.deliverHere(
      now,
      body,
      (message) => this.#answer(message),
      (error) => this.#end(failedReply(apiErrorToWire(error))),
    );
    if (delivery !== null) this.#served.onCancel(() => delivery.cancel());
  }

  #answer({ head, body }: Message): void {
    const placement = movedFromWire(head);
    if (placement !== null) return this.#refuseMoved(placement);
    // What a write has done is told in any case; it is told in few words.
    const isWrite = effectOf(this.#call.operation).does === 'write';
    if (body === null || isWrite || body.byteLength <= limits.peerFrameBytesMax)
      return this.#end(doneReply(head), body);
    const given = this.#room.give(body, this.#call.caller.owner);
    if (given === null) this.#end(failedReply(apiErrorToWire(noRoomForAnswer())));
    else this.#end(doneReply(head), given);
  }

  #end(...[head, body]: Parameters<PeerRespond>): void {
    this.#hold?.release();
    this.#respond(head, body ?? null);
  }
}

const noFile = new Uint8Array(0);

function closeUnread(body: ReceivedBody): void {
  if (body !== null && !(body instanceof Uint8Array)) body.close();
}

const soon = { retryAfter: 1 };

function otherVersion(): ApiError {
  const sentence = 'the server that holds this data has another version, which does not know this request';
  return new ApiError('unavailable', sentence, soon);
}

function tooManyHere(): ApiError {
  const sentence = 'the server that holds this data has too many requests in flight; nothing was done';
  return new ApiError('rate_limited', sentence, soon);
}

/** What the client of a file hears whose namespace has moved while the file came. */
export function movedMeanwhile(): ApiError {
  const sentence = 'this data has moved to another server; nothing was imported: send the file again';
  return new ApiError('unavailable', sentence, soon);
}

function noRoom(): ApiError {
  const sentence =
    'the memory for request bodies is taken up on the server that holds this data; nothing was done: send fewer bodies at once, or smaller ones';
  return new ApiError('rate_limited', sentence, soon);
}

function bodyLost(): ApiError {
  return new ApiError('unavailable', 'the body of the request did not come whole; nothing was done', soon);
}

function noRoomForAnswer(): ApiError {
  const sentence =
    'answers that are on their way to other servers take up the memory for them; ask for less with limit or max_bytes';
  return new ApiError('rate_limited', sentence, soon);
}
