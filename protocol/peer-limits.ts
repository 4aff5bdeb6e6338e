const KiB = 1024;
const MiB = 1024 * KiB;

/** The bounds of what servers of a cluster say to each other; part of `limits`. */
export const peerLimits = {
  /** Bytes that one frame between servers carries: 0.5 ms of a 1 Gbit/s line, the longest that a small call waits for a large one's frame. */
  peerFrameBytesMax: 64 * KiB,
  /** Bytes of one message between servers that may be on their way or unread: enough to fill 10 Gbit/s over 0.2 ms. */
  peerCreditBytes: 256 * KiB,
  /** Bytes of a message's head: a query string of 64 KB and the patterns of a key are below it. It must come without waiting for credit. */
  peerHeadBytesMax: 256 * KiB,
  /** Messages of more than one frame on one connection, each way: 16 MB that may be unread. */
  peerStreamsMax: 64,
  /** Calls to one server that wait for an answer on one connection; more are refused, since that server is too slow. */
  peerCallsMax: 16_384,
  /** Bytes of calls of one frame that wait for an answer on one connection. */
  peerCallBytesMax: 64 * MiB,
  /** Calls that a server passes on for others and waits for: they take a sixteenth of the places of its own calls to that server. */
  peerPassedOnMax: 1_024,
  /** Calls of clients that are under way to one server, with bodies that go over the connection for small ones; more are refused. */
  forwardsToPeerMax: 8_192,
  forwardBytesToPeerMax: 48 * MiB,
  /** The same of each kind of call that parts of servers make: none of them may stand behind clients that wait for it. */
  insideCallsToPeerMax: 2_048,
  insideBytesToPeerMax: 4 * MiB,
  /** Calls of all other servers that are under way here, those of clients and those of each other kind. */
  servedForwardsMax: 32_768,
  servedInsideCallsMax: 8_192,
  /** Bytes of the bodies of those calls that came in one frame. */
  servedForwardBytesMax: 128 * MiB,
  servedInsideBytesMax: 16 * MiB,
  /** How long a call waits for its data to be handed over, before it is refused: a planned hand-over takes less than a second. */
  handoverWaitMs: 2_000,
  /** How often a call is tried again meanwhile, where nobody says when its server can be reached again. */
  forwardAgainMs: 100,
  /** How much later than the deadline of its work an answer of another server may come. */
  forwardLateMs: 5_000,
  /** How long a file may take to come through this server to another one, besides its import: 2 GB at 20 Mbit/s. */
  forwardedFileMs: 900_000,
  /** Calls that wait for a newer placement, a kilobyte each beside their bodies. */
  placementWaitersMax: 16_384,
  /** How long a revocation waits for all servers to say that they know of it. */
  revocationWaitMs: 2_000,
  /** Bytes that are given to a connection at once: what a small call waits for at most on its own side. */
  peerBatchBytes: 256 * KiB,
  /** Bytes of answers that a server does not take; with more its calls are not read any more. */
  peerUnsentBytesMax: 32 * MiB,
  /** Bodies over this size, and those that come in pieces, go over a connection of their own. */
  peerBulkBytesMin: 256 * KiB,
  /** From a connection's beginning until both sides know each other. */
  peerHandshakeMs: 5_000,
  /** Connections that nobody has shown a key on yet; more are closed at once. */
  peerHandshakesAtOnceMax: 64,
  /** Connections of servers that have shown the key: two of each of 255 others. */
  peerConnectionsMax: 510,
  /** How often a connection shows that it is alive, where it carries nothing else. */
  peerPingMs: 1_000,
  /** A connection on which nothing came for so many pings has nobody at its other end. */
  peerSilentPingsMax: 5,
  /** A connection for large bodies is closed after so long without one. */
  peerBulkIdleMs: 60_000,
  /** The pause before another try to connect: it begins so and doubles. A server that is started again is found within a second. */
  peerPauseFirstMs: 50,
  peerPauseMsMax: 1_000,
  /** The longest pause where the host refuses: a server that comes back is to be known before it is evicted. A refusal costs both little. */
  peerRefusedPauseMsMax: 250,
  /** Requests of one server whose names are remembered, so that a second copy is refused: half a minute of the most that was measured. 128 KB each. */
  peerRequestsRemembered: 2 ** 20,
  /** Servers, by their logs, whose requests are remembered: those of a view, and as many that went. */
  peerOriginsRemembered: 512,
  /** How long the answer of a write is kept for a copy of it: longer than it takes to notice that a line is cut and to ask again. */
  peerAnswersKeptMs: 20_000,
  /** Bytes of such answers at once, the oldest go first: 16,000 of the usual. */
  peerAnswersKeptBytesMax: 8 * MiB,
  /** An answer with a longer body is not kept: writes are answered in few words. */
  peerAnswerKeptBytesMax: 16 * KiB,
  /** What the head of a kept answer counts as: more than it takes. */
  peerAnswerHeadBytes: 256,
  /** How often calls that wait for an answer are looked at: whether their time is over, and whether anybody is still there. */
  peerLookMs: 100,
  /** A line on which a ping was not answered between so many looks is silent: calls go around it. A healthy server's longest turn is shorter. */
  peerSilentLooksMax: 3,
  /** How often strangers on the peer port are logged: anybody can cause those lines. */
  peerStrangerLogMs: 60_000,
} as const;
