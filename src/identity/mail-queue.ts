import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import { settledWithin } from '../base/settled-within.ts';
import type { LinkKind } from './links.ts';
import type { Mail } from './mails.ts';

/** Takes mails to where they go. Several may be under way at once. */
export interface MailCarrier {
  /** Rejects with `MailRefused` where trying again is in vain, and with anything else where it may help. */
  carry(mail: Mail): Promise<void>;
  /** Lets go of connections; call it after the last `carry`. */
  close(): void;
}

/** The mail server has said no, and would say so again. */
export class MailRefused extends Error {
  override name = 'MailRefused';
}

/** The mail server has no TLS, and mails are not to be sent without. The message is ours, for a log. */
export class MailServerLacksTls extends MailRefused {
  override name = 'MailServerLacksTls';
}

/** Composes a mail; null where there turns out to be nothing to send. */
export type ComposeMail = () => Promise<Mail | null>;

/**
 * Mails on their way: nobody's request waits for them, and none fails because of them. Bounded, in memory, and tried a few
 * times with growing pauses; what a crash loses is asked for again by whoever waits for it. A mail may be composed here
 * too, so that a request can be answered before anybody knows whether there is one to send.
 *
 * Logs name the kind of a mail and the kind of a failure, never an address, a text or what a mail server said: it quotes.
 */
export class MailQueue {
  readonly #carrier: MailCarrier;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #waiting: Letter[] = [];
  /** Mails that failed and will be tried again, each with what cancels its pause. */
  readonly #resting = new Map<Letter, () => void>();
  #underWay = 0;
  #stopping = false;
  #whenIdle: () => void = () => {};

  constructor(components: {
    readonly carrier: MailCarrier;
    readonly clock: Clock;
    readonly logger: Logger;
  }) {
    this.#carrier = components.carrier;
    this.#clock = components.clock;
    this.#logger = components.logger;
  }

  /** Whether `post` would refuse. */
  get isFull(): boolean {
    return this.#stopping || this.#size >= limits.mailsWaitingMax;
  }

  /** Takes a mail to be composed and sent. False where the queue is full: then nothing was begun. */
  post(kind: LinkKind, compose: ComposeMail): boolean {
    if (this.isFull) {
      const reason = this.#stopping ? 'the server stops' : 'the queue is full';
      this.#logger.error('a mail is not taken', { kind, reason });
      return false;
    }
    this.#waiting.push({ kind, compose, mail: null, attempts: 0 });
    this.#goOn();
    return true;
  }

  /** Sends what waits, for a few seconds at most; what has failed before is given up at once. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const [letter, cancel] of this.#resting) {
      cancel();
      this.#giveUp(letter, 'the server stops');
    }
    this.#resting.clear();
    const idle = new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
    });
    if (this.#size > 0) await settledWithin(this.#clock, idle, limits.mailDrainMs);
    for (const letter of this.#waiting.splice(0)) this.#giveUp(letter, 'the server stops');
    this.#carrier.close();
  }

  get #size(): number {
    return this.#waiting.length + this.#resting.size + this.#underWay;
  }

  #goOn(): void {
    while (this.#underWay < limits.mailsAtOnceMax) {
      const letter = this.#waiting.shift();
      if (letter === undefined) break;
      this.#underWay += 1;
      void this.#send(letter).then(() => {
        this.#underWay -= 1;
        this.#goOn();
      });
    }
    if (this.#size === 0) this.#whenIdle();
  }

  /** Sends a mail, with its further tries. Never rejects. */
  async #send(letter: Letter): Promise<void> {
    letter.attempts += 1;
    try {
      letter.mail ??= await letter.compose();
      if (letter.mail !== null) await this.#carrier.carry(letter.mail);
    } catch (error) {
      this.#failed(letter, error);
    }
  }

  #failed(letter: Letter, error: unknown): void {
    const inVain = error instanceof MailRefused || letter.attempts >= limits.mailAttemptsMax;
    if (inVain || this.#stopping) return this.#giveUp(letter, reasonOf(error));
    const pauseMs = limits.mailPauseFirstMs * 5 ** (letter.attempts - 1);
    this.#logger.info('a mail could not be sent yet', {
      kind: letter.kind,
      reason: reasonOf(error),
      pauseMs,
    });
    const cancel = this.#clock.after(pauseMs, () => {
      this.#resting.delete(letter);
      this.#waiting.push(letter);
      this.#goOn();
    });
    this.#resting.set(letter, cancel);
  }

  #giveUp({ kind, attempts }: Letter, reason: string): void {
    this.#logger.error('a mail is given up', { kind, attempts, reason });
  }
}

interface Letter {
  readonly kind: LinkKind;
  readonly compose: ComposeMail;
  mail: Mail | null;
  attempts: number;
}

/** Tells a failure by names and codes (`Error ECONNREFUSED`, `MailRefused EENVELOPE 550`), or by a sentence of ours. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'not an error';
  if (error instanceof MailServerLacksTls) return error.message;
  const { code, responseCode } = (error.cause instanceof Error ? error.cause : error) as {
    readonly code?: unknown;
    readonly responseCode?: unknown;
  };
  const parts = [error.name, code, responseCode].filter((part) => ['string', 'number'].includes(typeof part));
  return parts.join(' ');
}
