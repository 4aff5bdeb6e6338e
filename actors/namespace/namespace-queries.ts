import type { Temperature } from '../../protocol/document.ts';
import { type DocumentQuery, documentQuerySchema } from '../../protocol/document.ts';
import { ApiError, invalidField } from '../../protocol/errors.ts';
import { documentIdProblem } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { ActorCall, ReadLink } from '../../protocol/messages.ts';
import { parseQueryString } from '../../protocol/query-string.ts';
import {
  type CountRequest,
  parseCountBody,
  parseCountQuery,
  parseSearchBody,
  parseSearchQuery,
  parseWarmBody,
  type SearchRequest,
} from '../../protocol/search.ts';
import { sqlRequestSchema } from '../../protocol/sql.ts';
import type { BranchRecord } from '../../protocol/stored-tenant.ts';
import { parseQueryWith, parseWith } from '../../protocol/validate.ts';
import { DataError } from '../../src/base/assert.ts';
import { describeError } from '../../src/base/log.ts';
import { type ActorReply, namespaceJson, reply, tokenMeter } from '../actor/actor-reply.ts';
import type { ActorComponents } from '../actor/components.ts';
import { GatedRoom } from '../search/answer-room.ts';
import type { QueryFigures } from '../search/answers.ts';
import { type GraphSource, noGraphs } from '../search/graph-source.ts';
import { type JsonAnswer, type QueryContext, temperatureOf } from '../search/query.ts';
import { runCount, runSearch } from '../search/run-search.ts';
import { runWarm } from '../search/run-warm.ts';
import { runSql } from '../search/sql/run-sql.ts';
import { TimeSlice } from '../search/time-slice.ts';
import { MissingObjectError, type ReadTally } from '../storage/block-fetch.ts';
import { whileSoon } from '../storage/decode-blocks.ts';
import type { NamespaceIdentity } from '../storage/manifest.ts';
import { type ReadDeadline, ReadTimedOut } from '../storage/read-deadline.ts';
import { isReadFailure, type ReadFailure } from '../storage/read-failure.ts';
import { readBody } from '../thread/request-body.ts';
import { noteSpent, spending } from '../thread/spent.ts';
import type { Turn } from '../thread/turn.ts';
import { documentPartBytes } from './document-part.ts';
import { embedTexts } from './embed-texts.ts';
import { vectorStatistics } from './index-vectors.ts';
import type { NamespaceState } from './namespace-state.ts';
import { documentBytes, findDocument, findWarm, type LiveDocument } from './read-document.ts';
import { SegmentGraphs } from './segment-graphs.ts';
import { takeSnapshot } from './take-snapshot.ts';

/** How the namespace was found by this request, and what opening it read. */
export interface OpenedNow {
  readonly tally: ReadTally;
  /** When the query must have answered. */
  readonly deadline: ReadDeadline;
  readonly turn: Turn;
  readonly foundAs: Temperature;
}

/** The reading half of a namespace: what is asked, over a snapshot, beside whatever is being written. */
export class NamespaceQueries {
  readonly #components: ActorComponents;
  readonly #state: NamespaceState;
  readonly #graphs: GraphSource;
  readonly #indexVectors: () => void;
  readonly #branched: BranchRecord | null;

  /** `indexVectors`: called where a search met vectors that should have graphs and don't. */
  constructor(
    components: ActorComponents,
    state: NamespaceState,
    { branched, indexVectors }: { readonly branched: BranchRecord | null; readonly indexVectors: () => void },
  ) {
    this.#branched = branched;
    this.#indexVectors = indexVectors;
    this.#components = components;
    this.#state = state;
    const { vector, identity } = state;
    this.#graphs = vector === null ? noGraphs : new SegmentGraphs(components, identity.namespaceId, vector);
  }

  /** A read that memory answers, without a promise; null where it takes one. */
  getWarm(id: string, beganAt: number): Buffer | null {
    const read = { storeGets: 0, storeBytes: 0, diskReads: 0 };
    const place = this.#findWarm(id, read);
    if (place === 'cold') return null;
    const cpuMs = this.#components.clock.monotonic() - beganAt;
    // An id that no document can have is looked up like any other: only who finds nothing pays for judging it.
    if (place === null) throw badId(id) ?? noteSpent(noSuchDocument(id), cpuMs);
    const temperature = read.diskReads > 0 ? 'local' : 'warm';
    return documentBytes(place, { temperature, storeGets: 0, storeBytes: 0, cpuMs, timedOut: false });
  }

  #findWarm(id: string, read: ReadTally): LiveDocument | null | 'cold' {
    try {
      return findWarm(this.#state, id, read);
    } catch (error) {
      // The long way finds the damage again, and answers for it.
      if (error instanceof DataError) return 'cold';
      throw error;
    }
  }

  /**
   * Throws MissingObjectError where a segment is gone that an older manifest named: whoever opens the namespace again
   * may ask again. Other failures to read are 503, and searches answer what they found.
   */
  async handle(call: ActorCall, body: Uint8Array | null, opened: OpenedNow): Promise<ActorReply> {
    try {
      return await this.#handle(call, body, opened);
    } catch (error) {
      if (!isReadFailure(error)) throw error;
      if (error instanceof ReadTimedOut && !error.isSilent && call.operation !== 'getDocument')
        throw timedOut(error);
      this.#readFailed(error, call, opened);
      throw new ApiError('unavailable', 'stored data could not be read; try again', {
        retryAfter: 1,
        cause: error,
      });
    }
  }

  /** Logs what could not be read, by name. */
  #readFailed(failure: ReadFailure, { caller }: ActorCall, opened: OpenedNow): void {
    const mayBeOld = opened.foundAs !== 'cold';
    if (failure instanceof MissingObjectError && mayBeOld) throw failure;
    this.#components.logger.error('stored data could not be read', {
      requestId: caller.requestId,
      namespaceId: this.#state.identity.namespaceId,
      error: describeError(failure),
    });
  }

  async #handle(call: ActorCall, body: Uint8Array | null, opened: OpenedNow): Promise<ActorReply> {
    switch (call.operation) {
      case 'getDocument':
        return this.#getDocument(call, opened);
      case 'search':
        return this.#search(
          call,
          this.#reading(opened, () => parseSearch(call, body)),
          opened,
        );
      case 'count':
        return this.#count(
          call,
          this.#reading(opened, () => parseCount(call, body)),
          opened,
        );
      case 'warm':
        return this.#warm(call, body, opened);
      case 'sql':
        return this.#sql(call, body, opened);
      case 'getNamespace':
        return reply(this.describe(call.link));
      default:
        throw new ApiError('not_implemented', `nothing of a namespace does ${call.operation}`);
    }
  }

  /** Reads what was asked, which costs milliseconds where it is large: whose request it is pays for it, also where it is refused. */
  #reading<T>({ turn }: OpenedNow, read: () => T): T {
    const { clock } = this.#components;
    const beganAt = clock.monotonic();
    try {
      return read();
    } finally {
      turn.charge(clock.monotonic() - beganAt);
    }
  }

  /** Makes the Namespace resource of this namespace, or of a link to it, to which nothing was written and which stores nothing. */
  describe(link?: ReadLink): string {
    const { identity, vector, embed, counters, storedBytes } = this.#state;
    if (link === undefined) {
      const branched = this.#branched ?? undefined;
      return namespaceJson({ ...identity, vector, embed, ...counters, storedBytes, branched });
    }
    const { name, source, createdAt, version } = link;
    const linked = { source, version: counters.version, follows: version === null };
    const ownBytes = version === null ? 0 : storedBytes;
    const shown = { name, vector, embed, docsWritten: 0, bytesWritten: 0, storedBytes: ownBytes };
    return namespaceJson({ ...shown, createdAt, linked });
  }

  async #getDocument(call: ActorCall, opened: OpenedNow): Promise<ActorReply> {
    const refusal = badId(call.argument);
    if (refusal !== null) throw refusal;
    const asked = documentQueryOf(call);
    await this.#waitForVersion(asked.min_version, opened);
    const slice = new TimeSlice(this.#components.clock, opened.deadline, opened.turn);
    const { tally } = opened;
    const place = await spending({ slice, tally }, async () => {
      const found = await slice.waitFor(findDocument(this.#state, call.argument, tally));
      if (found === null) throw noSuchDocument(call.argument);
      return found;
    });
    if (place === null) throw noSuchDocument(call.argument);
    const figures: QueryFigures = {
      storeGets: tally.storeGets,
      storeBytes: tally.storeBytes,
      temperature: temperatureOf(opened.foundAs, tally),
      cpuMs: slice.cpuMs,
      timedOut: false,
    };
    const {
      lines,
      limit: linesMax = Number.POSITIVE_INFINITY,
      max_bytes: bytesMax = limits.answerBytesMax,
    } = asked;
    const isWhole = lines === undefined && asked.limit === undefined && asked.max_bytes === undefined;
    const packed = isWhole
      ? documentBytes(place, figures)
      : documentPartBytes(place, figures, { lines, linesMax, bytesMax });
    return reply('', { packed, tally: opened.tally, cpuMs: slice.cpuMs });
  }

  async #search(call: ActorCall, asked: SearchRequest, opened: OpenedNow): Promise<ActorReply> {
    refuseFilterOfLink(call, asked);
    await this.#waitForVersion(asked.min_version, opened);
    const { request, tokens } = await this.#embedded(asked, opened);
    if (request.vector !== undefined && vectorStatistics(this.#state.segments).waiting > 0)
      this.#indexVectors();
    const answer = await this.#query(call, opened, (context) => runSearch(context, request));
    return { ...answer, ...tokenMeter(this.#state.embed?.provider, tokens) };
  }

  /** The request with a vector in place of the text that says what is meant. */
  async #embedded(
    request: SearchRequest,
    { deadline }: OpenedNow,
  ): Promise<{ readonly request: SearchRequest; readonly tokens: number }> {
    const { semantic } = request;
    if (semantic === undefined) return { request, tokens: 0 };
    const { embed, vector, identity } = this.#state;
    if (embed === null || vector === null)
      throw invalidField(
        'semantic',
        'this namespace has no embedding model: PATCH it with embed, or send vector',
      );
    const { vectors, tokens } = await embedTexts(this.#components, {
      tenantId: identity.tenantId,
      embed,
      dims: vector.dims,
      texts: [semantic],
      purpose: 'query',
      deadlineMs: deadline.leftMs,
    });
    return { request: { ...request, vector: [...vectors] }, tokens };
  }

  async #count(call: ActorCall, request: CountRequest, opened: OpenedNow): Promise<ActorReply> {
    refuseFilterOfLink(call, request);
    await this.#waitForVersion(request.min_version, opened);
    return this.#query(call, opened, (context) => runCount(context, request));
  }

  async #sql(call: ActorCall, body: Uint8Array | null, opened: OpenedNow): Promise<ActorReply> {
    if (call.link !== undefined) throw invalidField('sql', notOfLinks('SQL', call.link));
    const request = this.#reading(opened, () =>
      parseWith(sqlRequestSchema, body === null ? undefined : readBody(body)),
    );
    await this.#waitForVersion(request.min_version, opened);
    return this.#query(call, opened, (context) => runSql(context, request));
  }

  async #warm(call: ActorCall, body: Uint8Array | null, opened: OpenedNow): Promise<ActorReply> {
    const request = this.#reading(opened, () =>
      parseWarmBody(body === null || body.byteLength === 0 ? undefined : readBody(body)),
    );
    await this.#waitForVersion(request.min_version, opened);
    return this.#query(call, opened, (context) => runWarm(context, request));
  }

  async #query(
    call: ActorCall,
    opened: OpenedNow,
    run: (context: QueryContext) => Promise<JsonAnswer>,
  ): Promise<ActorReply> {
    const { clock, cursorKeys, lanes, patterns, scanRoom, shares, sql } = this.#components;
    const claim = shares.claim(call.tenantId, opened.deadline.leftMs);
    const sqlHolding = sql.memory.holding(call.caller.owner);
    const slice = new TimeSlice(clock, opened.deadline, opened.turn);
    const room = new GatedRoom(this.#components.queryMemory, call.caller.owner);
    opened.tally.decode = whileSoon(
      clock,
      (task) => lanes.decodeBlocks(task, claim),
      (cpuMs) => slice.charge(cpuMs),
    );
    const context: QueryContext = {
      identity: shownIdentity(this.#state.identity, call.link),
      vector: this.#state.vector,
      snapshot: takeSnapshot(this.#state),
      slice,
      tally: opened.tally,
      foundAs: opened.foundAs,
      cursorKeys,
      graphs: this.#graphs,
      patterns,
      match: (task) => lanes.match(task, claim),
      findRows: (task) => lanes.findRows(task, claim),
      scanRoom,
      room,
      sqlHolding,
      keptColumns: sql.columns,
      buffers: sql.buffers,
      monotonic: () => clock.monotonic(),
      beganAt: opened.turn.beganAt,
      readFailed: (failure) => this.#readFailed(failure, call, opened),
    };
    try {
      const answer = await spending({ slice, tally: opened.tally }, () => run(context));
      const metered = { tally: opened.tally, cpuMs: slice.cpuMs };
      return typeof answer === 'string' ? reply(answer, metered) : reply('', { ...metered, packed: answer });
    } finally {
      slice.end();
      room.release();
      sqlHolding.release();
    }
  }

  /** Waits a little for a version that a caller has seen elsewhere, and no longer than the query may take. */
  async #waitForVersion(minVersion: number | undefined, { deadline }: OpenedNow): Promise<void> {
    if (minVersion === undefined) return;
    const { clock } = this.#components;
    const until = clock.monotonic() + Math.min(limits.minVersionWaitMs, deadline.leftMs);
    while (this.#state.counters.version < minVersion) {
      if (clock.monotonic() >= until) {
        throw new ApiError('unavailable', `version ${minVersion} of this namespace is not here yet`, {
          retryAfter: 1,
        });
      }
      await clock.sleep(10);
    }
  }
}

/** Answers which namespace an answer names and a cursor is for: the link, where this one is read by a link. */
function shownIdentity(identity: NamespaceIdentity, link: ReadLink | undefined): NamespaceIdentity {
  return link === undefined ? identity : { ...identity, name: link.name, namespaceId: link.linkId };
}

function refuseFilterOfLink({ link }: ActorCall, { filter }: SearchRequest | CountRequest): void {
  if (link !== undefined && filter !== null) throw invalidField('filter', notOfLinks('filters', link));
}

function notOfLinks(what: string, { source }: ReadLink): string {
  return `a link takes no ${what}: ask its source, "${source}"`;
}

function timedOut(cause: ReadTimedOut): ApiError {
  return new ApiError('query_timeout', 'the query ran past the time limit of your plan: narrow it', {
    cause,
  });
}

function badId(id: string): ApiError | null {
  const problem = documentIdProblem(id);
  return problem === null ? null : invalidField('id', problem);
}

function noSuchDocument(id: string): ApiError {
  return new ApiError('not_found', `there is no document with the id ${JSON.stringify(id.slice(0, 100))}`);
}

function parseSearch(call: ActorCall, body: Uint8Array | null): SearchRequest {
  return body === null
    ? parseSearchQuery(parseQueryString(call.query), parseText)
    : parseSearchBody(readBody(body));
}

function parseCount(call: ActorCall, body: Uint8Array | null): CountRequest {
  return body === null
    ? parseCountQuery(parseQueryString(call.query), parseText)
    : parseCountBody(readBody(body));
}

const parseText = (text: string) => readBody(Buffer.from(text));

function documentQueryOf(call: ActorCall): DocumentQuery {
  return call.query === '' ? {} : parseQueryWith(documentQuerySchema, parseQueryString(call.query));
}
