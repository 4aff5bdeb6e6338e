/**
 * Every bound of the product: its unit is the end of its name, its reason the comment beside it.
 * Values whose comment begins with "Service" are part of the interface, and clients rely on them; the others are ours to change.
 */
import { billingLimits } from './billing-limits.ts';
import { clusterLimits } from './cluster-limits.ts';
import { importLimits } from './import-limits.ts';
import { peerLimits } from './peer-limits.ts';
import { transferLimits } from './transfer-limits.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

export const limits = {
  /** Service: the size of a document's parts. */
  documentIdBytesMax: 512,
  documentTextBytesMax: 2 * 1000 * 1000,
  documentMetaBytesMax: 16 * KiB,
  vectorDimsMax: 2_048,
  /** Tokens of a text that the local model reads: about 40 KB of English in 1 s, and as much as hosted models take. */
  embeddedTokensMax: 8_192,
  /** Service: how many documents and deletes one write request has, and how large its body is. */
  writeItemsMax: 10_000,
  writeBodyBytesMax: 64 * MiB,
  /** Ids of one delete request: as many as a write has documents. */
  deleteIdsMax: 10_000,
  namespaceNameCharactersMax: 64,
  listLimitDefault: 100,
  /** Tenants that one person owns: each has the free plan's allowances anew, and is an actor to ask when they are listed. */
  tenantsOfPersonMax: 20,
  /** Tenants that one person makes in a calendar month, UTC; deleted ones count, for a new tenant must not be a way to the month's allowances again. */
  tenantsMadePerMonthMax: 20,
  /** Changes of one person's tenants that wait for each other on a server: each takes a third of a second, so the last waits some ten seconds. */
  tenantChangesAtOnceMax: 32,
  /** API keys of one tenant: one answer lists them all, 400 KB then, and its actor holds them and writes all with each manifest. */
  keysOfTenantMax: 1_000,
  /** Namespace patterns of all keys of one tenant: ten for each key, 700 KB when they are listed. */
  keyPatternsOfTenantMax: 10_000,
  /** Length of an `Idempotency-Key`: a name that the client makes, such as a UUID. */
  idempotencyKeyCharactersMax: 255,
  /** How long the answer to an `Idempotency-Key` is kept: as Stripe does, and longer than any retry. */
  idempotentAnswerKeptMs: 24 * 3_600_000,
  /** Answers that one tenant keeps for repeated requests, about 700 bytes each: the oldest go first. See actors/tenant/stored-answers.ts. */
  idempotentAnswersMax: 2_000,
  /** Sealed bytes of the answers that one tenant keeps: the answer that shows a new key has up to a hundred patterns. */
  idempotentAnswersBytesMax: 2 * MiB,
  listLimitMax: 1_000,
  searchLimitDefault: 20,
  searchLimitMax: 1_000,
  warmQueriesMax: 20,
  /** Body of a query or of an account's request: the largest filter is 64 KB and a pattern 1,000 characters. */
  queryBodyBytesMax: 1 * MiB,
  /**
   * Body of a request without credentials: an address, a name, a password of 200 characters and a token of 4,096, each of which
   * may be written as an escape of six bytes, are below it. Whoever sends more is no person.
   */
  openBodyBytesMax: 16 * KiB,
  /**
   * JSON values of the body of a request without credentials, itself among them: none needs more than four. Reading stops at the next one,
   * so that nobody's 16 KB of brackets take a millisecond, and an answer names no 1,700 unknown fields.
   */
  openBodyValuesMax: 20,
  ...clusterLimits,
  ...billingLimits,
  /** Requests without credentials under way at once: 16 MB of bodies. */
  openRequestsMax: 1_000,
  /** Requests without credentials under way from one network, so that stalled bodies from one do not take all places. */
  openRequestsOfNetworkMax: 250,
  /** Service: the length of a regex. Its program bounds what it may cost, not its length. */
  patternCharactersMax: 1_000,
  /** Bytes of any query's `q`: room for a pattern of the longest characters. At worst a literal costs RE2 its length for each byte of text. */
  literalBytesMax: 4_000,
  filterBytesMax: 64 * KiB,
  filterKeysMax: 100,
  filterInValuesMax: 1_000,
  /** Nesting of an SQL statement: a deeper one costs stack. */
  sqlDepthMax: 64,
  /** Expressions of an SQL statement: it is parsed and bound on the thread that answers everybody else, some 10 ms. Values of an IN list are counted by themselves. */
  sqlExpressionsMax: 4_096,
  sqlInListMax: 10_000,
  /** Terms of one sum in SQL: each stands within the next one, so they nest. */
  sqlTermsMax: 256,
  sqlColumnsMax: 1_024,
  /** Keys of a GROUP BY, and DISTINCT aggregates: each has tables of its own, 300 KB with the first value. An aggregate has numbers for each group. */
  sqlGroupKeysMax: 128,
  /** Keys of an ORDER BY: each is held with each row that may be answered. */
  sqlOrderKeysMax: 128,
  sqlDistinctAggregatesMax: 64,
  sqlAggregatesMax: 1_024,
  /** Bytes that a function such as REGEXP_REPLACE makes of one text, and of all texts of a frame. */
  sqlReplacedBytesMax: 2 * MiB,
  sqlReplacedFrameBytesMax: 64 * MiB,
  sqlRowsMax: 10_000,
  /** Bytes of JSON of one row of an SQL answer: what REGEXP_REPLACE makes of one text, four times. It is written in one turn. */
  sqlRowBytesMax: 8 * MiB,
  /** Bytes of groups, distinct values and rows that one SQL query holds, where the thread has as much left for its owner. */
  sqlMemoryBytesMax: 256 * MiB,
  /** `contains` and the like in one SQL statement: each is a search of its own. */
  sqlTextPredicatesMax: 8,
  ...importLimits,
  /** How long a file waits for a place, and a body or a file for the room that it takes, before it is refused. */
  roomWaitMs: 10_000,
  /** Branches of one namespace and links that stay at one of its versions: its manifest lists them, with some 150 bytes each. */
  pinsMax: 1_000,
  /** Keys of one namespace that hold dates or times: its manifest lists them. */
  temporalKeysMax: 4_096,
  /** Nesting of any JSON that we read: deeper input costs stack, no document needs it. */
  jsonDepthMax: 32,
  /** JSON values of one body: a filter of 64 KB has 32,000, a vector 2,048. Making so many takes some milliseconds. */
  jsonValuesMax: 50_000,
  /** Bytes that a hit shows of its match, and of the line around it: searches answer with places, not with whole texts. */
  matchBytesMax: 256,
  lineBytesMax: 400,
  /** Lines that a hit shows on each side of its own: who wants more reads the document's lines. */
  contextLinesMax: 10,
  countIdsMax: 10,
  /** Row groups that an estimated count judges at most, of memtables and of segments each: 8 MB of documents, some 15 ms; half of them where many match. */
  estimateGroupsMax: 64,
  /** Blocks that an estimate draws at most, where candidates are too many to be listed: as many as leave `estimateGroupsMax` with a candidate where one block in 16 has one. */
  estimateBlocksDrawnMax: 1_024,
  /** Documents, and bytes, that a regex which the index cannot narrow looks at without `scan: true`. */
  scanDocumentsMax: 20_000,
  scanBytesMax: 64 * MiB,
  /** Ranges of one document that `include: ["matches"]` shows. */
  matchesMax: 100,
  /** Places of each list that rank: "rrf" fuses, where fewer hits are asked for: later ones add hardly anything. */
  fusedRanksMax: 100,
  /** The smallest `max_bytes`: an answer holds at least its own frame. */
  answerBytesMin: 1_024,
  /** Bytes of one answer with whole texts, as many as a write's body has; what does not fit is on the next page. */
  answerBytesMax: 64 * MiB,
  /**
   * Body of `POST /mcp`: a document of the longest text, escaped. The front thread itself passes every byte of it, some 2 ms then, to find
   * the tool; larger writes go over REST. The SDKs' own servers take as much.
   */
  mcpBodyBytesMax: 4 * MiB,
  /** JSON-RPC messages of one batch: as many as the SDKs' own servers take. Each tool call among them counts as a request. */
  mcpBatchMax: 100,
  /** Lists of tools, of about 29 KB each, that are kept whole by the id of the message that asked for them. */
  toolListsKept: 32,
  /** The largest `max_bytes` of an MCP tool: the front thread writes such an answer twice, once as text, which takes 3 ms. */
  toolAnswerBytesMax: 1 * MiB,
  minVersionWaitMs: 1_000,

  /** Request heads: uWebSockets' own bound is 4 KB of URL by default, import schemas need 64 KB. */
  requestHeadBytesMax: 64 * KiB,
  /** Memory of what running queries hold on a thread, as a part of what its actors may: one in so many. */
  queryMemoryPart: 4,
  ...transferLimits,
  /** Requests that wait for memory of bodies, for a place or for the disk: each holds a connection and a kilobyte. */
  roomWaitersMax: 4_096,
  /** Weights of owners where a server has more to do than it can: who pays, who has shown an address, who has not. */
  shareWeightPro: 8,
  shareWeightFree: 4,
  shareWeightUnverified: 1,
  /** How long a body may take to arrive, from the head of its request on; one that keeps coming gets more, see front/http. */
  bodyDeadlineMs: 30_000,
  /** How long a credential is looked for in the object store: as long as a query of the free plan may take. */
  credentialWaitMs: 10_000,
  /** How long a request may take in all: longer than the longest query and the longest wait for the log. */
  handlerDeadlineMs: 40_000,
  writeDeadlineMs: 60_000,
  /** How long running requests may take to finish after SIGTERM. */
  drainMs: 10_000,

  /** Sign-ups and logins under way: one whose password is hashed, and those that wait for 1 to 3 s. */
  passwordsAtOnceMax: 33,
  /** Sign-ups and logins under way for which the object store is read: one is hashed, one is ready, and one is answered. */
  passwordsBegunMax: 3,
  /** Service: how long a mailed link works, and how often its person may ask for another one. */
  verifyLinkMs: 7 * 24 * 3_600_000,
  resetLinkMs: 3_600_000,
  resendEveryMs: 60_000,
  /** Mails that ask one address to be verified, the sign-up's among them: whose address it is may not want any. */
  verificationMailsPerDayMax: 5,
  /** Passwords that nobody may choose, the commonest first: who guesses tries these, and has ten tries from each network. */
  commonPasswordsRefused: 10_000,
  /** Links of one kind that work at once; a newer one puts out the oldest. People look for the last mail, or the one before. */
  linksPerPersonMax: 5,
  /** Accounts, and addresses, whose attempts of one kind are remembered: about 10 MB. A flood makes the oldest forgotten. */
  attemptKeysMax: 50_000,
  /** Keys, login tokens, tenants and links that an address asks for in vain in a minute: each may cost a read of the object store. */
  failedLookUpsPerMinuteMax: 100,
  /** The first wait of a network after too many failed logins of an account; each failure more doubles it, up to the window. */
  loginDelayFirstMs: 30_000,
  /** Failed logins of one account and network of which the time is kept: those that delay, and what runs side by side. */
  loginFailuresKeptMax: 100,
  /** How long a person may look at what a client asks for before they have to sign in again. */
  consentTicketMs: 10 * 60_000,
  /** The query of `/oauth/authorize`: addresses, a state and a challenge. It goes along in the form. */
  authorizeQueryCharactersMax: 8_000,
  /** How long an authorization code works: a browser's way back and one request. */
  oauthCodeMs: 60_000,
  /** How long tokens work: an access token works for an hour, a refresh token for 90 days from when it was given. */
  accessTokenMs: 3_600_000,
  refreshTokenMs: 90 * 24 * 3_600_000,
  /** A refresh token that was replaced gives its successor for so long in any case: the slowest of several processes took 8 minutes. */
  refreshGraceMs: 10 * 60_000,
  /** Replaced refresh tokens of a connection of which the time is kept: more in ten minutes is no client that works. */
  replacedTokensKeptMax: 20,
  /** Access tokens of a connection that work at once: a client's processes each have one. The oldest ends first. */
  accessTokensOfConnectionMax: 16,
  /** Connections of one tenant, and of one person in it: all lie in one object, some 600 bytes each, which each refresh writes anew. */
  connectionsOfTenantMax: 100,
  connectionsOfPersonMax: 50,
  /** Names and patterns that the connections of a tenant are limited to, together: 64 KB of that object. */
  connectionPatternsOfTenantMax: 1_000,
  /** Changes of one tenant's connections that wait for each other on a server: each is two requests to the store. */
  connectionChangesAtOnceMax: 32,
  /** Addresses of a registered client, their length and that of its name: the longest list that was seen has six. */
  redirectUrisMax: 20,
  redirectUriCharactersMax: 1_000,
  clientNameCharactersMax: 100,
  /** A client's id: ours has 39 characters, and others are addresses. */
  clientIdCharactersMax: 1_000,
  /** What a client gets back with its code: the longest that was seen is a JWT of some hundred characters. */
  oauthStateCharactersMax: 4_096,
  /** A client's document: what the draft asks for at least, and most others' bounds. */
  metadataDocumentBytesMax: 5 * KiB,
  metadataFetchMs: 2_500,
  metadataFetchesAtOnceMax: 32,
  /** Documents that one network has read at once: whoever names documents that never come leaves places for others. */
  metadataFetchesOfNetworkMax: 4,
  /** Documents that are remembered at once, and failures beside them: 1 KB each. */
  metadataDocumentsKeptMax: 1_000,
  metadataDocumentKeptMs: 10 * 60_000,
  metadataFailureKeptMs: 30_000,
  /** A registration that nobody let connect is gone after so long. */
  unusedClientMs: 24 * 3_600_000,
  /** How often such registrations are listed: a thousand a request. */
  clientSweepEveryMs: 3_600_000,
  /** Mails that wait for a mail server that is away, 2 KB each; a person whose mail is not taken can ask for it again. */
  mailsWaitingMax: 1_000,
  /** Connections to the mail server at once. */
  mailsAtOnceMax: 4,
  /** Sends of one mail: with pauses that begin so and grow fivefold, some 30 s of a mail server's trouble. */
  mailAttemptsMax: 4,
  mailPauseFirstMs: 1_000,
  /** A mail server that says nothing for so long is taken to be away. */
  mailSilentMsMax: 10_000,
  /** How long mails that wait may take to be sent after SIGTERM. */
  mailDrainMs: 5_000,
  /** The outbox of a server without a mail server keeps the newest; sign-ups must not fill the disk. */
  outboxFilesMax: 1_000,

  /** Bodies up to this size are parsed on the actor's thread: about 1 ms. Larger ones go to a compute thread. */
  parseInlineBytesMax: 256 * KiB,
  /** A thread message body up to this size is copied into its batch; larger ones are moved. Measured break-even. */
  messageInlineBytesMax: 16 * KiB,
  /** Requests that wait in one actor's mailbox; more are refused as write_busy or rate_limited. */
  mailboxWaitingMax: 10_000,
  /** Bytes of writes of one namespace that are submitted and not yet durable. Past it: 429 write_busy. */
  pendingWriteBytesMax: 128 * MiB,
  /** Bytes of all records that wait in the log thread for their PUT, of all tenants; one owner has at most half, and never more than is free. Past it: 429 write_busy. */
  logQueueBytesMax: 272 * MiB,
  /** Requests between threads that wait for an answer. */
  callsInFlightMax: 100_000,

  ...peerLimits,

  /** A group is sent at once when it holds this much. */
  logGroupBytes: 4 * MiB,
  /** Larger records are uploaded as blobs before the record that names them: one slow PUT would hold up every tenant. */
  logRecordInlineBytesMax: 4 * MiB,
  /**
   * Groups a second that may be sent before their time, because a record that waits is urgent: of one owner, and of all together. With
   * the ordinary ones, four a second, they are twice as many PUTs at most.
   */
  earlyGroupsOfOwnerPerSecond: 2,
  earlyGroupsPerSecond: 4,
  /** Groups that may go early one after the other, after a time without any: of one owner, and of all together. */
  earlyGroupsOfOwnerAtOnceMax: 16,
  earlyGroupsAtOnceMax: 32,
  /** Owners whose early groups are counted: one that is forgotten begins with a full count, and all together stay bounded. */
  earlyGroupOwnersMax: 1_000,
  /** Bytes of blocks that an actor thread reads from its part of the local disk for another one at a time: half a millisecond. */
  nearBlocksBytesMax: 512 * KiB,
  /** Such pieces that one read asks for: what is more comes from the object store, in a few large GETs. */
  nearBlocksPiecesMax: 32,
  /** How long a read waits for them: a few turns of a busy thread, and about as long as the object store takes. */
  nearBlocksWaitMs: 100,
  /** How long a client waits for a log slot whose outcome is not known before it is told write_unknown. */
  writeUnknownAfterMs: 10_000,
  /** Tried seals above a log's known end before giving up: a log is at most this long behind its hint. */
  sealProbeMax: 1_000_000,
  /** Log objects read side by side by a replay, beside `logPacksInFlight`. */
  replayReadsInFlight: 16,
  /** How often a process looks for old records of its log and raises its floor. */
  logHousekeepingMs: 10_000,
  /** How often the logs and leases of ended processes are listed: a thousand objects a request. */
  logCollectionEveryMs: 3_600_000,

  /** A memtable is flushed at this size or number of documents. */
  memtableBytesMax: 32 * MiB,
  memtableDocumentsMax: 100_000,
  /** Recent documents that a manifest carries itself, so that small namespaces need no segment. */
  manifestTailBytesMax: 256 * KiB,
  /** A namespace with unflushed records older than this is flushed, so that replay stays short. */
  flushAfterMs: 300_000,
  /** Bytes of the log above its floor: with more, whoever holds the floor back is flushed. Half a second of replay from a disk. */
  logAboveFloorBytesMax: 512 * MiB,
  /** Bytes of the largest segment that an actor thread keeps in memory as it was stored, and of all of them. */
  freshObjectBytesMax: MiB,
  freshObjectsBytesMax: 32 * MiB,
  /** After so long such a segment goes before all younger ones where room is needed: what was read of it is kept as blocks by then. */
  freshObjectMs: 60_000,
  /** Documents are stored in blocks of about this size before compression: one cold read fetches one. */
  documentBlockBytes: 128 * KiB,
  /** Compaction makes no larger segment: a merge must fit a compute thread's time and the disk's cache. */
  segmentBytesMax: 2_000 * MiB,
  /** Compaction makes no segment of more rows: building one takes about 28 bytes of memory a row, 224 MB then. */
  segmentRowsMax: 8_000_000,
  /**
   * Numbers of a segment's vectors, and vectors, from which a graph pays: to look at all of them takes 1 ms then, and the graph a
   * tenth of that.
   */
  graphNumbersMin: 1_000_000,
  graphVectorsMin: 1_000,
  /** Vectors of a memtable over which a graph would pay are flushed after so long: searches look at each of them. */
  vectorsFlushAfterMs: 5_000,
  /** Segments as small as a flush's get graphs so long after the last flush: while more come, they will be merged. */
  indexAfterFlushMs: 8_000,
  /**
   * Bytes of a text that are embedded: two to four pages. Providers refuse texts of over 8,192 tokens, and a token is at least a
   * byte: cut so, none is refused in any language. The same for all of them, so that a change of model finds the same texts.
   */
  embeddedTextBytesMax: 8_000,
  /** Requests to embedding providers that one owner has under way where nobody else has any, and those that wait for them. */
  embeddingsInFlightMax: 16,
  embeddingsWaitingMax: 256,
  embeddingsWaitingOfTenantMax: 64,
  /** Tasks of a lane that wait for a thread: a waiting build holds its buffers, which its namespace bounds. */
  laneWaitingMax: 4_000,
  laneWaitingOfTenantMax: 1_000,
  /**
   * Where the cores are busy, a lane's place rests after a task for the task's time on a core times the number of other owners. These
   * are the most times, and the most milliseconds.
   */
  laneRestTimesMax: 30,
  laneRestMsMax: 400,
  /** How long a stop waits for a call of native code that may not be ended in its middle: a thousand vectors of 4,096 numbers take a second or two. */
  laneEndMs: 10_000,
  /** Bytes of one graph in memory while it is built, and on the local disk; a segment of more vectors has several graphs. */
  graphBytesMax: 512 * MiB,
  /** A replaced segment is kept this long for reads that began before; the longest query takes 30 s. */
  retiredGraceMs: 15 * 60_000,
  /** How old an object is that no manifest names before it is deleted: it may belong to an upload that is still running, and the longest takes hours. */
  orphanGraceMs: 24 * 3_600_000,
  /** How often all namespaces are listed for orphans: a thousand objects a request. */
  sweepEveryMs: 4 * 3_600_000,
  /**
   * A segment that has held replaced or deleted documents for so long is rewritten without them. With two sweeps (one finds an idle
   * namespace, the next deletes what was rewritten) and the time after a start, a deleted document is gone within a day.
   */
  deletedRowsKeptMs: 12 * 3_600_000,
  /** How long after a start the local cache is looked through for what was deleted while it was closed: recovery has the worst behind it then. */
  cacheSweepAfterMs: 15_000,
  /** How often the folder store's folders are looked through for what killed writers left: each start does it too. */
  folderTidyEveryMs: 12 * 3_600_000,
  /** Frozen memtables that may wait for their flush; past it writers get write_busy. */
  frozenMemtablesMax: 4,

  /** How often a thread that owns something shows that it turns, and is looked at: that is next to no work. */
  threadBeatMs: 1_000,
  /**
   * A thread that has not turned for so long never will, and the process ends. Calls of RE2 are bounded by
   * `matchWholeMsMax`; collections and opening caches take seconds.
   */
  threadSilentMsMax: 60_000,
  /** A call of RE2 that may take longer is not made on an actor's thread. */
  matchInlineMsMax: 10,
  /** Instructions of RE2's program for a pattern: the largest takes 7 ms to compile. A Unicode group has about 1,000. */
  patternInstructionsMax: 20_000,
  /** Queries whose compiled form a thread keeps: RE2's states of one are up to 8 MB, for testing and again for finding. */
  patternsKeptMax: 8,
  /** Patterns whose refusal a thread remembers, at most 5 KB each: who asks the same again is answered by a look-up. */
  patternRefusalsKeptMax: 1_000,
  /** A call of RE2 on a thread of its own takes no longer than this where the text can be judged piece by piece. */
  matchPieceMsMax: 100,
  /** No call of RE2 is made that may take longer than this: nothing can interrupt it. */
  matchWholeMsMax: 1_000,
  /** Texts that wait to be judged elsewhere, 2 MB each at most; a search has one at a time. */
  matchesWaitingMax: 128,
  matchesWaitingOfTenantMax: 16,
  /** Batches of a scan that other threads have or wait for. */
  scanBatchesAheadMax: 4,
  /** Bytes of blocks that all scans of an actor thread have elsewhere: they stay in memory, whatever makes room. Two scans have all that they may. */
  scansElsewhereBytesMax: 80 * 1024 * 1024,
  /** Pieces of objects, of at most 384 KB as stored or one block, that other threads decode for an actor thread at once. */
  decodingsElsewhereMax: 4,
  /** Decoded bytes of a piece that another thread decodes: one that would have more is decoded by the actor thread, a block at a time. */
  decodedElsewhereBytesMax: 8 * 1024 * 1024,
  /**
   * Bytes that a query reads from a store that is a folder, about, before what comes further is not kept in the cache on the local disk too: the
   * folder is as near, and keeping blocks takes a scan of gigabytes as long as decoding them.
   */
  folderReadsKeptBytesMax: 64 * 1024 * 1024,
  /** How long an actor thread waits for a piece that another thread decodes, in milliseconds: it takes 2, and may wait behind a dozen others. */
  decodedElsewhereMsMax: 60,
  /** Batches of scans and pieces to decode that wait for a thread, and of those one tenant's: one count has both. */
  scansWaitingMax: 32,
  scansWaitingOfTenantMax: 8,
  /** Long work gives way to other requests of its thread this often. */
  timeSliceMs: 2,
  /** Days of usage that a tenant keeps: three periods, so that the last one can still be billed. */
  usageDaysMax: 100,
  /** Days of which usage waits to be told to a tenant's actor while the store is away; the oldest are given up. */
  usageNotesMax: 8,
  /** Tenants whose usage waits to be told, of one second mostly; that of more is not counted. */
  usageTenantsMax: 100_000,
  /** Keys known to a front thread; an entry is about 500 bytes. */
  keyCacheEntriesMax: 100_000,
  /** Files of the audit log, one a day: half a year, as long as most ask for. */
  auditDaysKept: 180,
  /** Bytes of one file of the audit log: some 50,000 lines. Past it only what was done is written, no refusals: anybody can cause those. */
  auditDayBytesMax: 16 * MiB,
  /** Audit lines that wait for the disk. */
  auditLinesWaitingMax: 10_000,
  /** Namespaces and tenants open at once on a thread, besides the bound by bytes. */
  openActorsMax: 20_000,
} as const;

/** The limits that say when data moves on, from memory to the log to the store: a simulation makes them small. */
export type FlowLimits = {
  readonly [Name in
    | 'logQueueBytesMax'
    | 'logGroupBytes'
    | 'logRecordInlineBytesMax'
    | 'memtableBytesMax'
    | 'memtableDocumentsMax'
    | 'manifestTailBytesMax'
    | 'deletedRowsKeptMs'
    | 'frozenMemtablesMax'
    | 'flushAfterMs'
    | 'logAboveFloorBytesMax'
    | 'retiredGraceMs']: number;
};

/** Relations that the code relies on, checked when the module loads. */
const relations: readonly (readonly [boolean, string])[] = [
  [limits.documentTextBytesMax < limits.writeBodyBytesMax, 'a write body holds at least one document'],
  [limits.logRecordInlineBytesMax <= limits.logGroupBytes, 'a record fits a group'],
  [
    limits.writeUnknownAfterMs < limits.handlerDeadlineMs,
    'a client hears write_unknown before the handler deadline',
  ],
  [limits.pendingWriteBytesMax >= limits.writeBodyBytesMax, 'one largest write is always accepted'],
  [
    limits.logQueueBytesMax >= 2 * limits.pendingWriteBytesMax + MiB,
    'one namespace alone cannot be refused by the log',
  ],
  [limits.openRequestsOfNetworkMax < limits.openRequestsMax, 'one network cannot take all places'],
  [
    limits.metadataFetchesOfNetworkMax < limits.metadataFetchesAtOnceMax,
    'one network cannot have all documents read',
  ],
  [limits.threadSilentMsMax >= 10 * limits.threadBeatMs, 'a thread that misses a few beats is not silent'],
  [limits.searchLimitDefault <= limits.searchLimitMax, 'the default page is allowed'],
  [limits.peerHeadBytesMax <= limits.peerCreditBytes, 'the head of a message needs no credit'],
  [
    limits.forwardsToPeerMax + 3 * limits.insideCallsToPeerMax + limits.peerPassedOnMax < limits.peerCallsMax,
    'a connection has places for all kinds of calls, and for those that are passed on',
  ],
  [
    limits.forwardBytesToPeerMax + 3 * limits.insideBytesToPeerMax < limits.peerCallBytesMax,
    'a connection has room for the bodies of all kinds of calls',
  ],
  [
    limits.servedForwardsMax + 3 * limits.servedInsideCallsMax < limits.callsInFlightMax,
    'calls of other servers leave places for those of this one',
  ],
  [
    limits.peerFrameBytesMax < limits.peerBatchBytes,
    'a batch between servers has room for a frame of each kind',
  ],
];
for (const [holds, meaning] of relations) {
  if (!holds) throw new Error(`protocol/limits.ts contradicts itself: ${meaning}`);
}
