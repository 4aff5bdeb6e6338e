import { createRequire } from 'node:module';
import type { LoopRequest } from '../request-loop.ts';

/** The door to autocannon, which has no types of its own: those below are what is read of it. */
interface CannonRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface CannonOptions {
  readonly url: string;
  readonly connections: number;
  readonly duration: number;
  /** Seconds. */
  readonly timeout: number;
  readonly requests: readonly CannonRequest[];
  readonly setupClient: (client: { setRequests(requests: readonly CannonRequest[]): void }) => void;
}

interface CannonResult {
  readonly duration: number;
  readonly '2xx': number;
  readonly non2xx: number;
  readonly errors: number;
}

/** Longer than any deadline of the server. */
const timeoutSeconds = 70;

export interface CannonTarget {
  readonly url: string;
  readonly keys: readonly string[];
  readonly requests: readonly LoopRequest[];
  readonly connections: number;
  readonly seconds: number;
}

export interface CannonRun {
  /** Successes. */
  readonly perSecond: number;
  readonly failures: number;
  /** Cores that this process used meanwhile: autocannon runs on its only thread. */
  readonly generatorCores: number;
}

/** What one connection asks for in turn, at least: each request is made ahead, for each connection again. */
const requestsOfConnectionMin = 64;

/** One closed loop. Each connection asks for another part of the requests, so that not all ask for the same one at once. */
export async function runAutocannon(target: CannonTarget): Promise<CannonRun> {
  const autocannon = createRequire(import.meta.url)('autocannon') as (
    options: CannonOptions,
  ) => Promise<CannonResult>;
  const requests = target.requests.map((request) => cannonRequest(request, target.keys));
  let clients = 0;
  const before = process.cpuUsage();
  const result = await autocannon({
    url: target.url,
    connections: target.connections,
    duration: target.seconds,
    timeout: timeoutSeconds,
    // Each connection gets its own part below; these would be made ahead for all of them.
    requests: requests.slice(0, 1),
    setupClient: (client) => client.setRequests(partOf(requests, clients++, target.connections)),
  });
  const { user, system } = process.cpuUsage(before);
  return {
    perSecond: result['2xx'] / result.duration,
    failures: result.non2xx + result.errors,
    generatorCores: (user + system) / 1e6 / result.duration,
  };
}

function cannonRequest(
  { client, method, path, body, headers }: LoopRequest,
  keys: readonly string[],
): CannonRequest {
  const key = keys[client] ?? '';
  return {
    method,
    path,
    headers: { ...headers, ...(key === '' ? {} : { authorization: `Bearer ${key}` }) },
    ...(body === undefined ? {} : { body }),
  };
}

/** The part of connection number `client`: parts begin at even distances, and may overlap where there are few requests. */
export function partOf<T>(requests: readonly T[], client: number, connections: number): T[] {
  const first = Math.floor((client * requests.length) / connections) % requests.length;
  const count = Math.max(requestsOfConnectionMin, Math.ceil(requests.length / connections));
  return [...requests.slice(first), ...requests.slice(0, first)].slice(0, count);
}
