import './buffer-pool.ts';
/**
 * The door to Comlink: the few control calls between threads (open, attach, drain, statistics). Never for requests:
 * each call is a message of its own.
 */
import type { MessagePort } from 'node:worker_threads';
import * as comlink from 'comlink';
import nodeEndpoint from 'comlink/dist/esm/node-adapter.mjs';

export type Remote<T> = comlink.Remote<T>;

/** Lets the other end of `port` call the methods of `api`. */
export function exposeControl(api: object, port: MessagePort): void {
  comlink.expose(api, nodeEndpoint(port));
}

/** Calls methods on the object exposed at the other end. */
export function wrapControl<T>(port: MessagePort): Remote<T> {
  return comlink.wrap<T>(nodeEndpoint(port));
}

/** Marks objects (ports, buffers) as moved with the call. */
export function moved<T extends object>(value: T, transfers: (ArrayBuffer | MessagePort)[]): T {
  return comlink.transfer(value, transfers as never[]);
}
