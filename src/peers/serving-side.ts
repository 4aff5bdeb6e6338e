import { limits } from '../../protocol/limits.ts';
import { describeError, type Logger } from '../base/log.ts';
import { NumberMap } from '../base/number-map.ts';
import {
  type Asked,
  askedFromWire,
  type PassOn,
  type PeerHandler,
  type PeerRefusal,
  refusals,
  type ServedCall,
} from './call.ts';
import { frameKinds, type PeerFrame, PeerProtocolError } from './frame.ts';
import type { FrameWriter } from './frame-writer.ts';
import type { PeerIdentity } from './hello.ts';
import { IncomingBody } from './incoming-body.ts';
import { endUnread, HeadTooLarge, type ReceivedBody, type SentBody } from './message.ts';
import { Messages } from './messages.ts';
import type { RequestName } from './request-names.ts';
import type { TakenRequests, ToldAsker } from './taken-requests.ts';

export interface ServingOptions {
  readonly self: PeerIdentity;
  readonly from: PeerIdentity;
  readonly handler: PeerHandler;
  /** What does requests that are for another server. */
  readonly passOn: PassOn;
  /** What came on any connection of this server. */
  readonly taken: TakenRequests;
  readonly logger: Logger;
  /** Whether no more calls are taken. */
  readonly isLeaving: () => boolean;
}

interface Served {
  /** Null where it is passed on: who does it knows its copies. */
  readonly name: RequestName | null;
  cancelled: boolean;
  /** Whether the caller does not take the answer any more. */
  unwanted: boolean;
  onCancel: (() => void) | null;
}

/** The serving side of a connection: it is asked, and answers each call once. */
export class ServingSide {
  readonly #writer: FrameWriter;
  readonly #options: ServingOptions;
  readonly #messages: Messages;
  readonly #served = new NumberMap<Served>();
  #closed = false;

  constructor(writer: FrameWriter, options: ServingOptions) {
    this.#writer = writer;
    this.#options = options;
    this.#messages = new Messages(writer, {
      mayBegin: (id) => {
        if (!Number.isSafeInteger(id)) throw new PeerProtocolError('a call has a number that is too large');
        if (this.#served.has(id)) throw new PeerProtocolError('a call begins twice');
        return true;
      },
      came: (id, said, body) => this.#asked(id, said, body),
      // The body fails, and the handler answers that.
      aborted: () => {},
      unwanted: (id) => {
        const served = this.#served.get(id);
        if (served !== undefined) served.unwanted = true;
      },
      sourceFailed: (_, cause) =>
        this.#options.logger.debug('an answer ended early', { error: describeError(cause) }),
    });
  }

  /** Calls that were not answered yet. */
  get waiting(): number {
    return this.#served.size;
  }

  /** Throws `PeerProtocolError`. */
  take(frame: PeerFrame): void {
    if (this.#messages.take(frame)) return;
    if (frame.kind === frameKinds.cancel) this.#cancel(frame.id);
  }

  close(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#messages.close(reason);
    for (const [id] of this.#served.entries()) this.#cancel(id);
  }

  #asked(id: number, said: unknown, body: ReceivedBody): void {
    const asked = askedFromWire(said);
    const { self, from, handler, logger, taken } = this.#options;
    const { name } = asked;
    const isPassedOn = asked.to !== '' && asked.to !== self.logId;
    const served: Served = {
      name: isPassedOn ? null : name,
      cancelled: false,
      unwanted: false,
      onCancel: null,
    };
    const refusal = this.#refusalNow();
    const asker = (told: ToldAsker) => this.#told(id, served, told);
    if (refusal !== null) {
      this.#served.set(id, served);
      // What has come already is answered also by who takes nothing new.
      if (!isPassedOn && taken.giveKnown(name, asker)) return closeUnread(body);
      this.#served.delete(id);
      return this.#refuse(id, refusal, body);
    }
    this.#served.set(id, served);
    if (isPassedOn) return this.#passOn(id, served, asked, body);
    if (!taken.take(name, asker)) return closeUnread(body);
    const call: ServedCall = {
      head: asked.head,
      body,
      from,
      name,
      deadlineMs: asked.deadlineMs,
      placement: asked.placement,
      onCancel: (run) => {
        if (served.cancelled) run();
        else served.onCancel = run;
      },
    };
    try {
      handler.call(call, (head, answer = null, isKept = false) => {
        if (!taken.end(name, head, answer, isKept)) endUnread(answer);
      });
    } catch (error) {
      logger.error('a call of another server failed', { error: describeError(error) });
      taken.fail(name);
    }
  }

  /** The other server hears it as if it came from who asked, and as one that is passed on no further. */
  #passOn(id: number, served: Served, asked: Asked, body: ReceivedBody): void {
    served.onCancel = this.#options.passOn(asked, body, {
      answered: (answer) => this.#respond(id, served, answer.head, answer.body),
      failed: (error) => {
        if (error.why === 'copy') this.#told(id, served, { kind: 'copy' });
        else if (error.outcome === 'lost') this.#giveUp(id, served);
        else if (this.#served.get(id) === served) {
          this.#served.delete(id);
          this.#refuse(id, error.why === 'full' ? 'busy' : 'unreachable', body);
        }
      },
    });
  }

  #refusalNow(): PeerRefusal | null {
    if (this.#options.isLeaving()) return 'leaving';
    return this.#served.size >= limits.peerCallsMax ? 'busy' : null;
  }

  #refuse(id: number, refusal: PeerRefusal, body: ReceivedBody): void {
    this.#writer.send(frameKinds.refused, id, Uint8Array.of(refusals.indexOf(refusal)));
    closeUnread(body);
  }

  #told(id: number, served: Served, told: ToldAsker): void {
    switch (told.kind) {
      case 'answer':
        return this.#respond(id, served, told.head, told.body);
      case 'elsewhere':
        return this.#giveUp(id, served);
      default:
        if (this.#served.get(id) !== served) return;
        this.#served.delete(id);
        this.#refuse(id, 'copy', null);
    }
  }

  #respond(id: number, served: Served, head: unknown, body: SentBody): void {
    if (this.#served.get(id) !== served) return;
    this.#served.delete(id);
    if (this.#closed || served.unwanted) {
      endUnread(body);
      return;
    }
    try {
      this.#messages.send(id, head, body);
    } catch (error) {
      if (!(error instanceof HeadTooLarge)) throw error;
      this.#options.logger.error('an answer for another server has a head that is too large');
      this.#writer.send(frameKinds.abort, id);
    }
  }

  /** The caller hears that there will be no answer, and that it may have been done. */
  #giveUp(id: number, served: Served): void {
    if (this.#served.get(id) !== served) return;
    this.#served.delete(id);
    this.#writer.send(frameKinds.abort, id);
  }

  #cancel(id: number): void {
    const served = this.#served.get(id);
    if (served === undefined || served.cancelled) return;
    served.cancelled = true;
    if (served.name !== null) this.#options.taken.cancelled(served.name);
    served.onCancel?.();
  }
}

function closeUnread(body: ReceivedBody): void {
  if (body instanceof IncomingBody) body.close();
}
