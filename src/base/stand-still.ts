/**
 * An end of the process from within. Node stops its threads wherever they are, and native code that is called into at
 * that moment may abort the process instead, with another exit code than the one it was to have. So every thread is first
 * asked to stand still in JavaScript.
 */
import { BroadcastChannel } from 'node:worker_threads';

const channelName = `stand-still-${process.pid}`;

/** Called once by every thread but the main one, when it starts. It does not keep the thread alive. */
export function standStillWhenAsked(): void {
  const channel = new BroadcastChannel(channelName);
  channel.onmessage = () => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  };
  channel.unref();
}

/** Asks them. Each one that is not within a long piece of work stands a moment later, and nothing of it runs any more. */
export function askToStandStill(): void {
  const channel = new BroadcastChannel(channelName);
  channel.postMessage(null);
  channel.close();
}
