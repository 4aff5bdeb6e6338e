/**
 * `Idempotency-Key` on the front: what is a key, whose it is, and the requests that the front does itself. Those that a tenant's
 * actor does are remembered there with what they did; see actors/tenant/idempotent-requests.ts.
 */
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { replayedHeader } from '../../protocol/messages.ts';
import { requestDigestOf } from '../accounts/answer-envelope.ts';
import type { Principal } from '../auth/principal.ts';
import { sha256Hex } from '../base/hash.ts';
import { JsonSyntaxError } from '../base/json-scanner.ts';
import { type Random, randomId48 } from '../base/random.ts';
import type { Tenants } from '../router/tenants.ts';
import type { Answer } from './response.ts';

export interface RequestMemory {
  begin: Tenants['beginRequest'];
  end: Tenants['endRequest'];
  newId(): number;
}

export function requestMemory(
  tenants: Pick<Tenants, 'beginRequest' | 'endRequest'>,
  random: Random,
): RequestMemory {
  return {
    begin: (tenantId, request) => tenants.beginRequest(tenantId, request),
    end: (tenantId, request) => tenants.endRequest(tenantId, request),
    newId: () => randomId48(random),
  };
}

/** What is wrong with the header, or null; without one nothing is. An empty one is none: not every engine tells them apart. */
export function idempotencyKeyProblem(key: string | undefined): string | null {
  if (key === undefined || key === '') return null;
  if (key.length > limits.idempotencyKeyCharactersMax)
    return `must have at most ${limits.idempotencyKeyCharactersMax} characters`;
  return /^[ -~]+$/.test(key) ? null : 'must be printable ASCII';
}

/**
 * What the tenant knows the key as. A login's keys are its own, for an answer may be for one person's eyes; the tenant's API
 * keys share theirs, so that a program that goes on with another key of its tenant repeats the same request.
 */
export function scopedKeyDigest(principal: Principal, key: string | undefined): string | null {
  if (key === undefined || key === '') return null;
  const scope = principal.auth === 'login' ? `person ${principal.personId}` : 'keys';
  return sha256Hex(`${scope}\n${key}`);
}

/** Does the work, or answers as it was answered before. */
export async function onlyOnce(
  memory: RequestMemory,
  asked: {
    readonly tenantId: number;
    readonly operation: string;
    /** Null: the request brings no key. */
    readonly keyDigest: string | null;
    readonly body: Uint8Array | null;
  },
  work: (plannedId: number) => Promise<Answer>,
): Promise<Answer> {
  const { tenantId, operation, keyDigest, body } = asked;
  const newId = memory.newId();
  if (keyDigest === null) return work(newId);
  const requestDigest = requestDigestOf(operation, body ?? new Uint8Array());
  const begun = await memory.begin(tenantId, { keyDigest, requestDigest, plannedId: newId });
  if (begun.kind === 'done') {
    return { status: begun.status, headers: [replayedHeader], body: begun.answer };
  }
  const { plannedId } = begun;
  const ended = { keyDigest, requestDigest, plannedId };
  let answer: Answer;
  try {
    answer = await work(plannedId);
  } catch (error) {
    const outcome = { kind: isRefusal(error) ? 'refused' : 'unknown' } as const;
    // Should this fail too, a repetition goes by the same id, which is right after a refusal as well.
    await memory.end(tenantId, { ...ended, outcome }).catch(() => {});
    throw error;
  }
  const text = typeof answer.body === 'string' ? answer.body : Buffer.from(answer.body).toString();
  await memory.end(tenantId, { ...ended, outcome: { kind: 'done', status: answer.status, text } });
  return answer;
}

/** Whether nothing was made that lasts, surely: then the repetition begins anew. Who does not know says `write_unknown`. */
function isRefusal(error: unknown): boolean {
  if (error instanceof JsonSyntaxError) return true;
  return error instanceof ApiError && (error.status < 500 || error.code === 'unavailable');
}
