import { limits } from '../../protocol/limits.ts';
import { momentOf, msBetween } from '../../src/base/clock.ts';
import { describeError } from '../../src/base/log.ts';
import type { Respond } from '../../src/base/port-channel.ts';
import { SingleFlight } from '../../src/base/single-flight.ts';
import type { GroupCommit } from './group-commit.ts';
import type { LogComponents } from './log-components.ts';

/** Answers actor threads whether the own log is still open: see `logCalls.confirmOpen` and `logCalls.seenOpen`. */
export class OpenAnswers {
  readonly #components: Pick<LogComponents, 'clock' | 'logger'>;
  readonly #commit: () => GroupCommit;
  readonly #looking = new SingleFlight<string, boolean>();

  constructor(components: Pick<LogComponents, 'clock' | 'logger'>, commit: () => GroupCommit) {
    this.#components = components;
    this.#commit = commit;
  }

  async confirmOpen(respond: Respond): Promise<void> {
    try {
      respond([(await this.#commit().confirmOpen()) ? 'open' : 'sealed']);
    } catch (error) {
      this.#notLookedAt(error);
      respond(['failed']);
    }
  }

  async seenOpen(respond: Respond): Promise<void> {
    const commit = this.#commit();
    try {
      const askedAt = momentOf(this.#components.clock);
      // Appends are evidence too: under writes nobody has to look.
      const isOld = msBetween(commit.seenOpen, askedAt) > limits.readEvidenceRenewMs;
      const isOpen = !isOld || (await this.#looking.run('', () => commit.confirmOpen()));
      const ageMs = Math.max(0, msBetween(commit.seenOpen, askedAt));
      respond(isOpen && !commit.isSealed ? ['open', ageMs] : ['sealed']);
    } catch (error) {
      this.#notLookedAt(error);
      respond(['failed']);
    }
  }

  #notLookedAt(error: unknown): void {
    this.#components.logger.error('the own log was not looked at', { error: describeError(error) });
  }
}
