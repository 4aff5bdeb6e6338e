/** The door to uWebSockets: what of it is used, and which of its two packages loads. Nothing else imports them. */
import { createRequire } from 'node:module';
import { limits } from '../../protocol/limits.ts';
import { describeError } from '../base/log.ts';

export interface UwsRequest {
  getCaseSensitiveMethod(): string;
  getUrl(): string;
  getQuery(): string | undefined;
  forEach(visit: (name: string, value: string) => void): void;
  /** Lets the next route that fits handle the request. */
  setYield(yields: boolean): void;
}

export interface UwsResponse {
  writeStatus(status: string): UwsResponse;
  tryEnd(chunk: Uint8Array | string, totalBytes: number): [taken: boolean, done: boolean];
  endWithoutBody(): UwsResponse;
  close(): UwsResponse;
  cork(write: () => void): UwsResponse;
  onAborted(run: () => void): UwsResponse;
  onData(take: (chunk: ArrayBuffer, last: boolean) => void): UwsResponse;
  onWritable(write: (offset: number) => boolean): UwsResponse;
  pause(): void;
  resume(): void;
  getRemoteAddress(): ArrayBuffer;
  upgrade(userData: object, key: string, protocol: string, extensions: string, context: object): void;
}

/** A connection that was upgraded. */
export interface UwsSocket {
  getUserData(): object;
  close(): void;
}

export interface UwsSocketBehavior {
  readonly sendPingsAutomatically: boolean;
  upgrade(response: UwsResponse, request: UwsRequest, context: object): void;
  open(socket: UwsSocket): void;
  close(socket: UwsSocket): void;
}

export interface UwsApp {
  ws(pattern: string, behavior: UwsSocketBehavior): UwsApp;
  any(pattern: string, handler: (response: UwsResponse, request: UwsRequest) => void): UwsApp;
  listen(host: string, port: number, options: number, done: (socket: object | false) => void): UwsApp;
  close(): void;
}

export interface Uws {
  App(): UwsApp;
  us_listen_socket_close(socket: object): void;
  us_socket_local_port(socket: object): number;
  _cfg(key: string): void;
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number;
}

/** The name of the packaged one, whose parser takes shorter lengths. */
export const packagedEngine = 'uws-packaged';

export type LoadedUws = { readonly engine: string; readonly uws: Uws };

/**
 * Upstream's own package where an operator installed it, else the packaged one; or why neither loads. The packaged
 * one is loaded by its binary: its entry would quietly put a slow imitation in its place.
 */
export function loadUws(): LoadedUws | { readonly reason: string } {
  // Some versions read the bound on heads from here; others have their own.
  process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= String(limits.requestHeadBytesMax);
  const require = createRequire(import.meta.url);
  const binary = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
  const reasons: string[] = [];
  for (const [engine, path] of [
    ['uWebSockets.js', 'uWebSockets.js'],
    [packagedEngine, `uws-packaged/binaries/${binary}`],
  ] as const) {
    try {
      return { engine, uws: require(path) as Uws };
    } catch (error) {
      reasons.push(`${engine}: ${firstLine(describeError(error))}`);
    }
  }
  return { reason: reasons.join('; ') };
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
