import { limits } from '../../protocol/limits.ts';
import type { LogControl, LogWorkerTask } from '../../protocol/worker-tasks.ts';
import { systemClock } from '../../src/base/clock.ts';
import { exposeControl } from '../../src/base/control.ts';
import { boundGarbage } from '../../src/base/garbage.ts';
import { createLogger } from '../../src/base/log.ts';
import { busySeconds } from '../../src/base/process-load.ts';
import { systemRandom } from '../../src/base/random.ts';
import { standStillWhenAsked } from '../../src/base/stand-still.ts';
import { threadCpuMs } from '../../src/base/thread-cpu.ts';
import { guardThreads, keepBeating } from '../../src/base/watchdog.ts';
import { openObjectStore } from '../../src/object-store/open-object-store.ts';
import { LogService } from './log-service.ts';

/** Entry of the log thread: one task that lasts as long as the server. */
export default async function serveLog(task: LogWorkerTask): Promise<void> {
  standStillWhenAsked();
  boundGarbage(task.processMemoryBytes);
  watchEachOther(task);
  const store = await openObjectStore(task.store, systemClock, systemRandom);
  const logger = createLogger('log', task.logLevel);
  const components = { store, clock: systemClock, random: systemRandom, logger };
  let laterView: (() => void)[] = [];
  const service = new LogService(components, {
    commitMs: task.commitMs,
    besideOthers: task.besideOthers,
    onLaterView: () => {
      const waiting = laterView;
      laterView = [];
      for (const wake of waiting) wake();
    },
  });
  await new Promise<void>((resolve) => {
    const control: LogControl = {
      seal: (logId, placement) => service.seal(logId, placement),
      doneAmong: (logIds) => service.doneAmong(logIds),
      open: async (identity, standing) => service.open(identity, standing),
      adopt: async (standing) => service.adopt(standing),
      whenSealed: () => service.sealed,
      whenLaterView: () => new Promise((wake) => laterView.push(wake)),
      attach: (port, placement) => service.attach(port, placement),
      listLogs: (which) => service.listLogs(which),
      collectLogs: (named) => service.collectLogs(named),
      statistics: async () => ({ ...service.statistics(), busySeconds: busySeconds(), cpuMs: threadCpuMs() }),
      drain: () => service.drain(),
      // The answer to this very call has to leave the thread first.
      end: async () => void setImmediate(resolve),
    };
    exposeControl(control, task.control);
  });
  await store.close();
}

/** The main thread watches all others, and this one the main thread: it renews the lease of a process that must answer. */
function watchEachOther({ pulse, mainPulse }: LogWorkerTask): void {
  keepBeating(systemClock, pulse, limits.threadBeatMs);
  const watchdog = guardThreads(systemClock, 'log', {
    everyMs: limits.threadBeatMs,
    silentMsMax: limits.threadSilentMsMax,
  });
  watchdog.watch('front', mainPulse);
}
