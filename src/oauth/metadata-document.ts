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

/**
 * Clients whose id is the https address of a document about them. Anybody can make the server ask for one, so: https only, a name
 * and no number as the host, addresses that are all public (judged in the look-up whose answer the connection uses, so that
 * a name cannot be another one a moment later), no redirect, 5 KB, 2.5 seconds in all, so many at once, and each answer, a
 * failure too, is kept for a while.
 */
export interface DocumentComponents {
  readonly clock: Clock;
  /** For tests: another look-up of names, and another judge of their addresses. */
  readonly lookUp?: (host: string) => Promise<readonly LookupAddress[]>;
  readonly arePublic?: (addresses: readonly LookupAddress[]) => boolean;
  /** For tests: certificate authorities beside those of the system. */
  readonly authority?: string;
}

type Kept = { readonly at: number } & ({ readonly client: OauthClient } | { readonly refusal: OauthError });

/** Whether a client's id says that it has such a document. */
export function isDocumentId(id: string): boolean {
  return id.startsWith('https://');
}

export class MetadataDocuments {
  readonly #components: DocumentComponents;
  readonly #kept = new LruMap<string, Kept>(limits.metadataDocumentsKeptMax);
  readonly #fetching = new SingleFlight<string, OauthClient>();

  constructor(components: DocumentComponents) {
    this.#components = components;
  }

  /** Throws OauthError `invalid_client` for an id that can be none or whose document is not to be had, and what it lacks otherwise. */
  async clientOf(id: string): Promise<OauthClient> {
    const url = documentUrl(id);
    const kept = this.#stillKept(id);
    if (kept !== null) {
      if ('client' in kept) return kept.client;
      throw kept.refusal;
    }
    if (this.#fetching.joined(id) === undefined && this.#fetching.size >= limits.metadataFetchesAtOnceMax)
      throw new OauthError(
        'temporarily_unavailable',
        'too many documents of clients are being read: try again in a moment',
      );
    return this.#fetching.run(id, () => this.#fetch(id, url));
  }

  #stillKept(id: string): Kept | null {
    const kept = this.#kept.get(id);
    if (kept === undefined) return null;
    const keptMs = 'client' in kept ? limits.metadataDocumentKeptMs : limits.metadataFailureKeptMs;
    return this.#components.clock.monotonic() < kept.at + keptMs ? kept : null;
  }

  async #fetch(id: string, url: URL): Promise<OauthClient> {
    const { clock } = this.#components;
    try {
      const client = documentedClient(id, await fetchDocument(url, this.#components), clock.now());
      this.#kept.set(id, { at: clock.monotonic(), client });
      return client;
    } catch (error) {
      const refusal = error instanceof OauthError ? error : notToBeHad('it could not be read');
      this.#kept.set(id, { at: clock.monotonic(), refusal });
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
        if (first === undefined || !judge(addresses))
          return done(notToBeHad('its host is not on the public network'), '');
        if (options.all === true) done(null, [...addresses]);
        else done(null, first.address, first.family);
      },
      () => done(notToBeHad('its host has no address'), ''),
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
