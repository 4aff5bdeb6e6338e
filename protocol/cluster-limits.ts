const MiB = 2 ** 20;

/** Bounds of servers that share one object store: how soon they notice each other, and how long one waits for another. Part of limits.ts. */
export const clusterLimits = {
  /** A lease tells others that its process is there, and how long a start waits for one that is not. */
  leaseRenewMs: 3_300,
  /** The same of a server that others can evict: they are to notice soon. */
  leaseRenewBesideOthersMs: 1_000,
  /** A renewal that comes later than this after the one before was held up: the process, or the whole machine, stood still. */
  leaseLateMsMax: 4_300,
  /** Between two looks at the logs of others that are waited for: a barrier is on its way for about as long. */
  barrierLookEveryMs: 50,
  /** Headers of a log that are read at once while its barrier is searched: four rounds find it among a thousand. */
  barrierProbesAtOnce: 8,
  /** Logs of which a replay reads side by side: each has `replayReadsInFlight` objects of 4 MB at most on their way, and `logPacksInFlight` packs. */
  replayLogsAtOnce: 4,
  /**
   * Slots of a log that a pack has: a replay of some hundred slots reads a tenth of the objects, for one PUT more for every 32. Part of the format of
   * logs, since it says which slots a pack holds.
   */
  logPackSlots: 32,
  /** Larger slots are not packed: reading them takes long by their bytes, and not by their number. */
  logPackBytesMax: 2 * MiB,
  /** Packs of a log that a replay reads side by side. */
  logPacksInFlight: 4,
  /** A pack that takes longer to be stored or read is given up, and its slots are read: nothing rests on it. */
  logPackTimeoutMs: 5_000,
  /** A process answers reads for so long at most after its log was last seen open. */
  readEvidenceMsMax: 1_000,
  /** While there are reads the next look begins when the last one is so old: it takes a fraction of what is left. */
  readEvidenceRenewMs: 400,
  /** Nobody takes over from a sealed log sooner: what its process knew may be read until then, and clocks do not go alike. */
  readsOutliveSealMs: 1_200,
  /** How long a server that would take over from a sealed log leaves that to one that is joining: where the log was its own, it is active within that time. */
  joinAwaitedMs: 500,
  /** How long a request waits for what comes from another server: a view, its barriers, and what they leave behind. */
  handOverWaitMs: 2_000,
  /** How long a server believes a credential that it has looked up: no longer than a revocation waits for a server that does not confirm it. */
  credentialKeptMs: 2_000,
  /** One in use is looked up again when it is so old, so that no request waits for that unless the tenant's owner is away. */
  credentialRenewMs: 1_000,
  /** How long a server that leaves flushes what it owns before it says so: its data is served all the while. */
  leaveFlushMs: 8_000,
  /** How long a server that joins waits until the others have flushed what it will own. */
  joinFlushMs: 5_000,
  /** Flushes before a hand-over: the first of all that moves, the others of what was written meanwhile. */
  movingFlushPasses: 3,
  /** Actors of a thread that are flushed at once before they move: each is a PUT or the build of a segment. */
  movingFlushesAtOnce: 16,
  /** Targets that moved away earlier whose manifests are looked at before a hand-over, by thread: 16 at once, that is a second. */
  movedLookUpsMax: 1_000,
  /** How long manifests of targets that moved away earlier are looked at before a hand-over: what is not known to be flushed by then is replayed, which takes less. */
  movedLookUpsMsMax: 1_000,
  /** How long what was replayed after a hand-over waits until it is flushed: until then those who waited for the hand-over are answered. */
  recoverAfterMs: 2_000,
  /** Between two looks at the cluster view, by each server. */
  viewPollMs: 1_000,
  /** A member whose lease has not changed for so long is suspected: three renewals. */
  suspectAfterMs: 10_000,
  /** The same where its process also refuses connections: two renewals in a view of several. */
  suspectRefusedAfterMs: 2_000,
  /** The same where the next process of its server answers: a start takes a second or two until it has the log. */
  suspectReturningAfterMs: 4_000,
  /** Between two looks at leases while a process refuses connections. */
  suspectLookMs: 250,
  /** Between two evictions by one server: what the first one was about may be at its end. */
  evictionEveryMs: 5_000,
  /** At most half of the members are evicted in this time by one server; a lease that has not changed for as long is not counted. */
  evictionWindowMs: 60_000,
  /** A server whose clock differs from the store's by more does not join: ages of objects and times of writes would be wrong. */
  clockSkewMsMax: 30_000,
  /** How long a start waits for the process that has its data folder: one whose supervisor was killed ends by itself. */
  folderLockWaitMs: 5_000,
  /** How long a login waits for the server that counts its attempts before this server's own count is good enough. */
  attemptAskMs: 1_000,
  /** How long an eventual read waits for the owner of its namespace before a copy is read as well. */
  eventualOwnerWaitMs: 1_000,
  /** How long a copy of a namespace is read before it is made again. */
  copyKeptMs: 1_000,
  /** Copies on one thread: each is of a namespace whose owner is away, which lasts for seconds. */
  copiesMax: 32,
  /** Objects of a log that are read for a copy: what is flushed after five minutes at four a second, twice. */
  copyLogObjectsMax: 2_400,
  /** Bytes of a namespace's records that a copy is made of; whoever has more in the log is waited for. */
  copyLogBytesMax: 64 * 1024 * 1024,
  /** Tenants whose names `tidebase cluster` counts: one GET each, some 10 s for all of them at 20 ms a call. */
  describedTenantsMax: 10_000,
  /** Manifests of tenants that it reads at once. */
  describedTenantsAtOnce: 16,
} as const;
