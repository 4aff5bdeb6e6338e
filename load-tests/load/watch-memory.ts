import { readdirSync } from 'node:fs';
import type { MeasuredServer } from '../measured-server.ts';
import type { MemorySample } from './result.ts';

/** Looks at a server's process again and again: what it takes over time. */
const sampleEveryMs = 250;
/** A run of an hour keeps fewer: every second one goes when there are this many. */
const samplesMax = 2_400;

export interface MemoryWatch {
  /** Since the watch began. */
  seconds(): number;
  /** What was seen so far. */
  samples(): readonly MemorySample[];
  stop(): readonly MemorySample[];
}

/** `server` is asked each time: it may have been started again. */
export function watchMemory(server: () => MeasuredServer): MemoryWatch {
  const beganAt = performance.now();
  const seconds = () => (performance.now() - beganAt) / 1_000;
  let samples: MemorySample[] = [];
  let everyMs = sampleEveryMs;
  let timer: NodeJS.Timeout;
  const look = () => {
    const sample = sampleOf(server(), seconds());
    if (sample !== null) samples.push(sample);
    if (samples.length >= samplesMax) {
      samples = samples.filter((_, at) => at % 2 === 0);
      everyMs *= 2;
    }
    timer = setTimeout(look, everyMs);
  };
  look();
  return {
    seconds,
    samples: () => samples,
    stop() {
      clearTimeout(timer);
      return samples;
    },
  };
}

/** Null while there is no such process: it is being started again. */
function sampleOf({ process: server }: MeasuredServer, atSeconds: number): MemorySample | null {
  if (server.ending() !== null) return null;
  try {
    const residentBytes = server.residentBytes();
    const anonymousBytes = server.anonymousBytes();
    const openFiles = server.processIds.reduce((sum, id) => sum + readdirSync(`/proc/${id}/fd`).length, 0);
    return Number.isNaN(residentBytes) ? null : { atSeconds, residentBytes, anonymousBytes, openFiles };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return null;
    throw error;
  }
}
