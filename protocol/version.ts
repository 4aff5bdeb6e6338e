/**
 * Version numbers of what crosses the wire and of what is written to disk, each with one line of history per change.
 * A reader refuses a number that it does not know, by name; it never guesses. See protocol/README.md for the promises.
 */

/** The version that the interface description states: the service's, whatever was added to it. Paths stay under /v1. */
export const interfaceVersion = '0.1.0';

/** Counts what was added to the wire. Paths are under /v1 for as long as its first number is 0 or 1. */
export const wireVersion = '0.1.24';

export const wireHistory: readonly string[] = [
  '0.1.0: accounts, keys, namespaces, documents, search, count, warm.',
  '0.1.1: warm takes min_version; a count may be an estimate.',
  '0.1.2: vectors of documents, and search by a vector.',
  '0.1.3: embedding: models of namespaces, keys of providers, semantic search.',
  '0.1.4: SQL.',
  '0.1.5: import of CSV, NDJSON and Parquet files.',
  '0.1.6: verification and reset, tenants, limits of keys, usage, the bill, Idempotency-Key; /api/ paths.',
  '0.1.7: x-metering; null is absent in optional fields; defaults in words; no namespaces named . or ...',
  '0.1.8: operations name the statuses that follow from their credential, parameters and body.',
  '0.1.9: an import says of how many rows meta leaves out long texts.',
  '0.1.10: a login is for the tenant of X-Tenant; a key tells who made it.',
  '0.1.11: 503 is among the statuses of whatever takes a credential.',
  '0.1.12: context and vector_b64 of searches; limit and max_bytes of counts, documents and SQL; lines of documents.',
  '0.1.13: connections of MCP clients, to list and to end.',
  '0.1.14: temperature says what it is: the coldest place that a query had to read.',
  '0.1.15: consistency of document reads, searches, counts and SQL: strong or eventual.',
  '0.1.16: checkout, portal and webhook; the bill by day; amounts of a bill are whole cents.',
  '0.1.17: links to namespaces.',
  '0.1.18: imports take vectors from a column, and columns to keep or to skip.',
  '0.1.19: imports take bodies packed with gzip or zstd.',
  '0.1.20: links that stay at a version; branches of namespaces.',
  '0.1.21: estimates have bounds of 95 % beside the certain ones.',
  '0.1.22: writes to a link are 409 in the description, too.',
  '0.1.23: eventual reads while the owner of a namespace is out of reach: stale and age_ms.',
  '0.1.24: a list says of a link that its source is gone.',
];

/**
 * Versions of what servers of one cluster say to each other: frames, and heads, among them ActorCallWire and ActorAnswerWire of
 * messages.ts. A server speaks every
 * version from the least to the greatest, and the two of a connection take the greatest that both speak.
 */
export const peerVersions = {
  least: 1,
  greatest: 2,
  /** The line at index n says what version n + 1 changed. */
  history: [
    'Frames, credit, calls with names and deadlines.',
    'A ping may be asked for under a number and is answered; a copy of a request gets the answer of the first.',
  ],
} as const;

interface Format {
  readonly version: number;
  /** The line at index n says what version n + 1 changed. */
  readonly history: readonly string[];
}

export const formats = {
  /** A row of the write-ahead log, and the log object that groups them. */
  log: {
    version: 1,
    history: [
      'Records of all tenants in one object, each with a checksum. Four bytes of the header that were 0 say from where on others need the log.',
    ],
  },
  manifest: {
    version: 8,
    history: [
      'Segments, tombstones and a tail of recent documents.',
      'Bound to the key that it is stored under.',
      'Tombstones are listed where they are few, and objects of their own where they are many.',
      'Graphs over the vectors of segments.',
      'Graphs compare by differences, whatever the metric.',
      'Keys that hold dates or times.',
      'Since when each segment has deleted rows.',
      'Objects of other namespaces, and what others hold of this one.',
    ],
  },
  deletes: { version: 1, history: ['The tombstones of one segment.'] },
  segment: {
    version: 9,
    history: [
      'Table of contents, then sections with checksums.',
      'Ids by 128 bits of their SHA-256, and a filter of them.',
      'Each block bound to the key that it is stored under, and to its offset.',
      'A trigram index of the documents’ texts.',
      'Columns of the documents’ metas.',
      'Parts of large texts in the trigram index.',
      'Vectors, apart from the documents.',
      'How many vectors there are, beside where they are.',
      'Columns of dates and times.',
    ],
  },
  trigramIndex: {
    version: 2,
    history: [
      'Posting lists over row groups, newest first, in pages; a sparse index and the groups beside them.',
      'Groups for the parts of large texts.',
    ],
  },
  columns: {
    version: 2,
    history: [
      'Values of a meta’s key in the rows of a chunk; a directory of chunks and columns.',
      'Dates and times, as imports have them.',
    ],
  },
  clusterView: {
    version: 2,
    history: [
      'Members, leases and logs.',
      'States and protocols of members; placements, which rise with the owners.',
    ],
  },
  person: {
    version: 5,
    history: [
      'E-mail address, name, password hash, tenants.',
      'Bound to the key that it is stored under.',
      'Digests of mailed links.',
      'How many tenants a person has made in a month.',
      'When verification mails were sent, and whether keys of an unverified time are still to be ended.',
    ],
  },
  tenant: {
    version: 9,
    history: [
      'Keys and names of namespaces.',
      'Bound to the key that it is stored under.',
      'How long the vectors of a namespace are.',
      'Sealed keys of embedding providers, and what embeds the texts of a namespace.',
      "Whether the owner's address is verified.",
      'Usage by day and by key, writes of each namespace, digests of keys, answers of requests that may be repeated.',
      'Envelopes that name their key-encryption key.',
      'What the tenant knows of its subscription.',
      'Names that are links to namespaces, or namespaces that began as others were.',
    ],
  },
  envelope: {
    version: 2,
    history: [
      'A secret under a data key, and that under the key-encryption key.',
      'Names the key-encryption key.',
    ],
  },
  logFloor: {
    version: 3,
    history: [
      'The highest slot of a log that nobody needs.',
      'Bound to the key that it is stored under.',
      'The placement of that slot.',
    ],
  },
  swept: { version: 1, history: ['When orphans were last looked for, and up to which age.'] },
  keyClaim: {
    version: 2,
    history: ['The tenant and the key that a digest leads to.', 'Bound to the key that it is stored under.'],
  },
  emailClaim: {
    version: 2,
    history: ['The person whom an address belongs to.', 'Bound to the key that it is stored under.'],
  },
  billing: {
    version: 1,
    history: ['The customer and subscription of a tenant, events that were taken, and usage that was told.'],
  },
  customerClaim: { version: 1, history: ['Which tenant a customer of the payment provider is.'] },
  connections: {
    version: 1,
    history: ['What the people of a tenant let MCP clients have, with digests of codes and tokens.'],
  },
  oauthClient: {
    version: 1,
    history: ['A registered OAuth client: name, redirect addresses, digest of its secret.'],
  },
  /** The index of a backup, which lies beside the copies of the objects. */
  backup: { version: 1, history: ['A line for each object: key, size, SHA-256, and where its bytes are.'] },
  cursor: { version: 1, history: ['Tenant, namespace, query hash and last sequence, signed.'] },
} as const satisfies Record<string, Format>;

export type FormatName = keyof typeof formats;
