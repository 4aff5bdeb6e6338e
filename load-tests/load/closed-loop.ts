/**
 * Throughput of our server and of a bare one, in turns, because the machine's speed drifts. The bare one answers every request
 * with the bytes of one of our answers: of those to some of the requests the one of middle length.
 */
import { once } from 'node:events';
import { join } from 'node:path';
import { must } from '../../src/base/assert.ts';
import { constantOf, rawAnswer, startBare } from '../bare.ts';
import { treeCpuSeconds } from '../processes.ts';
import type { LoopRequest } from '../request-loop.ts';
import { temporaryFolder } from '../server.ts';
import { rateOfScript, writeRequestScript, wrkIsInstalled } from '../wrk.ts';
import { type CannonRun, runAutocannon } from './autocannon.ts';
import type { SideResult, ThroughputResult } from './result.ts';
import type { ClosedPhase, Stage } from './scenario.ts';

const answersLookedAt = 9;

interface Side {
  readonly url: string;
  readonly processIds: readonly number[];
}

export async function runClosedPhase(
  { server: { process: server }, sizes }: Stage,
  keys: readonly string[],
  phase: ClosedPhase,
): Promise<ThroughputResult> {
  const tool = phase.tool === 'wrk' && wrkIsInstalled() ? 'wrk' : 'autocannon';
  const bare = await startBare(constantOf(await middleAnswer(server.url, keys, phase.requests)));
  const sides = {
    own: { url: server.url, processIds: server.processIds },
    bare: { url: bare.url, processIds: [must(bare.child.pid, 'a process id')] },
  };
  const run = generatorOf(tool, phase, keys);
  const rounds = { own: [] as Round[], bare: [] as Round[] };
  try {
    // A constant answer has nothing to warm up but the process.
    await measured(run, sides.own, sizes.warmUpSeconds);
    for (let round = 0; round < sizes.rounds; round++) {
      rounds.bare.push(await measured(run, sides.bare, sizes.roundSeconds));
      rounds.own.push(await measured(run, sides.own, sizes.roundSeconds));
    }
  } finally {
    bare.child.kill();
    await once(bare.child, 'exit');
  }
  const { unit, count } = phase.carries ?? { unit: 'requests', count: 1 };
  return {
    name: phase.name,
    tool,
    connections: phase.connections,
    unit,
    carried: count,
    own: sideOf(rounds.own, count),
    bare: sideOf(rounds.bare, count),
  };
}

type Generate = (url: string, seconds: number) => Promise<Omit<CannonRun, 'generatorCores'> & Cores>;
interface Cores {
  readonly generatorCores: number | null;
}

function generatorOf(
  tool: 'autocannon' | 'wrk',
  { requests, connections }: ClosedPhase,
  keys: readonly string[],
): Generate {
  if (tool === 'autocannon')
    return (url, seconds) => runAutocannon({ url, keys, requests, connections, seconds });
  const script = join(temporaryFolder(), 'requests.lua');
  writeRequestScript(script, requests, keys);
  // It throws where a request fails: of failures it does not say how many.
  return async (url, seconds) => ({
    perSecond: await rateOfScript({ url, script, seconds, connections }),
    failures: 0,
    generatorCores: null,
  });
}

interface Round extends Cores {
  readonly perSecond: number;
  readonly failures: number;
  readonly cpuMicros: number;
}

async function measured(run: Generate, { url, processIds }: Side, seconds: number): Promise<Round> {
  const cpuOfAll = () => processIds.reduce((sum, id) => sum + treeCpuSeconds(id), 0);
  const before = cpuOfAll();
  const began = performance.now();
  const result = await run(url, seconds);
  const took = (performance.now() - began) / 1_000;
  const cpuSeconds = cpuOfAll() - before;
  // The tool counts in its own time, which is a little shorter than the one in which the processor was watched.
  return { ...result, cpuMicros: (cpuSeconds * 1e6) / (result.perSecond * Math.min(took, seconds)) };
}

function sideOf(rounds: readonly Round[], count: number): SideResult {
  const cores = rounds.flatMap(({ generatorCores }) => (generatorCores === null ? [] : [generatorCores]));
  return {
    perSecond: rounds.map(({ perSecond }) => perSecond * count),
    cpuMicros: rounds.map(({ cpuMicros }) => cpuMicros / count),
    generatorCores: cores.length === 0 ? null : cores,
    failures: rounds.reduce((sum, { failures }) => sum + failures, 0),
  };
}

async function middleAnswer(
  url: string,
  keys: readonly string[],
  requests: readonly LoopRequest[],
): Promise<string> {
  const step = Math.max(1, Math.floor(requests.length / answersLookedAt));
  const answers: string[] = [];
  for (let at = 0; at < requests.length; at += step) {
    const { client, method, path, body, headers = {} } = must(requests[at], 'a request');
    const sent = { method, headers, ...(body === undefined ? {} : { body }) };
    answers.push(await rawAnswer(url, path, keys[client] ?? '', 200, sent));
  }
  answers.sort((a, b) => a.length - b.length);
  return must(answers[answers.length >> 1], 'an answer');
}
