import type { LoopRequest } from '../request-loop.ts';
import type { ClosedPhase, Phase } from './scenario.ts';

/** What most scenarios do with their requests: throughput in a closed loop, then latency over rate in an open one. */
export function throughputAndLatency(
  phase: Omit<ClosedPhase, 'kind'> & { readonly ratePerSecondMax?: number },
): readonly Phase[] {
  const { ratePerSecondMax, ...closed } = phase;
  const { name, requests, connections } = phase;
  const most = ratePerSecondMax === undefined ? {} : { ratePerSecondMax };
  return [
    { kind: 'closed', ...closed },
    { kind: 'rates', name, requests, connections: Math.max(connections, 64), ...most },
  ];
}

/** A POST of JSON by the first client. */
export function postOf(path: string, body: object): LoopRequest {
  return { client: 0, method: 'POST', path, body: JSON.stringify(body) };
}

export function getOf(path: string): LoopRequest {
  return { client: 0, method: 'GET', path };
}
