/** What an operation is counted as, and what it is refused for; the counting itself is usage-meter.ts and allowances.ts. */
import type { ApiError } from '../../protocol/errors.ts';
import type { Meter } from '../../protocol/messages.ts';
import type { Operation } from '../../protocol/operations.ts';
import type { Principal } from '../auth/principal.ts';
import type { Allowances } from './allowances.ts';
import type { Surface } from './operation-call.ts';
import type { UsageMeter } from './usage-meter.ts';

export interface Metering {
  readonly allowances: Allowances;
  readonly meter: UsageMeter;
}

/** Throws 429 where the key's cap on such requests is reached. Answers what ends the request, or null where none is capped. */
export function beginCapped(
  { allowances }: Metering,
  { effect }: Operation,
  principal: Principal,
): (() => void) | null {
  return effect.meters === null ? null : allowances.beginCapped(principal, effect.meters);
}

/** 402 where the plan's allowance for such requests is used up, else null. */
export function allowanceRefusal(
  { allowances }: Metering,
  { effect, changes }: Operation,
  principal: Principal,
): ApiError | null {
  if (effect.meters === null) return null;
  return allowances.refusal(principal, changes === 'delete' ? 'delete' : effect.meters);
}

const noKeyUse = { queries: 0, writes: 0 };
const oneQuery = { queries: 1, writes: 0 };
const oneWrite = { queries: 0, writes: 1 };
const oneMcpQuery = { mcpQueries: 1 };
const oneMcpWrite = { mcpWrites: 1 };

/** Counts that a key or connection was used, and nothing else: its tenant is told once a minute at most. */
export function countUse({ meter }: Pick<Metering, 'meter'>, principal: Principal): void {
  meter.count(principal, null, noKeyUse);
}

/** An answer of an actor. Only what was done is counted. */
export function countAnswer(
  { allowances, meter }: Metering,
  { effect: { meters } }: Operation,
  principal: Principal,
  answer: {
    readonly status: number;
    readonly meter: Meter;
    readonly bodyBytes: number;
    readonly surface: Surface;
  },
): void {
  const { embedTokens, hostedTokens, cpuMs, storeGets, storeBytes, bytes } = answer.meter;
  const tokens = embedTokens > 0 ? { embedTokens, hostedTokens } : null;
  const isMcp = answer.surface === 'mcp';
  // A refusal costs nothing, unless work was done before it: a query that ran out of its time has had it.
  const isWorthless = cpuMs === 0 && storeGets === 0;
  if (answer.status >= 400 && (meters !== 'query' || isWorthless)) return countUse({ meter }, principal);
  if (meters === 'query') {
    const outBytes = answer.bodyBytes;
    const used = { queries: 1, outBytes, cpuMs, storeGets, storeBytes, ...tokens, ...(isMcp && oneMcpQuery) };
    allowances.count(principal, { queries: 1, outBytes, cpuMs, storeGets, hostedTokens });
    return meter.count(principal, used, oneQuery);
  }
  if (meters === 'write') {
    allowances.count(principal, { writes: 1, writeBytes: bytes, hostedTokens });
    return meter.count(principal, isMcp ? { ...tokens, ...oneMcpWrite } : tokens, oneWrite);
  }
  meter.count(principal, tokens, noKeyUse);
}
