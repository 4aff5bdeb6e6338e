/**
 * Clients whose id is the https address of a document about them. Anybody can make the server ask for one, so: https only, a name
 * and no number as the host, addresses that are all public (judged in the look-up whose answer the connection uses, so that
 * a name cannot be another one a moment later), no redirect, 5 KB, 2.5 seconds in all, so many at once and of these some for one network, and each
 * answer, a failure too, is kept for a while. Failures have a place of their own: they displace no client.
 */
import { type LookupAddress, lookup as lookupName } from 'node:dns';
import { request } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../base/clock.ts';
import { parseJson } from '../base/json.ts';
import { JsonSyntaxError } from '../base/json-scanner.ts';
import { LruMap } from '../base/lru.ts';
import { SingleFlight } from '../base/single-flight.ts';
import { documentedClient } from './client-metadata.ts';
import type { OauthClient } from './client-record.ts';
import { OauthError } from './oauth-error.ts';
import { arePublic } from './public-address.ts';

export interface DocumentComponents {
  readonly clock: Clock;
  /** For tests: another look-up of names, and another judge of their addresses. */
  readonly lookUp?: (host: string) => Promise<readonly LookupAddress[]>;
  readonly arePublic?: (addresses: readonly LookupAddress[]) => boolean;
  /** For tests: certificate authorities beside those of the system. */
  readonly authority?: string;
}

interface Kept<Value> {
  readonly at: number;
  readonly value: Value;
}

/** Whether a client's id says that it has such a document. */
export function isDocumentId(id: string): boolean {
  return id.startsWith('https://');
}

export class MetadataDocuments {
  readonly #components: DocumentComponents;
  readonly #clients = new LruMap<string, Kept<OauthClient>>(limits.metadataDocumentsKeptMax);
  readonly #refusals = new LruMap<string, Kept<OauthError>>(limits.metadataDocumentsKeptMax);
  readonly #fetching = new SingleFlight<string, OauthClient>();
  readonly #fetchesOf = new Map<string, number>();

  constructor(components: DocumentComponents) {
    this.#components = components;
  }

  /**
   * Throws OauthError `invalid_client` for an id that can be none or whose document is not to be had, and what it lacks otherwise.
   * `network`: who asks, so that documents that never come take not all places from others.
   */
  async clientOf(id: string, network: string): Promise<OauthClient> {
    const url = documentUrl(id);
    const client = this.#stillKept(this.#clients.get(id), limits.metadataDocumentKeptMs);
    if (client !== null) return client;
    const refusal = this.#stillKept(this.#refusals.get(id), limits.metadataFailureKeptMs);
    if (refusal !== null) throw refusal;
    const joined = this.#fetching.joined(id);
    return joined ?? this.#fetching.run(id, () => this.#placed(network, () => this.#fetch(id, url)));
  }

  #stillKept<Value>(kept: Kept<Value> | undefined, keptMs: number): Value | null {
    return kept !== undefined && this.#components.clock.monotonic() < kept.at + keptMs ? kept.value : null;
  }

  /** Throws where no place is free for this network. */
  async #placed<Value>(network: string, work: () => Promise<Value>): Promise<Value> {
    const ofNetwork = this.#fetchesOf.get(network) ?? 0;
    if (
      this.#fetching.size >= limits.metadataFetchesAtOnceMax ||
      ofNetwork >= limits.metadataFetchesOfNetworkMax
    )
      throw new OauthError(
        'temporarily_unavailable',
        'too many documents of clients are being read: try again in a moment',
      );
    this.#fetchesOf.set(network, ofNetwork + 1);
    try {
      return await work();
    } finally {
      const left = (this.#fetchesOf.get(network) ?? 0) - 1;
      if (left > 0) this.#fetchesOf.set(network, left);
      else this.#fetchesOf.delete(network);
    }
  }

  async #fetch(id: string, url: URL): Promise<OauthClient> {
    const { clock } = this.#components;
    try {
      const client = documentedClient(id, await fetchDocument(url, this.#components), clock.now());
      this.#clients.set(id, { at: clock.monotonic(), value: client });
      return client;
    } catch (error) {
      const refusal = error instanceof OauthError ? error : notToBeHad('it could not be read');
      this.#refusals.set(id, { at: clock.monotonic(), value: refusal });
      throw refusal;
    }
  }
}

function documentUrl(id: string): URL {
  const url = id.length <= limits.clientIdCharactersMax && URL.canParse(id) ? new URL(id) : null;
  // As it is written, so that two ids are never one document.
  const isPlain = url !== null && url.href === id && url.protocol === 'https:' && url.pathname !== '/';
  if (isPlain && url.hash === '' && url.username === '' && url.password === '') return url;
  throw new OauthError(
    'invalid_client',
    'client_id must be the whole https address of a document, with a path',
  );
}

function notToBeHad(why: string): OauthError {
  return new OauthError('invalid_client', `the document at client_id is not to be had: ${why}`);
}

/** One sentence for a name that has no address and for one of somebody's own network: nobody learns here which names that has. */
function nowherePublic(): OauthError {
  return notToBeHad('its host has no address on the public network');
}

function fetchDocument(url: URL, components: DocumentComponents): Promise<unknown> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0) throw notToBeHad('its host must be a name');
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    const asked = request(
      url,
      {
        agent: false,
        lookup: guardedLookUp(components),
        headers: { accept: 'application/json', 'accept-encoding': 'identity', 'user-agent': 'tidebase' },
        ...(components.authority === undefined ? {} : { ca: components.authority }),
      },
      (answer) => {
        const refuse = (why: string) => {
          reject(notToBeHad(why));
          asked.destroy();
        };
        if (answer.statusCode !== 200)
          return refuse(`it answered ${answer.statusCode}, and only 200 will do`);
        answer.on('data', (part: Buffer) => {
          bytes += part.byteLength;
          if (bytes > limits.metadataDocumentBytesMax)
            return refuse(`it is longer than ${limits.metadataDocumentBytesMax} bytes`);
          parts.push(part);
        });
        answer.on('end', () => {
          try {
            resolve(parsed(Buffer.concat(parts)));
          } catch (error) {
            reject(error);
          }
        });
        answer.on('error', () => reject(notToBeHad('its server broke off')));
      },
    );
    const cancel = components.clock.after(limits.metadataFetchMs, () => {
      reject(notToBeHad('its server took too long'));
      asked.destroy();
    });
    asked.on('close', cancel);
    asked.on('error', (error) =>
      reject(error instanceof OauthError ? error : notToBeHad('its server cannot be reached')),
    );
    asked.end();
  });
}

function parsed(bytes: Buffer): unknown {
  try {
    return parseJson(bytes, { depthMax: limits.jsonDepthMax, valuesMax: limits.metadataDocumentBytesMax });
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw notToBeHad('it is no JSON');
    throw error;
  }
}

/** The look-up of the connection itself: what it answers is what is called. */
function guardedLookUp(components: DocumentComponents): LookupFunction {
  const lookUp = components.lookUp ?? systemLookUp;
  const judge = components.arePublic ?? arePublic;
  return (host, options, done) => {
    lookUp(host).then(
      (addresses) => {
        const [first] = addresses;
        if (first === undefined || !judge(addresses)) return done(nowherePublic(), '');
        if (options.all === true) done(null, [...addresses]);
        else done(null, first.address, first.family);
      },
      () => done(nowherePublic(), ''),
    );
  };
}

function systemLookUp(host: string): Promise<readonly LookupAddress[]> {
  return new Promise((resolve, reject) => {
    lookupName(host, { all: true }, (error, addresses) =>
      error === null ? resolve(addresses) : reject(error),
    );
  });
}
