/**
 * Who did what to accounts, keys and tenants: a line for each such request, whether it was done or refused, in a file a day
 * under the data folder and, at `info`, in the log. The file is for whoever runs one server and asks a year's question of a
 * folder; the log is for whoever collects logs elsewhere anyway.
 *
 * Lines are made in one place from the operations table: the `effect` of an operation says which event it is. They have ids and no addresses of people: an e-mail address is told by a keyed digest, `account`, which is the
 * same for all tries with one address and means nothing elsewhere. A namespace that was deleted is told by its name, for nothing
 * else is left of it. Requests without a valid credential, to operations that
 * need one, are no events: metrics count them.
 */
import { createHmac } from 'node:crypto';
import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../base/clock.ts';
import { DailyFile } from '../base/daily-file.ts';
import { describeError, type LogFields, type Logger, withoutSecrets } from '../base/log.ts';
import { emailIdentity } from '../identity/sign-up-rules.ts';
import type { HttpExchange } from './http-types.ts';
import type { Observed } from './observed.ts';
import type { Answer } from './response.ts';

/** A line, beside its time. */
export interface AuditEntry {
  readonly event: string;
  /** `failed`: on our side, so that it may or may not be done. */
  readonly outcome: 'done' | 'refused' | 'failed';
  readonly requestId?: string;
  readonly status?: number;
  /** The answer is that of an earlier request with the same Idempotency-Key: nothing was done again. */
  readonly replayed?: true | undefined;
  /** The code of an error. */
  readonly code?: string | undefined;
  /** Who asked: their tenant, person and, where a key asked, its id and not the person's. */
  readonly tenantId?: number | undefined;
  readonly personId?: number | undefined;
  readonly keyId?: number | undefined;
  /** What it was done to: the id of a key or of a tenant, a provider, or a namespace's name. */
  readonly target?: string | undefined;
  /** The scope of a key that was made. */
  readonly scope?: string | undefined;
  readonly account?: string | undefined;
  readonly clientAddress?: string;
}

export interface AuditComponents {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly folder: string;
  /** The key of the digests of e-mail addresses. */
  readonly key: Uint8Array;
  /** Says which address a request came from. */
  readonly addressOf: (exchange: HttpExchange) => string;
}

export class AuditLog {
  readonly #components: AuditComponents;
  readonly #file: DailyFile;

  constructor(components: AuditComponents) {
    const { clock, logger, folder } = components;
    this.#components = components;
    this.#file = new DailyFile({
      folder,
      clock,
      daysKept: limits.auditDaysKept,
      dayBytesMax: limits.auditDayBytesMax,
      linesWaitingMax: limits.auditLinesWaitingMax,
      onLoss: (reason) => logger.error('audit lines were not written', { error: describeError(reason) }),
    });
  }

  answered(request: Observed, answer: Answer): void {
    const { operation } = request;
    const event = operation?.effect.audits ?? null;
    if (event === null) return;
    if (request.principal === null && operation?.auth !== 'none') return;
    const { key, addressOf } = this.#components;
    const clientAddress = addressOf(request.exchange);
    this.record({ event, ...entryOf(request, answer, key), clientAddress });
  }

  /** Records an event, also one that no request did. */
  record(entry: AuditEntry): void {
    const { clock, logger } = this.#components;
    const time = new Date(clock.now()).toISOString();
    const fields: LogFields = { audit: true, ...entry };
    logger.info(entry.event, fields);
    // What anybody can cause in any number must not push out what was done.
    const line = withoutSecrets(JSON.stringify({ time, ...entry }));
    this.#file.append(line, { droppable: entry.outcome !== 'done' });
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

function entryOf(
  request: Observed,
  { status, headers, body }: Answer,
  key: Uint8Array,
): Omit<AuditEntry, 'event'> {
  const { id: requestId, principal, parameters } = request;
  const answer = fieldsOf(body);
  const isDone = status < 400;
  const who = principal ?? (isDone ? whoeverIsIn(answer) : {});
  const named = parameters.id ?? parameters.provider ?? parameters.name ?? textOf(answer.key_id ?? answer.id);
  return {
    outcome: isDone ? 'done' : status < 500 ? 'refused' : 'failed',
    requestId,
    status,
    replayed: headers.some(([name]) => name.toLowerCase() === replayedHeader) || undefined,
    code: isDone ? undefined : textOf(answer.code),
    tenantId: who.tenantId ?? undefined,
    personId: principal?.auth === 'key' ? undefined : (who.personId ?? request.personId ?? undefined),
    keyId: principal?.keyId ?? undefined,
    // What is refused may be anything that somebody has pasted there.
    target: named !== undefined && (isDone || /^\d{1,16}$/.test(named)) ? named : undefined,
    scope: isDone ? textOf(answer.scope) : undefined,
    account: request.email === null ? undefined : accountOf(request.email, key),
  };
}

const replayedHeader = 'idempotent-replayed';

type Fields = Readonly<Record<string, unknown>>;

interface Who {
  readonly tenantId?: number | undefined;
  readonly personId?: number | undefined;
}

/** Whom an answer to a sign-up or a login is about. A token is ours and was just made: its subject needs no check. */
function whoeverIsIn({ id, tenant_id, token }: Fields): Who {
  if (typeof token === 'string') return { personId: numberOf(fieldsOf(payloadOf(token)).sub) };
  return { tenantId: numberOf(tenant_id), personId: tenant_id === undefined ? undefined : numberOf(id) };
}

function payloadOf(token: string): Uint8Array {
  return Buffer.from(token.split('.')[1] ?? '', 'base64url');
}

const accountCharacters = 16;

function accountOf(email: string, key: Uint8Array): string {
  return createHmac('sha256', key).update(emailIdentity(email)).digest('hex').slice(0, accountCharacters);
}

/** Empty where it is no JSON object: audit lines are made of whatever there is. */
function fieldsOf(json: Uint8Array | string): Fields {
  try {
    const value: unknown = JSON.parse(typeof json === 'string' ? json : Buffer.from(json).toString());
    return typeof value === 'object' && value !== null ? (value as Fields) : {};
  } catch {
    return {};
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

function numberOf(value: unknown): number | undefined {
  const number = Number(value);
  return Number.isSafeInteger(number) && number > 0 ? number : undefined;
}
