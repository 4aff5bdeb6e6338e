export interface Edit {
  /** Compiled, from the build's root. */
  readonly file: string;
  /** Stands there exactly once. */
  readonly find: string;
  readonly replace: string;
}

/** A test that passes, and fails where the mutation is made. */
export interface NoticingTest {
  /** Its path below `test`, without `.test.ts`. */
  readonly file: string;
  readonly test: string;
}

/**
 * Ways to break the protocol, each of which the simulation must notice. A suite that stays green against a broken protocol
 * is a broken suite. Rules that only a very rare order of events breaks (a seal in a slot that collection has emptied) are
 * for log-model.test.ts, which tries every order.
 */
export interface Mutation extends Edit {
  readonly name: string;
  /** Further places that have to change with it. */
  readonly also?: readonly Edit[];
  /** How many servers the worlds have that notice it; one where absent. */
  readonly servers?: number;
  /** What it breaks. */
  readonly why: string;
  /** The test that notices it, where worlds don't, or can't: most play the one order of events that it opens (scenes.test.ts). */
  readonly noticedBy?: NoticingTest;
}

export const mutations: readonly Mutation[] = [
  {
    name: 'each record waits by its own share',
    file: 'actors/log/record-queue.js',
    find: 'this.#queue.push(records.share, record);',
    replace: 'this.#queue.push(record.share, record);',
    why: 'where the owner of a tenant is learned meanwhile, a later record of a target gets into the log before an earlier one',
  },
  {
    name: 'acknowledge before the PUT',
    file: 'actors/log/group-commit.js',
    find: 'const outcome = await appendToSlot(',
    replace: "const outcome = 'stored'; void appendToSlot(",
    why: 'a crash before the slot is stored loses what was acknowledged',
  },
  {
    name: 'the own batch in the slot is taken for a seal',
    file: 'actors/log/append.js',
    find: 'if (object.batchId === write.batchId)',
    replace: 'if (object.batchId === write.batchId) return "sealed"; if (false)',
    why: 'a repetition that is refused is told as "nothing written", and is replayed later',
  },
  {
    name: 'a refused PUT is trusted without a look',
    file: 'actors/log/append.js',
    find: 'const outcome = await whoHolds(store, write);',
    replace: "const outcome = 'stored';",
    why: 'the slot may hold a seal: what is acknowledged then is in no log',
  },
  {
    name: 'a slot is given up after half a second and used for other bytes',
    file: 'actors/log/group-commit.js',
    find: 'const outcome = await appendToSlot(store, clock, logger, { logId, slot, batchId, bytes });',
    replace:
      'const outcome = await Promise.race([appendToSlot(store, clock, logger, { logId, slot, batchId, bytes }), clock.sleep(500)]); if (outcome === undefined) { this.#sending = false; for (const pending of group) this.#abandon(pending); this.#arm(); this.#wake(); return; }',
    why: 'the first try surfaces late, with records that were called unwritten',
  },
  {
    name: 'collection deletes seals',
    file: 'actors/log/collect-log.js',
    find: 'size > emptyLogObjectBytes && !isNeeded(slot)',
    replace: '!isNeeded(slot)',
    why: 'the delayed PUT of a paused writer lands in the emptied slot and is acknowledged',
  },
  {
    name: 'a log is called sealed without a seal',
    file: 'actors/log/seal.js',
    find: 'const put = await store.putIfAbsent(key, [seal.bytes]);',
    replace: "const put = { kind: (await store.get(key)) === null ? 'stored' : 'refused' };",
    why: 'its writer goes on acknowledging into a log that nobody will read',
  },
  {
    name: 'the end of a log is taken from a listing',
    file: 'actors/log/seal.js',
    find: "if (put.kind === 'stored')",
    replace: 'if (true)',
    why: 'the slot that was thought to be the end may hold a group',
  },
  {
    name: 'replay begins one record late',
    file: 'actors/storage/manifest.js',
    find: 'at.index <= watermark.index',
    replace: 'at.index <= watermark.index + 1',
    why: 'the first record after a flush is left out',
  },
  {
    name: 'replay begins one slot late',
    file: 'actors/log/replays.js',
    find: 'const after = isFirst ? await readFloor(store, logId) :',
    replace: 'const after = isFirst ? (await readFloor(store, logId)) + 1 :',
    why: 'the first slot above the floor is left out',
  },
  {
    name: 'what a manifest contains is applied again',
    file: 'actors/namespace/open.js',
    find: 'if (state.committed !== null && isApplied(state.committed.value, position))',
    replace: 'if (false)',
    why: 'a record that was flushed is there twice',
  },
  {
    name: 'the last slot of a sealed log is not replayed',
    file: 'actors/log/hand-over.js',
    find: 'through: sealSeq - 1',
    replace: 'through: sealSeq - 2',
    why: 'what was acknowledged last is lost',
  },
  {
    name: 'a name made again gets its old id',
    file: 'actors/tenant/tenant-names.js',
    find: 'const namespaceId = given ?? randomHex(random, 16);',
    replace: "const namespaceId = Buffer.from(name.padEnd(16, '-')).toString('hex');",
    why: 'what was deleted with the name comes back',
  },
  {
    name: 'a manifest is committed over whatever is there',
    file: 'actors/storage/manifest-store.js',
    find: 'await store.putIfMatch(key, [bytes], current.etag)',
    replace: "await store.putIfMatch(key, [bytes], (await store.get(key))?.etag ?? '')",
    why: 'a process that was overtaken puts its old state over its successor’s',
  },
  {
    name: 'an uploaded segment is deleted when its commit takes long',
    file: 'actors/namespace/flush.js',
    find: 'await commitReach(components, state, reach, { segment: segmentInManifest(segmentNow()), tail: null });',
    replace:
      'await Promise.race([commitReach(components, state, reach, { segment: segmentInManifest(segmentNow()), tail: null }), components.clock.sleep(100).then(async () => { await components.store.delete(key); throw new Error("too long"); })]);',
    why: 'the commit was applied, and the manifest names an object that is gone',
  },
  {
    name: 'the log hears of a flush before its commit',
    file: 'actors/namespace/flush.js',
    find: 'const { log } = components;\n    await commitManifest(',
    replace:
      'const { log } = components;\n    for (const [logId, { slot, index }] of reach.applied) log.flushed(state.identity, { logId, slot, index });\n    await commitManifest(',
    why: 'the floor rises over records that are in no manifest when the process dies',
  },
  {
    name: 'a write is applied before it is durable',
    file: 'actors/namespace/write-pipeline.js',
    find: 'const position = await submission.durable;\n            if (this.#broken)\n                throw appliedByNext();\n            const { lookUp } = submission;\n            const deleted = await applyDurable(this.#components, this.#state, { batch, stamp, position, lookUp });',
    replace:
      'const { lookUp } = submission; const { logId } = this.#components.log; const before = this.#state.applied.get(logId) ?? { slot: 0, index: 0 };\n            const deleted = await applyDurable(this.#components, this.#state, { batch, stamp, position: { logId, slot: before.slot, index: before.index + 1 }, lookUp });\n            const position = await submission.durable; this.#state.applied.set(logId, position);',
    why: 'readers see what may never be written',
  },
  {
    name: 'segments are deleted before the manifest stops naming them',
    file: 'actors/namespace/compact.js',
    find: "const current = must(state.committed, 'a committed manifest').value;",
    replace:
      "const current = must(state.committed, 'a committed manifest').value; for (const { reader } of inputs) await components.store.delete(reader.objectKey);",
    why: 'a crash between the two leaves a manifest without its segments',
  },
  {
    name: 'deletes during a compaction are lost',
    file: 'actors/namespace/compact.js',
    find: 'if (current !== tombstones)',
    replace: 'if (false)',
    why: 'what was deleted or replaced while the merge ran comes back',
  },
  {
    name: 'deletes during a flush are lost',
    file: 'actors/namespace/flush.js',
    find: 'withDeleted(noTombstones, supersededSince(memtable, rows))',
    replace: 'noTombstones',
    why: 'what was deleted or replaced while the segment was built comes back',
  },
  {
    name: 'a batch is applied in two steps',
    file: 'actors/namespace/write-pipeline.js',
    find: 'return applyBatch(state, batch, stamp, lookUp, position);',
    replace:
      'applyBatch(state, { ...batch, documentOffsets: batch.documentOffsets.subarray(0, 1) }, stamp, lookUp, position); await components.clock.sleep(20); return applyBatch(state, batch, stamp, lookUp, position);',
    why: 'a reader between the two sees half a request',
  },
  {
    name: 'a refused record lets the later ones of its epoch pass',
    file: 'actors/log/group-commit.js',
    find: 'failed !== undefined && failed >= epoch',
    replace: 'false',
    why: 'records enter the log whose predecessor did not',
  },
  {
    name: 'a flush forgets the documents of its tail',
    file: 'actors/namespace/flush.js',
    find: '{ segment: null, tail: tailOf(state.memtable) }',
    replace: '{ segment: null, tail: null }',
    why: 'the manifest says that it contains them',
  },
  {
    name: 'a sealed log is done before its records are flushed',
    file: 'actors/log/sealed-logs.js',
    find: '.filter((logId) => this.#unflushed.get(logId)?.size === 0);',
    replace: '.filter((logId) => this.#unflushed.has(logId));',
    why: 'nobody replays it any more',
  },
  {
    name: 'times go back with the clock',
    file: 'actors/namespace/write-pipeline.js',
    find: 'Math.max(nowMicros, last.lastWrittenAt + 1)',
    replace: 'nowMicros',
    why: 'newest first is not the order of the writes',
  },
];
